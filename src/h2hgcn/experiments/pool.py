"""Many runs at once: one process a core, one thread each."""

import multiprocessing
import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from typing import Any

import torch

from h2hgcn.errors import DataError, DataWarning
from h2hgcn.experiments.cells import Cell, Outcome, run_cell

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# How often the parent asks whether to stop.
_ASK_SECONDS = 0.2


class CellPool:
    """Processes that carry out cells. After ``stop`` running cells end with their epoch, and others do not begin."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        context = multiprocessing.get_context("spawn")
        self._stop = context.Event()
        self._numbers = context.SimpleQueue()
        self._executor = ProcessPoolExecutor(jobs, context, _begin, (self._stop, self._numbers))

    def stop(self) -> None:
        self._stop.set()

    def outcomes(
        self, cells: Iterable[Cell], should_stop: Callable[[], bool] = lambda: False
    ) -> Iterator[tuple[int, Outcome]]:
        """The number of each cell and its outcome, as they come. The next cell is asked for when a process is free."""
        numbered = enumerate(cells)
        running: dict[Future[Outcome], int] = {}
        while True:
            for number, cell in islice(numbered, self._jobs - len(running)):
                with _signals_held():
                    running[self._executor.submit(_run, cell)] = number
            if not running:
                return
            done, _ = wait(running, timeout=_ASK_SECONDS, return_when=FIRST_COMPLETED)
            if should_stop():
                self.stop()
                numbered = enumerate(())
            for future in done:
                try:
                    yield running.pop(future), future.result()
                except BrokenProcessPool as error:
                    raise ChildProcessError(
                        "a process died, perhaps for want of memory; the same command goes on, with --jobs 1 in less "
                        "memory"
                    ) from error

    def close(self) -> None:
        """Waits for what still runs, which has been told to stop."""
        self.stop()
        self._executor.shutdown(cancel_futures=True)

    def kill(self) -> None:
        """Ends all processes of the pool at once; what they train goes on from its last checkpoint."""
        own = set()
        while not self._numbers.empty():
            own.add(self._numbers.get())
        for process in multiprocessing.active_children():
            if process.pid in own:
                process.kill()


@contextmanager
def cell_pool(jobs: int) -> Iterator[CellPool]:
    pool = CellPool(jobs)
    try:
        yield pool
    except KeyboardInterrupt:
        pool.kill()
        raise
    finally:
        pool.close()


@contextmanager
def _signals_held() -> Iterator[None]:
    """Within, signals wait, and processes that begin have them blocked until they can say that they ignore them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS) if hasattr(signal, "pthread_sigmask") else None
    try:
        yield
    finally:
        if before is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Worker:
    """What a process of the pool knows: when to stop, and that it has work."""

    def __init__(self, stop: Any) -> None:
        self._stop = stop
        self._parent = multiprocessing.parent_process()
        self.busy = threading.Lock()

    def should_stop(self) -> bool:
        return bool(self._stop.is_set()) or self._parent is None or not self._parent.is_alive()

    def end_with_parent(self) -> None:
        """A parent that is killed cannot say so: once it is gone, and the epoch is over, so is this process."""
        if self._parent is not None:
            self._parent.join()
        with self.busy:
            os._exit(1)


_worker: _Worker


def _begin(stop: Any, numbers: Any) -> None:
    """Makes a process ready: it has one thread, leaves signals to its parent and ends with it."""
    global _worker
    numbers.put(os.getpid())
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    warnings.simplefilter("ignore", DataWarning)  # the parent has said it
    torch.set_num_threads(1)
    _worker = _Worker(stop)
    threading.Thread(target=_worker.end_with_parent, daemon=True).start()


def _run(cell: Cell) -> Outcome:
    if _worker.should_stop():
        return Outcome("stopped", {})
    with _worker.busy:
        try:
            return run_cell(cell, _worker.should_stop)
        except (DataError, OSError, MemoryError) as error:
            return Outcome("failed", {}, str(error), error=error)
