"""All commands in one place, and what becomes of errors."""

import os
import sys
import warnings
from errno import EACCES, EDQUOT, EFBIG, EIO, EISDIR, ENOSPC, EPERM, EROFS, ESTALE
from typing import Annotated, Any

import typer

from h2hgcn.cli import console
from h2hgcn.cli.compare import compare
from h2hgcn.cli.data import convert, datasets, inspect, models
from h2hgcn.cli.explore import explore
from h2hgcn.cli.predict import explain, predict, recommend
from h2hgcn.cli.reproduce import reproduce
from h2hgcn.cli.runs import embed, evaluate, split
from h2hgcn.cli.share import export, pull, push
from h2hgcn.cli.train import finalize, train
from h2hgcn.cli.tune import tune
from h2hgcn.errors import DataError, DataWarning

_COMMANDS = (
    train, tune, compare, reproduce, evaluate, finalize, predict, recommend, explain, embed, split, export, push, pull,
    explore, inspect, convert, datasets, models,
)  # fmt: skip

app = typer.Typer(
    name="h2hgcn",
    help="Hyperbolic-to-hyperbolic graph convolutional networks: train, predict, recommend, embed, inspect.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in _COMMANDS:
    app.command()(command)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # here, since it is slow to import

        typer.echo(f"h2hgcn {version('h2hgcn')}")
        raise typer.Exit


@app.callback()
def _options(
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    _set_quiet(os.environ.get("RANK", "0") != "0")  # of several processes, one speaks


def _set_quiet(quiet: bool) -> None:
    console.stdout.quiet = console.stderr.quiet = quiet


def main() -> None:
    """Runs the command line. A user's mistake is a message and exit code 2, never a traceback."""
    show_other = warnings.showwarning

    def show(message: Any, category: type[Warning], *arguments: Any, **options: Any) -> None:
        if issubclass(category, DataWarning):
            console.note(message)
        else:
            show_other(message, category, *arguments, **options)

    warnings.simplefilter("always", DataWarning)
    warnings.showwarning = show
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # PyTorch asks for large pages, which large graphs are faster on
    try:
        app()
    except BrokenPipeError:  # the reader of our output has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (DataError, OSError, ArithmeticError, MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and not any(text in str(error) for text in _OUT_OF_MEMORY):
            raise
        _set_quiet(False)  # of several processes one speaks, but each for what goes wrong with it
        console.error(_message(error))
        failed = isinstance(error, _FAILURES) or getattr(error, "errno", None) in _DISK_FAILURES
        sys.exit(1 if failed else 2)


# What goes wrong at run time through nobody's mistake: NaN in training, too little memory, a process that died, a full
# or broken disk.
_FAILURES = (ArithmeticError, MemoryError, ChildProcessError, RuntimeError)
_DISK_FAILURES = (ENOSPC, EDQUOT, EFBIG, EIO, ESTALE)

# PyTorch has no class of errors for a CPU's memory; the last text is of a size that has more than 64 bits.
_OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "out of memory", "Storage size calculation overflowed")

_ADVICE = {
    **dict.fromkeys((ENOSPC, EDQUOT, EFBIG), "make room and give the same command again"),
    **dict.fromkeys((EACCES, EPERM, EROFS), "choose another place, or change its rights"),
    EISDIR: "move it away, or choose another place",
    ESTALE: "put it back and give the same command again, which resumes from there, or restarts if it is gone",
}


def _message(error: BaseException) -> str:
    if isinstance(error, RuntimeError):
        return "there is not enough memory; try a smaller dim or a smaller graph"
    if isinstance(error, MemoryError):
        return f"there is not enough memory{f' ({error})' if str(error) else ''}"
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    where = f"{error.filename}: " if error.filename else ""
    advice = f"; {_ADVICE[error.errno]}" if error.errno in _ADVICE else ""
    return f"{where}{error.strerror.lower()}{advice}"
