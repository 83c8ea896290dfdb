"""Many runs: one process a core, and records of their results."""

import hashlib
import json
import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Self

import torch
from filelock import FileLock

from h2hgcn.errors import DamagedRunError, DataError, DataWarning, NonFiniteError, PlaceError
from h2hgcn.experiments.config import GraphChoice, Layer, open_graph, read_experiment
from h2hgcn.experiments.presets import Sections
from h2hgcn.experiments.search import SearchStopped
from h2hgcn.experiments.train import run_experiment
from h2hgcn.training.folder import BusyFolderError

Record = dict[str, Any]


class Records:
    """A file of results, one JSON object a line. Several processes may add to it at the same time."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __iter__(self) -> Iterator[Record]:
        """All whole lines. One that was cut short counts as not written: its run is done again."""
        return (record for _, record in self.numbered() if record is not None)

    def numbered(self) -> Iterator[tuple[int, Record | None]]:
        """All lines with their numbers, the first being 1; None stands for one that is no record."""
        lines = self.path.read_bytes().splitlines() if self.path.exists() else []
        for number, line in enumerate(lines, start=1):
            record = None
            with suppress(ValueError):
                record = json.loads(line)
            yield number, record if isinstance(record, dict) else None

    def add(self, record: Record) -> None:
        """Writes a line, through to the disk; what a killed writer left of a line is ended first."""
        line = json.dumps(record, sort_keys=True, allow_nan=False).encode() + b"\n"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(self.path.with_name(f".{self.path.name}.lock")):
            try:
                with self.path.open("a+b") as file:
                    if file.tell():
                        file.seek(-1, os.SEEK_END)
                        line = line if file.read(1) == b"\n" else b"\n" + line
                    file.write(line)
                    file.flush()
                    os.fsync(file.fileno())
            except OSError as error:
                error.filename = error.filename or str(self.path)
                raise


@cache
def code_fingerprint() -> str:
    """A hash of this package's modules: the version stays the same between two releases, the code does not."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for module in sorted(package.rglob("*.py")):
        digest.update(f"{module.relative_to(package).as_posix()}\0".encode())
        digest.update(module.read_bytes())
    return digest.hexdigest()[:16]


Status = Literal["finished", "diverged", "stopped", "failed"]

# A process whose parent was killed lets go of its folder when its epoch is over.
_WAIT_SECONDS = 30.0
_ASK_SECONDS = 0.5


@dataclass(frozen=True)
class Cell:
    """Settings as flags would give them, files of settings below them, and the folder of the run. ``key`` is what the
    caller knows it by.

    ``wait_seconds`` is how long a process that trains in the folder is waited for; when ``elsewhere`` says that it has
    done the run, the folder is left to it. With ``scratch`` the folder belongs to the run alone: if a file in it is
    damaged, the run is restarted.
    """

    flags: Sections
    folder: Path
    key: Any = None
    files: tuple[Layer, ...] = ()
    root: Path | None = None
    force: bool = False
    scratch: bool = False
    wait_seconds: float = _WAIT_SECONDS
    elsewhere: Callable[[], bool] | None = None


@dataclass(frozen=True)
class Outcome:
    """What became of a run; ``result`` is what ``result.json`` holds, ``config`` what ``config.toml`` does.

    ``error`` is why it failed; ``message`` says where NaN occurred.
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
    """Trains, resumes, or loads what is finished. NaN is an outcome, other errors are raised."""
    experiment = read_experiment(cell.flags, cell.files)
    try:
        data = _opened(tuple(experiment.graph.options.items()), experiment.graph.fingerprint, cell.root)
    except DataError as error:
        raise PlaceError(str(error)) from error
    deadline = time.monotonic() + cell.wait_seconds
    force = cell.force
    if cell.elsewhere is not None and cell.elsewhere():  # while the data were read
        raise BusyFolderError(f"another process has done the run of {cell.folder}")
    while True:
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")  # Linux: forget the peak of memory so far
        try:
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
            return Outcome(status, run.result, config=run.config, peak_megabytes=_peak_megabytes())


def _peak_megabytes() -> float | None:
    """The peak of this process; None where the system does not tell."""
    with suppress(OSError, ValueError, IndexError, StopIteration):
        status = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in status if line.startswith("VmHWM")).split()[1]) / 1024
    return None


@lru_cache(maxsize=1)  # cells of a comparison have one graph, and a process carries out many
def _opened(options: tuple[tuple[str, Any], ...], fingerprint: str | None, root: Path | None) -> Any:
    return open_graph(GraphChoice(dict(options), fingerprint), root)


_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# How often the parent asks whether to stop.
_POLL_SECONDS = 0.2


class CellPool:
    """Processes that run cells. At the end of the ``with`` block, running cells stop after their epoch; after Ctrl-C
    all processes are killed, and what they train resumes from its last checkpoint.
    """

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        context = multiprocessing.get_context("spawn")
        self._stop = context.Event()
        self._numbers = context.SimpleQueue()
        self._executor = ProcessPoolExecutor(jobs, context, _begin, (self._stop, self._numbers))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            own = set()
            while not self._numbers.empty():
                own.add(self._numbers.get())
            for process in multiprocessing.active_children():
                if process.pid in own:
                    process.kill()
        self._stop.set()
        self._executor.shutdown(cancel_futures=True)

    def outcomes(
        self, cells: Iterable[Cell], should_stop: Callable[[], bool] = lambda: False
    ) -> Iterator[tuple[Cell, Outcome]]:
        """Each cell and its outcome, as they finish. The next cell is asked for when a process is free."""
        waiting = iter(cells)
        running: dict[Future[Outcome], Cell] = {}
        while True:
            for cell in islice(waiting, self._jobs - len(running)):
                with _signals_held():
                    running[self._executor.submit(_run, cell)] = cell
            if not running:
                return
            done, _ = wait(running, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
            if should_stop():
                self._stop.set()
                waiting = iter(())
            for future in done:
                try:
                    yield running.pop(future), future.result()
                except BrokenProcessPool as error:
                    raise ChildProcessError(
                        "a process died, perhaps for lack of memory; run the same command again to resume, with "
                        "--jobs 1 to use less memory"
                    ) from error


@contextmanager
def _signals_held() -> Iterator[None]:
    """Within, signals wait, and processes that begin have them blocked until they can say that they ignore them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS) if hasattr(signal, "pthread_sigmask") else None
    try:
        yield
    finally:
        if before is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


# In a process of the pool: whether to stop, and a lock that is held while a cell runs.
_should_stop: Callable[[], bool]
_busy = threading.Lock()


def _begin(stop: Any, numbers: Any) -> None:
    """Makes a process ready: it has one thread, leaves signals to its parent and ends with it."""
    global _should_stop
    parent = multiprocessing.parent_process()
    assert parent is not None  # spawned
    numbers.put(os.getpid())
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    warnings.simplefilter("ignore", DataWarning)  # the parent has said it
    torch.set_num_threads(1)

    def end_with_parent() -> None:
        """A parent that is killed cannot say so: once it is gone, and the epoch is over, so is this process."""
        parent.join()
        with _busy:
            os._exit(1)

    def should_stop() -> bool:
        return bool(stop.is_set()) or not parent.is_alive()

    _should_stop = should_stop
    threading.Thread(target=end_with_parent, daemon=True).start()


def _run(cell: Cell) -> Outcome:
    if _should_stop():
        return Outcome("stopped", {})
    with _busy:
        try:
            return run_cell(cell, _should_stop)
        except (DataError, OSError, MemoryError) as error:
            return Outcome("failed", {}, str(error), error=error)
