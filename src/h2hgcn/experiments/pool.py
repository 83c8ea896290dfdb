"""Many runs at once: one process a core, one thread each."""

import multiprocessing
import os
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any

import torch

from h2hgcn.errors import DataWarning
from h2hgcn.experiments.cells import Cell, Outcome, run_cell

# How often the parent asks whether to stop.
_ASK_SECONDS = 0.2


class CellPool:
    """Processes that carry out cells. After ``stop`` running cells end with their epoch, and others do not begin."""

    def __init__(self, jobs: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._stop = context.Event()
        self._executor = ProcessPoolExecutor(jobs, context, _begin, (self._stop, os.getpid()))

    def stop(self) -> None:
        self._stop.set()

    def outcomes(
        self, cells: Sequence[Cell], should_stop: Callable[[], bool] = lambda: False
    ) -> Iterator[tuple[int, Outcome]]:
        """The number of each cell and its outcome, as they come."""
        numbers: dict[Future[Outcome], int] = {self._executor.submit(_run, cell): k for k, cell in enumerate(cells)}
        waiting = set(numbers)
        while waiting:
            done, waiting = wait(waiting, timeout=_ASK_SECONDS, return_when=FIRST_COMPLETED)
            if should_stop():
                self.stop()
            for future in done:
                try:
                    yield numbers[future], future.result()
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
        """Ends all processes at once; what they train goes on from its last checkpoint."""
        for process in multiprocessing.active_children():
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


_should_stop: Any = None


def _begin(stop: Any, parent: int) -> None:
    """Makes a process ready: it has one thread, leaves signals to its parent and ends with it."""
    global _should_stop
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    warnings.simplefilter("ignore", DataWarning)  # the parent has said it
    torch.set_num_threads(1)
    _should_stop = lambda: stop.is_set() or os.getppid() != parent  # noqa: E731


def _run(cell: Cell) -> Outcome:
    if _should_stop():
        return Outcome("stopped", {})
    return run_cell(cell, _should_stop)
