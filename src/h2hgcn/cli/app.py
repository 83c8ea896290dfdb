"""All commands in one place, and what becomes of errors."""

import os
import sys
import warnings
from errno import EACCES, EDQUOT, EFBIG, EIO, EISDIR, ENOSPC, EPERM, EROFS, ESTALE
from typing import Annotated, Any

import typer

from h2hgcn.cli.compare import compare
from h2hgcn.cli.console import note, say, stderr, stdout
from h2hgcn.cli.data import convert, datasets, inspect, models
from h2hgcn.cli.explore import explore
from h2hgcn.cli.predict import predict, recommend
from h2hgcn.cli.reproduce import reproduce
from h2hgcn.cli.runs import embed, evaluate, split
from h2hgcn.cli.train import finalize, train
from h2hgcn.cli.tune import tune
from h2hgcn.errors import DataError, DataWarning

app = typer.Typer(
    name="h2hgcn",
    help="Hyperbolic-to-hyperbolic graph convolutional networks: train, predict, recommend, embed, inspect.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    train,
    tune,
    compare,
    reproduce,
    evaluate,
    finalize,
    predict,
    recommend,
    embed,
    split,
    explore,
    inspect,
    convert,
    datasets,
    models,
):
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
    stdout.quiet = stderr.quiet = os.environ.get("RANK", "0") != "0"  # of several processes, one speaks


def main() -> None:
    """Runs the command line. A user's mistake is a message and exit code 2, never a traceback."""
    warnings.simplefilter("always", DataWarning)
    warnings.showwarning = _show_warning
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # PyTorch asks for large pages, which large graphs are faster on
    try:
        app()
    except BrokenPipeError:  # the reader of our output has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (DataError, OSError, ArithmeticError, MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and not _is_out_of_memory(error):
            raise
        stdout.quiet = stderr.quiet = False  # of several processes one speaks, but each for what goes wrong with it
        say("error", "bold red", _message(error))
        sys.exit(1 if _is_failure(error) else 2)


# What goes wrong at run time through nobody's mistake.
_DISK_FAILURES = (ENOSPC, EDQUOT, EFBIG, EIO, ESTALE)

_ADVICE = {
    **dict.fromkeys((ENOSPC, EDQUOT, EFBIG), "make room and give the same command again"),
    **dict.fromkeys((EACCES, EPERM, EROFS), "choose another place, or change its rights"),
    EISDIR: "move it away, or choose another place",
    ESTALE: "put it back and give the same command again, which resumes from there, or restarts if it is gone",
}


def _is_failure(error: BaseException) -> bool:
    """A full or broken disk, too little memory, NaN in training, a process that died."""
    return (
        isinstance(error, ArithmeticError | MemoryError | ChildProcessError | RuntimeError)
        or getattr(error, "errno", None) in _DISK_FAILURES
    )


def _is_out_of_memory(error: RuntimeError) -> bool:
    """PyTorch has no class of errors for a CPU's memory; the last text is of a size that has more than 64 bits."""
    texts = ("can't allocate memory", "not enough memory", "out of memory", "Storage size calculation overflowed")
    return any(text in str(error) for text in texts)


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


_show_other_warning = warnings.showwarning


def _show_warning(message: Any, category: type[Warning], *arguments: Any, **options: Any) -> None:
    if issubclass(category, DataWarning):
        note(message)
    else:
        _show_other_warning(message, category, *arguments, **options)
