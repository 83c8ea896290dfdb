"""What size costs: epochs of link prediction by number of edges, sampled and full-batch training, links of all nodes.

Graphs are hyperbolic random graphs with ten times as many edges as nodes. Every epoch is measured in a process of its
own, after one that is not: `seconds` without evaluation, `µs an edge` by it, `MB` at the peak of the whole process.
Sampled epochs have 16 batches, as `--batch-size auto` makes them. PubMed needs `H2HGCN_DATA`; `--plot FILE` draws the
first table.
"""

import multiprocessing
import os
import resource
import statistics
import time
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import torch
from report import parser, publish

from h2hgcn.datasets import load_dataset
from h2hgcn.datasets.named.hyperbolic import generate_hyperbolic
from h2hgcn.embeddings.link_index import ExactSearch, build_search, vectors_of
from h2hgcn.embeddings.many_links import measured_recall
from h2hgcn.geometry import lorentz
from h2hgcn.models import H2HGCN
from h2hgcn.tasks import LinkPrediction
from h2hgcn.tasks.sampling import Sampling
from h2hgcn.training import TrainingSettings, fit
from h2hgcn.training.building import build_model
from h2hgcn.training.loop import run_epoch
from h2hgcn.training.optimizers import build_optimizer
from h2hgcn.training.seeds import epoch_random

_BATCHES = 16


def epoch_costs(num_edges: int, sampled: bool, dim: int, threads: int, pipe: Connection) -> None:
    """For a process of its own."""
    torch.set_num_threads(threads)
    problem: Any = LinkPrediction(scaling="standard").bind(generate_hyperbolic(num_edges))
    settings = TrainingSettings(device="cpu")
    model = build_model(partial(H2HGCN, dim=dim), problem, settings, 0)
    if sampled:
        problem.sampling = Sampling(-(-problem.num_items // _BATCHES), (15, 10))
    optimizer = build_optimizer(model, settings.lr, None, 0.0, "rsgd")
    seconds = []
    for epoch in range(2 if num_edges > 2_000_000 else 4):
        start = time.perf_counter()
        run_epoch(problem, model, optimizer, settings, problem.batches(epoch_random(0, epoch)))
        seconds.append(time.perf_counter() - start)
    count = len(problem.split.train) + len(problem.split.val) + len(problem.split.test)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    pipe.send((problem.num_nodes, count, statistics.median(seconds[1:]), peak))


def epochs_table(sizes: list[int], dim: int, threads: int) -> list[dict[str, Any]]:
    rows = []
    for num_edges in sizes:
        for sampled in (False, True):
            ours, theirs = multiprocessing.get_context("spawn").Pipe()
            process = multiprocessing.get_context("spawn").Process(
                target=epoch_costs, args=(num_edges, sampled, dim, threads, theirs)
            )
            process.start()
            theirs.close()
            nodes, count, seconds, peak = ours.recv()
            process.join()
            rows.append(
                {"edges": count, "nodes": nodes, "training": "sampled" if sampled else "full batch", "seconds": seconds,
                 "µs an edge": 1e6 * seconds / count, "MB": round(peak)}
            )  # fmt: skip
    return rows


def quality_table(name: str, epochs: int) -> list[dict[str, Any]]:
    """Full-batch and sampled training at equal epochs."""
    data = load_dataset(name)
    rows = []
    task: Any = LinkPrediction(message_share=0.5)
    choices: list[tuple[Any, str | None]] = [("full", None), (4096, "15,10")]
    for size, fanout in choices:
        settings = TrainingSettings(epochs=epochs, patience=None, device="cpu", batch_size=size, fanout=fanout)
        run = fit(task, data, partial(H2HGCN, dim=64), settings=settings)
        rows.append(
            {"dataset": name, "batch": size, "epochs": epochs, "test AUC": round(run.metrics["test"]["auc"], 4),
             "seconds": run.result["seconds"]}
        )  # fmt: skip
    return rows


def links_table(count: int, dim: int, asked: int, kinds: list[str]) -> list[dict[str, Any]]:
    """Top-10 links: build and search, beside exact search, of which a part is measured."""
    random = torch.Generator().manual_seed(0)
    centers = torch.randn(max(count // 1000, 1), dim, generator=random)
    vectors = centers[torch.randint(len(centers), (count,), generator=random)]
    vectors += 0.5 * torch.randn(count, dim, generator=random)
    vectors *= (1 + 3 * torch.rand(count, 1, generator=random)) / vectors.norm(dim=1, keepdim=True)
    points = vectors_of(lorentz.exp_origin(vectors).numpy())
    nodes, edges = np.arange(count), np.empty((2, 0), np.int64)
    start = time.perf_counter()
    ExactSearch(points).search(nodes[: min(asked, count)], 21)
    exact = (time.perf_counter() - start) / min(asked, count) * count
    rows = [{"points": count, "index": "exact", "build s": 0.0, "all nodes s": exact, "faster": 1.0, "recall@10": 1.0}]
    for kind in kinds:
        start = time.perf_counter()
        search = build_search(points, kind)
        built = time.perf_counter()
        search.search(nodes, 21)
        seconds = time.perf_counter() - built
        rows.append(
            {"points": count, "index": kind, "build s": built - start, "all nodes s": seconds,
             "faster": exact / seconds, "recall@10": measured_recall(points, edges, search)}
        )  # fmt: skip
    return rows


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    """Seconds and memory by edges, both axes logarithmic."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for axis, column in zip(axes, ("seconds", "MB"), strict=True):
        for kind in ("full batch", "sampled"):
            chosen = [row for row in rows if row["training"] == kind]
            axis.loglog([row["edges"] for row in chosen], [row[column] for row in chosen], "o-", label=kind)
        axis.set_xlabel("edges")
        axis.set_ylabel(f"{column} of an epoch" if column == "seconds" else "MB at the peak")
        axis.grid(alpha=0.3)
        axis.legend()
    figure.savefig(path)


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument(
        "--sizes", type=int, nargs="+", default=[10**4, 10**5, 10**6, 10**7], help="numbers of edges"
    )
    arguments.add_argument("--dim", type=int, default=64)
    arguments.add_argument("--quality", default="pubmed", help="dataset of the second table (default: %(default)s)")
    arguments.add_argument("--epochs", type=int, default=100, help="of the second table")
    arguments.add_argument("--points", type=int, default=10**6, help="of the third table")
    arguments.add_argument("--indexes", nargs="*", default=["hnsw", "ivf"])
    arguments.add_argument("--plot", type=Path, help="file for the log-log plot")
    options = arguments.parse_args()
    torch.set_num_threads(options.threads)
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    epochs = epochs_table(options.sizes, options.dim, options.threads)
    if options.plot is not None:
        plot(epochs, options.plot)
    publish(
        {
            f"An epoch of link prediction, dim {options.dim}": epochs,
            "Sampled and full-batch training at equal epochs": quality_table(options.quality, options.epochs),
            "The ten nearest of all points, dim 32": links_table(options.points, 32, 2000, options.indexes),
        },
        options,
    )


if __name__ == "__main__":
    main()
