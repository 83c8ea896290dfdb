"""Epochs of link prediction by number of edges, each kind and size in a process of its own."""

import contextlib
import itertools
import math
import multiprocessing
import resource
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import torch

from h2hgcn.cli.memory import kept_memory
from h2hgcn.datasets.hyperbolic import generate_hyperbolic
from h2hgcn.models import H2HGCN
from h2hgcn.tasks import LinkPrediction
from h2hgcn.training import TrainingSettings
from h2hgcn.training.batching import automatic_size, plan_batches
from h2hgcn.training.building import build_model
from h2hgcn.training.loop import run_epoch
from h2hgcn.training.optimizers import build_optimizer
from h2hgcn.training.settings import epoch_random, limited_threads

_FANOUT = "15,10"

# All sizes take turns, so that a slow minute of the machine is no size's own.
_TURNS = 4


class Training(NamedTuple):
    """All that an epoch needs."""

    problem: Any
    model: Any
    optimizer: Any
    settings: TrainingSettings


def link_training(num_edges: int, dim: int) -> Training:
    """Link prediction on a hyperbolic random graph of about so many edges."""
    problem: Any = LinkPrediction(scaling="standard").bind(generate_hyperbolic(num_edges))
    settings = TrainingSettings(device="cpu")
    model = build_model(partial(H2HGCN, dim=dim), problem, settings, 0)
    optimizer = build_optimizer(model, settings.lr, None, 0.0, "rsgd")
    return Training(problem, model, optimizer, settings)


def epochs_table(sizes: list[int], dim: int, threads: int, seconds: float) -> list[dict[str, Any]]:
    """Both kinds of training; a turn is as many epochs as take so many seconds."""
    return [row for sampled in (False, True) for row in _compared(_in_turns(sizes, sampled, dim, threads, seconds))]


def _compared(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    least = min(row["µs an edge"] for row in rows)
    return [row | {"by the least": row["µs an edge"] / least} for row in rows]


def _in_turns(sizes: list[int], sampled: bool, dim: int, threads: int, seconds: float) -> list[dict[str, Any]]:
    """A process for each size, only one of them at work at any time."""
    context = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    for size in sizes:
        ours, theirs = context.Pipe()
        process = context.Process(target=_measure, args=(size, sampled, dim, threads, theirs))
        process.start()
        theirs.close()
        ours.recv()
        pipes.append(ours)
        processes.append(process)
    rows: list[dict[str, Any]] = []
    for _ in range(_TURNS):
        rows = [_turn(pipe, seconds) for pipe in pipes]
    for pipe, process in zip(pipes, processes, strict=True):
        pipe.close()
        process.join()
    return rows


def _turn(pipe: Connection, seconds: float) -> dict[str, Any]:
    pipe.send(seconds)
    row: dict[str, Any] = pipe.recv()
    return row


def _measure(num_edges: int, sampled: bool, dim: int, threads: int, pipe: Connection) -> None:
    torch.set_num_threads(threads)
    training = link_training(num_edges, dim)
    with limited_threads(None, training.problem.num_nodes * dim), kept_memory():  # as ``fit`` does
        epochs = _epochs(training, sampled, dim)
        pipe.send("ready")
        least = math.inf
        with contextlib.suppress(EOFError):  # no more turns
            while True:
                least = min(least, _least_of_a_turn(epochs, pipe.recv()))
                pipe.send(_row(training, sampled, least))


def _epochs(training: Training, sampled: bool, dim: int) -> Iterator[float]:
    """Trains without end; seconds of each epoch."""
    problem = training.problem
    settings = replace(training.settings, batch_size="full")
    if sampled:
        settings = replace(training.settings, batch_size=automatic_size(problem.num_items), fanout=_FANOUT)
    plan_batches(settings, problem, training.model.encoder, dim).arrange(problem, training.model.encoder)
    for epoch in itertools.count():
        start = time.perf_counter()
        run_epoch(*training, problem.batches(epoch_random(0, epoch)))
        yield time.perf_counter() - start


def _least_of_a_turn(epochs: Iterator[float], seconds: float) -> float:
    """The first epoch does not count, since others have used the caches."""
    next(epochs)
    measured = [next(epochs)]
    while sum(measured) < seconds:
        measured.append(next(epochs))
    return min(measured)


def _row(training: Training, sampled: bool, least: float) -> dict[str, Any]:
    split = training.problem.split
    count = len(split.train) + len(split.val) + len(split.test)
    peak = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    return {"training": "sampled" if sampled else "full batch", "edges": count, "nodes": training.problem.num_nodes,
            "threads": torch.get_num_threads(), "seconds": least, "µs an edge": 1e6 * least / count,
            "MB": peak}  # fmt: skip


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    """Seconds and memory by edges, both axes logarithmic."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "h2hgcn"  # the same figures make the same file
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for axis, column, title in zip(axes, ("seconds", "MB"), ("seconds of an epoch", "MB at the peak"), strict=True):
        for kind in dict.fromkeys(row["training"] for row in rows):
            chosen = [row for row in rows if row["training"] == kind]
            axis.loglog([row["edges"] for row in chosen], [row[column] for row in chosen], "o-", label=kind)
        axis.set_xlabel("edges")
        axis.set_ylabel(title)
        axis.grid(alpha=0.3)
        axis.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
