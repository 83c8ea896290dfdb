"""What commands share: output, progress, files, signals."""

import json
import os
import re
import signal
import textwrap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, Self

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.status import Status
from rich.table import Column, Table
from rich.text import Text

from h2hgcn.errors import DataError

if TYPE_CHECKING:
    from h2hgcn.experiments.runner import Cell, Outcome
    from h2hgcn.experiments.search import Search
    from h2hgcn.training.loop import EpochReport, TrainingState

# Control characters of names and ids, which could steer a terminal, and those that turn the direction of writing.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """A text with its control characters as escapes, such as ``\\x1b``."""
    return _CONTROLS.sub(lambda found: ascii(found[0])[1:-1], text)


class _Console(Console):
    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **options)


# File names and messages are printed as they are: brackets in them are no markup, and :fire: is no picture.
stdout = _Console(markup=False, emoji=False, highlight=False)
stderr = _Console(stderr=True, markup=False, emoji=False, highlight=False)


_MOST_ROWS, _MOST_COLUMNS = 20, 8  # that are printed of a long table


def print_title(title: str) -> None:
    stdout.print(Text(printable(title), style="bold"))


def plain_table(*columns: str | Column, rows: Iterable[Iterable[Any]] = (), **options: Any) -> Table:
    """A table without lines."""
    table = Table(*columns, box=None, header_style="bold", pad_edge=False, **options)
    for row in rows:
        table.add_row(*row)
    return table


def print_rows(columns: dict[str, list[Any]]) -> None:
    """The first rows and columns; a line says if there are more."""
    shown, count = list(columns)[:_MOST_COLUMNS], len(next(iter(columns.values())))
    rows = zip(*(columns[name][:_MOST_ROWS] for name in shown), strict=True)
    texts = ((f"{value:.4f}" if isinstance(value, float) else str(value) for value in row) for row in rows)
    stdout.print(plain_table(*shown, rows=texts))
    if count > _MOST_ROWS or len(columns) > len(shown):
        tell(f"{count:,} rows and {len(columns)} columns in total; use --out FILE or --json to get all")


def tell(text: object) -> None:
    """A line of progress, apart from results."""
    stderr.print(f"{text}", soft_wrap=True)


def say(kind: str, style: str, message: object) -> None:
    """A line with a heading; terminals may wrap it."""
    stderr.print(Text.assemble((f"{kind}:", style), printable(f" {message}")), soft_wrap=True)


def note(message: object) -> None:
    say("note", "bold yellow", message)


def error(message: object) -> None:
    say("error", "bold red", message)


def stop(message: str, force: bool = False) -> NoReturn:
    """Prints that work was stopped and how to resume it, and ends the program; --force would restart it."""
    command = "the same command without --force" if force else "the same command"
    say("stopped", "bold yellow", f"{message}; {command} resumes from the last checkpoint")
    raise typer.Exit(1)


def counted(number: int, noun: str) -> str:
    """``1 seed``, ``2 seeds``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def starting() -> Status:
    """Shown on a terminal while PyTorch is imported, which takes seconds; later, a line if loops are compiled."""
    from h2hgcn.jit import on_compilation

    on_compilation(lambda: say("note", "cyan", "Compiling kernels, once for this machine ..."))
    return stderr.status("starting")


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Shown on a terminal; call it with how many of how many are done."""
    with Progress(console=stderr, transient=True, disable=not stderr.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def print_json(value: Any) -> None:
    """One JSON document and nothing else, so that it can be piped; by one of several processes."""
    if not stdout.quiet:
        text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
        print(_CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text))  # JSON of the same value


def check_free(path: Path, force: bool, suffixes: tuple[str, ...] = ()) -> None:
    """Refuses to write over a file, or one of another format, before any work is done."""
    if path.is_dir():
        raise DataError(f"{path} is a folder; name a file")
    if path.exists() and not force:
        raise DataError(f"{path} is there already; name another file, or use --force")
    if (blocked := next((folder for folder in path.parents if folder.is_file()), None)) is not None:
        raise DataError(f"{blocked} is a file, so nothing can be written below it; name another place")
    if suffixes and path.suffix.lower() not in suffixes:
        raise DataError(f"{path}: tables are written as {' or '.join(suffixes)}; end the name with one of these")


TABLES = (".csv", ".parquet")


def write_table(path: Path, columns: dict[str, Any], safe: bool = False) -> None:
    """Columns as a Parquet or CSV file, by its ending; ``safe`` is for spreadsheets, see ``--safe-csv``."""
    import pyarrow as pa
    import pyarrow.compute
    import pyarrow.csv
    import pyarrow.parquet

    from h2hgcn.files import atomic_write

    is_csv = path.suffix.lower() == ".csv"
    table = pa.table(columns)
    if safe and is_csv:
        for place, column in enumerate(table.columns):
            if pa.types.is_string(column.type):
                quoted = pa.compute.replace_substring_regex(column, r"^([=+\-@\t\r])", r"'\1")
                table = table.set_column(place, table.column_names[place], quoted)
    with atomic_write(path) as file:
        (pa.csv.write_csv if is_csv else pa.parquet.write_table)(table, file)


class StopAfterEpoch:
    """Within, SIGINT and SIGTERM only ask to stop; the second one stops at once, with a message. ``force`` says whether
    the command was given --force.
    """

    def __init__(self, force: bool = False) -> None:
        self._asked = 0
        self._force = force

    def wanted(self) -> bool:
        return self._asked > 0

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._ask) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if kind is KeyboardInterrupt:
            stop("at once", self._force)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self._asked += 1
        if self._asked == 2:
            raise KeyboardInterrupt
        if self._asked == 1:  # after the second one everything is about to end, and must not be disturbed
            say("stopping", "bold yellow", "after this epoch; a second Ctrl-C stops now")


