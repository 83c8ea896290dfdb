"""The likeliest missing links of a whole graph: `recommend --top`, by an index of FAISS and exactly.

The graph is a random tree, in which a node's parent is among the nodes that were there before the last tenth of its
depth, and each node has an edge with another child of its parent. Points are not trained: a child lies near its parent,
farther from the origin, in a random direction of `--dim` dimensions. The decoder and the terms for degrees and shared
neighbors are fitted to the edges (`LinkPrediction(neighborhood_terms=True)`, one epoch).

`seconds` are those of `top_links_of`, everything included: building the index, measuring its recall, and the search;
`MB` is the peak of the process, with the graph and the fit. `recall` is the share of what exact search finds: of all
pairs for `exact: all`, and else of those pairs that a random part of the nodes (`exact for`) has with all others and
whose scores are no lower than the last one of the list. Exact search of the whole graph is timed where it is run.

    python benchmarks/top_links.py --threads 2
"""

import resource
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import torch
from report import parser, publish
from torch import nn
from torch_geometric.data import Data

from h2hgcn.datasets.splits.pairs import PairSpace, contains, distinct_pairs
from h2hgcn.geometry import lorentz
from h2hgcn.tasks import LinkPrediction
from h2hgcn.training import Run, TrainingSettings, fit
from h2hgcn.training.recommending import top_links_of

# Nodes up to which the whole graph is searched exactly.
_WHOLE = 200_000


class Given(nn.Module):
    """An encoder whose points are given."""

    space = "lorentz"

    def __init__(self, points: torch.Tensor) -> None:
        super().__init__()
        self.dim = points.shape[1] - 1
        self.register_buffer("points", points)

    def forward(self, x: Any, edge_index: Any, edge_weight: Any = None) -> Any:
        return self.points


def tree(count: int, dim: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The edges of a tree and points for its nodes."""
    random = np.random.RandomState(0)
    parents = np.concatenate([[0], (random.rand(count - 1) * np.arange(1, count)).astype(np.int64)])
    vectors = torch.from_numpy(random.standard_normal((count, dim)).astype(np.float32)) / dim**0.5
    depths = np.zeros(count)
    for node in range(1, count):  # parents come first
        depths[node] = depths[parents[node]] + 1
        vectors[node] = vectors[parents[node]] + 0.5 * vectors[node]
    order = np.argsort(parents[1:], kind="stable") + 1
    siblings = np.stack([order[:-1], order[1:]])[:, parents[order[:-1]] == parents[order[1:]]]
    edges = np.concatenate([np.stack([np.arange(1, count), parents[1:]]), siblings[:, ::2]], axis=1)
    lengths = torch.from_numpy(0.25 * (1 + depths)).float()
    points = lorentz.exp_origin(vectors / vectors.norm(dim=1, keepdim=True) * lengths[:, None])
    index = torch.from_numpy(edges)
    return torch.cat([index, index.flip(0)], 1), points


def measure(count: int, dim: int, k: int, index: str, asked: int, threads: int) -> dict[str, Any]:
    torch.set_num_threads(threads)
    edges, points = tree(count, dim)
    data = Data(x=torch.ones(count, 1), edge_index=edges, num_nodes=count)
    settings = TrainingSettings(epochs=1, threads=threads, batch_size="full")
    run = fit(LinkPrediction(neighborhood_terms=True), data, Given(points), settings=settings)
    said: list[str] = []
    start = time.perf_counter()
    found = top_links_of(run, k, index, say=said.append)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    row = {"nodes": count, "edges": edges.shape[1] // 2, "index": index, "seconds": seconds, "MB": round(peak)}
    pairs = np.stack([found["source"], found["target"]], axis=1)
    whole = count <= _WHOLE
    start = time.perf_counter()
    if whole:
        exact = top_links_of(run, k, "exact")
        true = np.stack([exact["source"], exact["target"]], axis=1)
    else:
        true = exact_part(run, pairs, np.sort(np.random.RandomState(1).permutation(count)[:asked]))
    took = time.perf_counter() - start
    space = PairSpace(count)
    recall = contains(np.sort(space.ranks(pairs)), space.ranks(true)).mean()
    return row | {
        "recall": f"{recall:.4f}", "of": len(true), "exact for": "all" if whole else asked,
        "exact, seconds": took if whole else took / asked * count / 2, "recall@10 of the index": said[0].split()[-4],
    }  # fmt: skip


def exact_part(run: Run, pairs: Any, nodes: Any) -> Any:
    """The missing links of some nodes whose scores are at least those of the list ``pairs``."""
    assert run.link_decoder is not None
    scores = run.link_decoder.pair_scores(lambda: run.neighborhoods, run.embeddings, run.model.distance_scale)
    least, space = scores.of(pairs).min(), PairSpace(scores.num_nodes)
    parts = [scores.sharing(nodes, least)]
    parts += [scores.near(nodes[first : first + 4], slice(None), least) for first in range(0, len(nodes), 4)]
    true = distinct_pairs(space, np.concatenate(parts))
    known = np.sort(space.ranks(distinct_pairs(space, run.links.T.numpy())))
    true = true[~contains(known, space.ranks(true))]
    return true[scores.of(true) >= least]


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--sizes", type=int, nargs="+", default=[10**5, 10**6], help="numbers of nodes")
    arguments.add_argument("--dim", type=int, default=64, help="of the points (default: %(default)s)")
    arguments.add_argument("--top", type=int, default=10_000, help="pairs (default: %(default)s)")
    arguments.add_argument("--index", default="hnsw", help="hnsw or ivf (default: %(default)s)")
    arguments.add_argument("--asked", type=int, default=5000, help="nodes with an exact search (default: %(default)s)")
    options = arguments.parse_args()
    rows = []
    for count in options.sizes:  # each in a process of its own, whose memory is measured
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            work = (count, options.dim, options.top, options.index, options.asked, options.threads)
            rows.append(pool.submit(measure, *work).result())
    publish({f"The {options.top:,} likeliest links, dim {options.dim}": rows}, options)


if __name__ == "__main__":
    main()
