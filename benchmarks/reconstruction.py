"""Reconstruction of hierarchies: `h2hgcn train --task embed` against gensim's `PoincareModel`.

Every link of the transitive closure of a taxonomy is learned, nothing is held out. Both embeddings are measured by the
same code, `h2hgcn.tasks.embedding`: mean average precision (MAP) and mean rank (best 1) of the nodes that a node
is linked with, ancestors and descendants; "ancestors" ranks the ancestors of each node alone and counts its descendants
among the others, as Nickel and Kiela (2017) and gensim do. gensim's own evaluation also counts the node itself as one
that is nearer than its ancestors; the last column has that figure.

gensim learns with 10 negatives, 10 epochs of burn-in and 50 epochs, its defaults otherwise; h2hgcn with its default
settings. Seconds are CPU seconds of training in one thread. The generated taxonomies are ragged random trees
(`h2hgcn.datasets.shape.random_taxonomy`); `--mammals` adds the mammals of WordNet (Debian's package wordnet-base),
`--edges` adds files of edges from child to parent, or of a closure.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from graph_sources import mammal_hypernyms
from report import parser, publish
from torch import Tensor
from torch_geometric.data import Data

from h2hgcn.datasets import load_graph
from h2hgcn.datasets.shape import random_taxonomy, transitive_closure
from h2hgcn.experiments import read_experiment
from h2hgcn.tasks.embedding import links_without_loops, rank_metrics
from h2hgcn.training import fit

GENSIM = {"negative": 10, "burn_in": 10}
GENSIM_EPOCHS = 50


def closures(nodes: list[int], files: list[str], mammals: bool) -> dict[str, Data]:
    """Closures to embed, by name."""
    graphs = {}
    for count in nodes:
        edges = torch.from_numpy(random_taxonomy(count).T.copy())
        graphs[f"random taxonomy, {count:,} nodes"] = _closure(edges, count)
    if mammals:
        hypernyms = [(node, other) for node, above in mammal_hypernyms().items() for other in above]
        data = load_graph(hypernyms, directed=True)
        graphs[f"mammals of WordNet, {data.num_nodes:,} nodes"] = _closure(data.edge_index, data.num_nodes)
    for file in files:
        data = load_graph(Path(file), directed=True)
        graphs[f"{Path(file).stem}, {data.num_nodes:,} nodes"] = _closure(data.edge_index, data.num_nodes)
    return graphs


def _closure(edges: Tensor, num_nodes: int) -> Data:
    links = transitive_closure(edges, num_nodes)
    return Data(x=torch.ones(num_nodes, 1), edge_index=links, num_nodes=num_nodes, directed=True)


def ours(data: Data, dim: int, seed: int, model: str) -> tuple[Tensor, Any, float]:
    """Points, their space, and CPU seconds of the default command's settings."""
    flags = {"data": {"edges": "closure.csv"}, "task": {"name": "embed"}, "model": {"name": model, "dim": dim}}
    experiment = read_experiment(flags)
    start = time.process_time()
    run = fit(experiment.task, data, experiment.encoder, seed=seed, settings=experiment.settings)
    return run.embeddings, run.model.encoder.space, time.process_time() - start


def gensims(data: Data, dim: int, seed: int) -> tuple[Tensor, Any, float]:
    """The same of gensim's model."""
    try:
        from gensim.models.poincare import PoincareModel
    except ImportError:
        raise SystemExit("gensim is not installed; pip install 'h2hgcn[bench]', or leave it out with --ours") from None
    relations = [(str(a), str(b)) for a, b in data.edge_index.T.tolist()]
    start = time.process_time()
    model = PoincareModel(relations, size=dim, seed=seed, **GENSIM)
    model.train(epochs=GENSIM_EPOCHS)
    seconds = time.process_time() - start
    vectors = np.stack([model.kv.get_vector(str(node)) for node in range(data.num_nodes)])
    return torch.from_numpy(vectors.astype(np.float64)), "ball", seconds


def row(name: str, data: Data, dim: int, found: tuple[Tensor, Any, float]) -> dict[str, Any]:
    points, space, seconds = found
    both, directed = (links_without_loops(data.edge_index, data.num_nodes, directed=way) for way in (False, True))
    metrics = rank_metrics(points, space, both)
    ancestors = rank_metrics(points, space, directed)
    gensims_own = rank_metrics(points, space, directed, count_self=True)
    return {
        "dim": dim,
        "system": name,
        "MAP": round(metrics["map"], 4),
        "mean rank": round(metrics["mean_rank"], 2),
        "ancestors MAP": round(ancestors["map"], 4),
        "ancestors mean rank": round(ancestors["mean_rank"], 2),
        "seconds": round(seconds, 1),
        "gensim's own MAP": round(gensims_own["map"], 4),
    }


def compare(data: Data, dims: list[int], options: Any) -> list[dict[str, Any]]:
    rows = []
    for dim in dims:
        rows += [row(f"h2hgcn, {model}", data, dim, ours(data, dim, options.seed, model)) for model in options.models]
        if not options.ours:
            rows.append(row("gensim", data, dim, gensims(data, dim, options.seed)))
    return rows


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--nodes", type=int, nargs="*", default=[1000, 3000], help="sizes of generated taxonomies")
    arguments.add_argument("--mammals", action="store_true", help="also the mammals of WordNet")
    arguments.add_argument("--edges", nargs="*", default=[], help="files of edges of taxonomies")
    arguments.add_argument("--dims", type=int, nargs="+", default=[2, 5, 10, 50], help="dimensions")
    arguments.add_argument("--models", nargs="+", default=["hyp"], help="our models (default: %(default)s)")
    arguments.add_argument("--seed", type=int, default=0, help="of both systems (default: %(default)s)")
    arguments.add_argument("--ours", action="store_true", help="leave gensim out")
    options = arguments.parse_args()
    torch.set_num_threads(options.threads)
    graphs = closures(options.nodes, options.edges, options.mammals)
    tables = {
        f"{name}, {graph.edge_index.shape[1]:,} links": compare(graph, options.dims, options)
        for name, graph in graphs.items()
    }
    publish(tables, options)


if __name__ == "__main__":
    main()
