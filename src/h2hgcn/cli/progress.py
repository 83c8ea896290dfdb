"""A live line while a model is trained."""

from typing import TYPE_CHECKING, Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from h2hgcn.cli.output import say, stderr

if TYPE_CHECKING:
    from h2hgcn.experiments.search import Search
    from h2hgcn.training.checkpoint import TrainingState
    from h2hgcn.training.loop import EpochReport

_PARTS = {"val": "validation"}


class TrainingProgress:
    """Epoch, loss, validation metric and time left, on a terminal; elsewhere only that a run resumes, and its settings.

    A search for settings comes first in the same bar, whose length is that of both.

    ``resumed_from`` is the epoch that a run resumed from, or None.
    """

    def __init__(self, epochs: int) -> None:
        self._progress = Progress(
            TextColumn("epoch"), MofNCompleteColumn(), BarColumn(), TextColumn("{task.fields[words]}"),
            TimeRemainingColumn(), console=stderr, transient=True, disable=not stderr.is_terminal,
        )  # fmt: skip
        self._task = self._progress.add_task("", total=epochs, words="")
        self._epochs = epochs
        self._searched = 0
        self._validation = ""
        self._first_epoch: int | None = None

    @property
    def resumed_from(self) -> int | None:
        return self._first_epoch - 1 if self._first_epoch is not None and self._first_epoch > 1 else None

    @property
    def trained(self) -> bool:
        """Whether there was an epoch."""
        return self._first_epoch is not None

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def search(self, done: int, total: int, name: str) -> None:
        """An epoch of a search is over."""
        self._searched = total
        self._progress.update(
            self._task, completed=done, total=total + self._epochs, words=f"choosing settings: {name}"
        )

    def chosen(self, search: "Search") -> None:
        """A search is over."""
        stderr.print(search.summary, soft_wrap=True)
        for note in search.notes:
            say("note", "bold yellow", note)

    def update(self, report: "EpochReport", state: "TrainingState") -> None:
        if self._first_epoch is None:
            self._first_epoch = report.epoch
            if self.resumed_from is not None:
                stderr.print(f"resuming after epoch {self.resumed_from}")
            # epochs of an earlier process took no time of this one's, by which the time left is told
            self._progress.reset(
                self._task, total=self._searched + self._epochs, completed=self._searched + report.epoch - 1
            )
        if report.val is not None:
            name = report.selection
            part = _PARTS.get(report.part, report.part)
            self._validation = f"{part} {name} {report.val[name]:.4f}, best {state.best[name]:.4f}"
        self._progress.update(
            self._task, completed=self._searched + report.epoch, words=f"loss {report.loss:.4f}  {self._validation}"
        )
