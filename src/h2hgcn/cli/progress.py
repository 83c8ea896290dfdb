"""A live line while a model is trained."""

from typing import TYPE_CHECKING, Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from h2hgcn.cli.output import stderr

if TYPE_CHECKING:
    from h2hgcn.training.loop import EpochReport
    from h2hgcn.training.state import TrainingState


class TrainingProgress:
    """Epoch, loss, validation metric and time left, on a terminal; nothing elsewhere."""

    def __init__(self, epochs: int) -> None:
        self._progress = Progress(
            TextColumn("epoch"), MofNCompleteColumn(), BarColumn(), TextColumn("{task.fields[words]}"),
            TimeRemainingColumn(), console=stderr, transient=True, disable=not stderr.is_terminal,
        )  # fmt: skip
        self._task = self._progress.add_task("", total=epochs, words="")
        self._val = ""

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def update(self, report: "EpochReport", state: "TrainingState") -> None:
        if report.val is not None:
            name = next(iter(report.val))
            self._val = f"validation {name} {report.val[name]:.4f}, best {state.best[name]:.4f}"
        self._progress.update(self._task, completed=report.epoch, words=f"loss {report.loss:.4f}  {self._val}")
