"""Epochs of link prediction by number of edges, each kind and size in a process of its own."""

import multiprocessing
import resource
import time
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import torch

from h2hgcn.datasets.named.hyperbolic import generate_hyperbolic
from h2hgcn.models import H2HGCN
from h2hgcn.tasks import LinkPrediction
from h2hgcn.training import TrainingSettings
from h2hgcn.training.batching import automatic_size, plan_batches
from h2hgcn.training.building import build_model
from h2hgcn.training.kept_memory import kept_memory
from h2hgcn.training.loop import run_epoch
from h2hgcn.training.optimizers import build_optimizer
from h2hgcn.training.seeds import epoch_random
from h2hgcn.training.threads import limited_threads

_FANOUT = "15,10"

# Epochs that are measured, after the first: as many as take this many seconds, within bounds.
_SECONDS, _FEWEST, _MOST = 30.0, 2, 40


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


def epochs_table(sizes: list[int], dim: int, threads: int) -> list[dict[str, Any]]:
    measured = [
        {"training": "sampled" if sampled else "full batch", **_in_a_process(size, sampled, dim, threads)}
        for sampled in (False, True)
        for size in sizes
    ]
    costs = {kind: [row["µs an edge"] for row in measured if row["training"] == kind] for kind in _kinds(measured)}
    return [row | {"by the least": row["µs an edge"] / min(costs[row["training"]])} for row in measured]


def _kinds(rows: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(row["training"] for row in rows))


def _in_a_process(num_edges: int, sampled: bool, dim: int, threads: int) -> dict[str, Any]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_measure, args=(num_edges, sampled, dim, threads, theirs))
    process.start()
    theirs.close()
    row: dict[str, Any] = ours.recv()
    process.join()
    return row


def _measure(num_edges: int, sampled: bool, dim: int, threads: int, pipe: Connection) -> None:
    torch.set_num_threads(threads)
    training = link_training(num_edges, dim)
    with limited_threads(None, training.problem.num_nodes * dim), kept_memory():  # as ``fit`` does
        pipe.send(_measured(training, sampled, dim))


def _measured(training: Training, sampled: bool, dim: int) -> dict[str, Any]:
    problem = training.problem
    settings = replace(training.settings, batch_size="full")
    if sampled:
        settings = replace(training.settings, batch_size=automatic_size(problem.num_items), fanout=_FANOUT)
    plan_batches(settings, problem, training.model.encoder, dim).arrange(problem)
    seconds: list[float] = []
    while len(seconds) <= _FEWEST or (len(seconds) <= _MOST and sum(seconds) < _SECONDS):
        start = time.perf_counter()
        run_epoch(*training, problem.batches(epoch_random(0, len(seconds))))
        seconds.append(time.perf_counter() - start)
    split = problem.split
    count = len(split.train) + len(split.val) + len(split.test)
    least = min(seconds[1:])
    peak = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    return {"edges": count, "nodes": problem.num_nodes, "threads": torch.get_num_threads(), "seconds": least,
            "µs an edge": 1e6 * least / count, "MB": peak}  # fmt: skip


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    """Seconds and memory by edges, both axes logarithmic."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "h2hgcn"  # the same figures make the same file
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for axis, column, title in zip(axes, ("seconds", "MB"), ("seconds of an epoch", "MB at the peak"), strict=True):
        for kind in _kinds(rows):
            chosen = [row for row in rows if row["training"] == kind]
            axis.loglog([row["edges"] for row in chosen], [row[column] for row in chosen], "o-", label=kind)
        axis.set_xlabel("edges")
        axis.set_ylabel(title)
        axis.grid(alpha=0.3)
        axis.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