_PARTS = {"val": "validation"}


class TrainingProgress:
    """Epoch, loss, validation metric and time left, on a terminal; elsewhere only that a run resumes, and its settings.

    A search for settings comes first in the same bar. ``first_epoch`` is the first that was trained here, or None.
    """

    def __init__(self, epochs: int) -> None:
        self._progress = _bar(TextColumn("epoch"), TimeRemainingColumn())
        self._task = self._progress.add_task("", total=epochs, words="")
        self._epochs = epochs
        self._searched = 0
        self._validation = ""
        self.first_epoch: int | None = None

    @property
    def resumed_from(self) -> int | None:
        """The epoch that a run resumed from."""
        return (self.first_epoch or 1) - 1 or None

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def search(self, done: int, total: int, name: str) -> None:
        """An epoch of a search is over."""
        self._searched = total
        words = f"choosing settings: {name}"
        self._progress.update(self._task, completed=done, total=total + self._epochs, words=words)

    def chosen(self, search: "Search") -> None:
        """A search is over."""
        tell(search.summary)
        for each in search.notes:
            note(each)

    def update(self, report: "EpochReport", state: "TrainingState") -> None:
        completed = self._searched + report.epoch
        if self.first_epoch is None:
            self.first_epoch = report.epoch
            if self.resumed_from is not None:
                stderr.print(f"resuming after epoch {self.resumed_from}")
            # epochs of an earlier process took no time of this one, which estimates the time left
            self._progress.reset(self._task, total=self._searched + self._epochs, completed=completed - 1)
        if report.val is not None:
            name, part = report.selection, _PARTS.get(report.part, report.part)
            self._validation = f"{part} {name} {report.val[name]:.4f}, best {state.best[name]:.4f}"
        self._progress.update(self._task, completed=completed, words=f"loss {report.loss:.4f}  {self._validation}")


def _bar(what: TextColumn, time: TimeElapsedColumn | TimeRemainingColumn) -> Progress:
    return Progress(
        what, MofNCompleteColumn(), BarColumn(), TextColumn("{task.fields[words]}"), time,
        console=stderr, transient=True, disable=not stderr.is_terminal,
    )  # fmt: skip


Metrics = dict[str, dict[str, float]]

# What selects where something was added to the model after training: the metric without it.
_WITHOUT_TERMS = {"auc": "auc_decoder", "accuracy": "accuracy_network"}
_MOST_CLASSES, _WIDEST_NAME = 20, 12  # of classes that are printed one by one, and of the heads of their matrix


def metrics_table(metrics: Metrics, selection: str, trivial: Metrics | None = None) -> Table:
    """The metrics of a model, beside baselines that need no training, which are by metric and name; the metric that
    selects is marked.
    """
    names = list(list(metrics.values())[-1])
    selecting = _WITHOUT_TERMS.get(selection)
    selecting = selecting if selecting in names else selection
    rows = [
        (f"{name} (selects)" if name == selecting else name, *(_number(part.get(name)) for part in metrics.values()))
        for name in names
    ]
    blanks = [""] * (len(metrics) - 1)
    for metric, scores in (trivial or {}).items():
        rows += [(f"baseline: {name}, {metric}", *blanks, f"{value:.4f}") for name, value in scores.items()]
    return plain_table("metric", *(_PARTS.get(part, part) for part in metrics), rows=rows)


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.1e}" if 0 < abs(value) < 5e-5 else f"{value:.4f}"  # an error may be tiny, and is not 0


def print_classes(details: dict[str, Any]) -> None:
    """Prints precision, recall, F1 and support of each class, and the confusion matrix if it fits, unless there are
    many classes.
    """
    classes = details.get("classes", ())
    if not 0 < len(classes) <= _MOST_CLASSES:
        return
    scores = ("precision", "recall", "f1")
    columns = (Column(name, justify="right") for name in (*scores, "support"))
    rows = ([row["name"], *(f"{row[name]:.4f}" for name in scores), str(row["support"])] for row in classes)
    stdout.print()
    stdout.print(plain_table("class", *columns, rows=rows))
    names = [textwrap.shorten(row["name"], _WIDEST_NAME, placeholder="…") or "…" for row in classes]
    heads = (Column(name, justify="right") for name in names)
    counts = ([name, *map(str, row)] for name, row in zip(names, details["confusion"], strict=True))
    matrix = plain_table("true class, predicted as", *heads, rows=counts)
    fits = stdout.measure(matrix, options=stdout.options.update(max_width=1000)).maximum <= stdout.width
    stdout.print()
    stdout.print(matrix if fits else "The confusion matrix is wider than this terminal; see report.html or --json.")
    stdout.print()


def run_cells(
    cells: "Iterable[Cell]", total: int, jobs: int | None, finished: "Callable[[Cell, Outcome], str]",
    force: bool = False,
) -> None:  # fmt: skip
    """Runs cells in ``jobs`` processes, by default one per core; ``finished`` turns an outcome into a status line."""
    from h2hgcn.experiments.runner import CellPool

    progress = _bar(TextColumn("runs"), TimeElapsedColumn())
    task = progress.add_task("", total=total, words="")
    processes = max(min(jobs or os.cpu_count() or 1, total), 1)
    with StopAfterEpoch(force) as signals, CellPool(processes) as pool, progress:
        for cell, outcome in pool.outcomes(cells, signals.wanted):
            if outcome.status != "stopped":
                progress.update(task, advance=1, words=finished(cell, outcome))
