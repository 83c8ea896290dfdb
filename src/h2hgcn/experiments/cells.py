"""One run out of many: described by plain values, so that any process can carry it out."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from h2hgcn.errors import DamagedRunError, DataError, NonFiniteError, PlaceError
from h2hgcn.experiments.config import read_experiment
from h2hgcn.experiments.graph_choice import GraphChoice, open_graph
from h2hgcn.experiments.memory import peak_memory
from h2hgcn.experiments.search import SearchStopped
from h2hgcn.experiments.sections import Layer, Sections
from h2hgcn.experiments.train import run_experiment
from h2hgcn.training.folder import BusyFolderError

Status = Literal["finished", "diverged", "stopped", "failed"]

# A process whose parent was killed lets go of its folder when its epoch is over.
_WAIT_SECONDS = 30.0
_ASK_SECONDS = 0.5


@dataclass(frozen=True)
class Cell:
    """Settings as flags would give them, files of settings below them, and the folder of the run.

    ``wait_seconds`` is how long a process that trains in the folder is waited for; when ``elsewhere`` says that it has
    done the run, the folder is left to it. With ``scratch`` the folder is nobody's but the run's: if a file in it is
    damaged, the run is begun anew.
    """

    flags: Sections
    folder: Path
    files: tuple[Layer, ...] = ()
    root: Path | None = None
    force: bool = False
    scratch: bool = False
    wait_seconds: float = _WAIT_SECONDS
    elsewhere: Callable[[], bool] | None = None


@dataclass(frozen=True)
class Outcome:
    """What became of a run; ``result`` is what ``result.json`` holds, ``config`` what ``config.toml`` does.

    ``error`` is why it failed; ``message`` tells where its numbers went bad.
    """

    status: Status
    result: dict[str, Any]
    message: str = ""
    config: dict[str, Any] = field(default_factory=dict)
    peak_megabytes: float | None = None
    error: Exception | None = None

    def score(self, part: str) -> float | None:
        """The metric that selects, on a part of the split; None unless the run is finished."""
        return float(self.result["metrics"][part][self.result["selection"]]) if self.status == "finished" else None


def run_cell(cell: Cell, should_stop: Callable[[], bool] = lambda: False) -> Outcome:
    """Trains, or goes on, or loads what is finished. Numbers that go bad are an outcome, other errors are raised."""
    experiment = read_experiment(cell.flags, cell.files)
    data = _data(experiment.graph, cell.root)
    deadline = time.monotonic() + cell.wait_seconds
    force = cell.force
    if cell.elsewhere is not None and cell.elsewhere():  # while the data were read
        raise BusyFolderError(f"another process has done the run of {cell.folder}")
    while True:
        try:
            with peak_memory() as peak:
                run = run_experiment(experiment, data, cell.folder, force=force, should_stop=should_stop)
        except SearchStopped:
            return Outcome("stopped", {})
        except NonFiniteError as error:
            return Outcome("diverged", {}, str(error))
        except DamagedRunError:
            if force or not cell.scratch:
                raise
            force = True
        except BusyFolderError:
            if should_stop():
                return Outcome("stopped", {})
            if time.monotonic() >= deadline:
                raise
            time.sleep(_ASK_SECONDS)
            if cell.elsewhere is not None and cell.elsewhere():
                raise
        else:
            status: Status = "finished" if run.finished else "stopped"
            return Outcome(status, run.result, config=run.config, peak_megabytes=peak.megabytes)


def _data(choice: GraphChoice, root: Path | None) -> Any:
    try:
        return _opened(tuple(choice.options.items()), choice.fingerprint, root)
    except DataError as error:
        raise PlaceError(str(error)) from error


@lru_cache(maxsize=1)  # cells of a comparison have one graph, and a process carries out many
def _opened(options: tuple[tuple[str, Any], ...], fingerprint: str | None, root: Path | None) -> Any:
    return open_graph(GraphChoice(dict(options), fingerprint), root)
