"""Tries in processes of their own, so that one that crashes, hangs or fills the memory is a failure with a number."""

import io
import json
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

PATIENCE = 30.0  # seconds
_START = 30.0  # seconds that a process may take to begin
MEMORY = 1 << 30  # bytes, beside a hundred times the size of the input

_children = multiprocessing.get_context("forkserver")
# children begin with everything imported, which takes seconds
_children.set_forkserver_preload(
    ["h2hgcn.cli.predict", "h2hgcn.training", "h2hgcn.experiments.train", "h2hgcn.explorer.server", "pandas",
     "pyarrow.csv", "pyarrow.parquet", "sklearn.metrics"]
)  # fmt: skip


class Part(NamedTuple):
    """A kind of tries. ``prepare`` fills a folder once; ``attempt`` makes the try of a number in a folder of its own
    and returns what went wrong, or None.
    """

    title: str
    tries: int
    prepare: Callable[[Path], None]
    attempt: Callable[[int, Path, Path], str | None]  # the number, the prepared folder, and its own
    patience: float = PATIENCE


class Result(NamedTuple):
    """What became of a try."""

    number: int
    failure: str | None
    seconds: float
    megabytes: float


def attempts(part: Part, numbers: Sequence[int], base: Path) -> Iterator[Result]:
    """The results of tries, one after the other, each within its time."""
    left = list(numbers)
    while left:
        with tempfile.TemporaryDirectory() as scratch:
            log = Path(scratch) / "log"
            log.touch()
            child = _children.Process(target=_work, args=(part, left, base, Path(scratch), log))
            child.start()
            last = time.monotonic() + _START
            with log.open() as lines:
                while left:
                    line = lines.readline()
                    if line.endswith("\n"):
                        result, last = Result(*json.loads(line)), time.monotonic()
                        left.remove(result.number)
                        yield result
                    elif child.exitcode is not None or time.monotonic() - last > 2 * part.patience:
                        seconds = time.monotonic() - last
                        crashed = child.exitcode is not None
                        failure = f"the process ended ({child.exitcode})" if crashed else f"more than {seconds:.0f} s"
                        _end(child)
                        yield Result(left.pop(0), failure, seconds, 0.0)
                        break
                    else:
                        time.sleep(0.005)
            _end(child)


def prepared(part: Part, base: Path) -> None:
    """Fills the folder that the tries of a part begin with, in a process of its own, since it starts threads."""
    child = _children.Process(target=_prepare, args=(part, base))
    child.start()
    child.join()
    if child.exitcode:
        raise RuntimeError(f"{part.title} could not be prepared; see above")


def _prepare(part: Part, base: Path) -> None:
    _alone()
    part.prepare(base)


def _end(child: Any) -> None:
    if child.exitcode is None:
        child.join(0.5)
        child.kill()
    child.join()


def _alone() -> None:
    import torch

    torch.set_num_threads(1)
    os.environ.pop("H2HGCN_DATA", None)
    resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))  # an error, before the machine is short of memory
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is asked to stop


def _work(part: Part, numbers: list[int], base: Path, scratch: Path, log: Path) -> None:
    _alone()
    warnings.simplefilter("ignore")
    with log.open("a", buffering=1) as lines:
        for number in numbers:
            own = scratch / f"{number}"
            own.mkdir()
            start = time.monotonic()
            try:
                failure = part.attempt(number, base, own)
            except Exception:
                failure = traceback.format_exc()[-500:]
            seconds = time.monotonic() - start
            if failure is None and seconds > part.patience:
                failure = f"took {seconds:.0f} s"
            os.chdir(scratch)
            shutil.rmtree(own, ignore_errors=True)
            lines.write(json.dumps([number, failure, round(seconds, 3), peak()]) + "\n")


def peak() -> float:
    """Megabytes that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Outcome(NamedTuple):
    """How a command ended."""

    code: int
    output: str
    errors: str

    def failure(self, allowed: Sequence[int] = (0,)) -> str | None:
        """What is wrong about it, unless its exit code is allowed and it has no traceback."""
        if "Traceback" in self.errors or self.code not in allowed:
            return f"exit code {self.code}: {self.errors[-300:]}"
        return None


def invoke(folder: Path, *arguments: object) -> Outcome:
    """Runs the command line in a folder, within this process."""
    from h2hgcn.cli import main

    os.chdir(folder)
    os.environ["COLUMNS"] = "200"
    sys.argv = ["h2hgcn", *map(str, arguments)]
    code: Any = 0
    with redirect_stdout(io.StringIO()) as output, redirect_stderr(io.StringIO()) as errors:
        try:
            main()
        except SystemExit as stopped:
            code = stopped.code or 0
        except BaseException:
            code = 1
            errors.write(traceback.format_exc())
    return Outcome(code, output.getvalue(), errors.getvalue())


def checked(folder: Path, *arguments: object) -> Outcome:
    """A command that has to succeed."""
    outcome = invoke(folder, *arguments)
    if outcome.code:
        raise RuntimeError(f"h2hgcn {' '.join(map(str, arguments))}: {outcome.errors}")
    return outcome


GRAPH = ("--edges", "my.csv", "--features", "x.csv")
SMALL = ("--epochs", 3, "--dim", 4, "--search", "none", "--set", "training.checkpoint_seconds=0")


def write_graph(folder: Path, nodes: int = 40) -> None:
    """Files of a ring with chords: edges, features and labels."""
    names = [f"n{k:02}" for k in range(nodes)]
    edges = [f"{names[k]},{names[(k + step) % nodes]}" for step in (1, 7) for k in range(nodes)]
    colors = ("red", "green", "blue")
    (folder / "my.csv").write_text("\n".join(["source,target", *edges, ""]))
    numbers = [f"{name},{k * 37 % 11 / 7:.3f},{k * 13 % 17 / 5:.3f}" for k, name in enumerate(names)]
    (folder / "x.csv").write_text("\n".join(["id,height,age", *numbers, ""]))
    labels = [f"{name},{colors[k % 3]}" for k, name in enumerate(names)]
    (folder / "y.csv").write_text("\n".join(["id,label", *labels, ""]))


def train(folder: Path, task: str, out: str, *options: object) -> Outcome:
    """Trains a small model on the files of ``write_graph``."""
    labels = ("--labels", "y.csv") if task == "nc" else ()
    return invoke(folder, "train", "--task", task, *GRAPH, *labels, *SMALL, "--out", out, *options)


def write_runs(folder: Path) -> None:
    """A folder with the files of a graph, finished runs on it, an index, and a converted graph."""
    folder.mkdir(exist_ok=True)
    write_graph(folder)
    for task, out in (("lp", "lp"), ("nc", "nc")):
        outcome = train(folder, task, out)
        if outcome.code:
            raise RuntimeError(outcome.errors)
    checked(folder, "recommend", "lp", "--all", "--index", "hnsw", "--out", "links.csv")
    checked(folder, "convert", "--edges", "my.csv", "--features", "x.csv", "--labels", "y.csv", "--out", "big")
