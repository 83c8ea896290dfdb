"""The likeliest missing links of a whole graph: `recommend --top`, by an index of FAISS and exactly.

The graph is a tree, each node of which has ten children; every other child has an edge with the next. Points are not
trained: children lie in random directions around their parent's, the narrower the deeper, and farther from the origin.
The decoder is fitted to the edges in one epoch, with the terms for degrees and shared neighbors that the defaults for
graphs of your own have (`with terms`); without them, order is `by distance`.

The distances from the origin were chosen so that HNSW finds most neighbors; of points twice as far out it misses more,
which a wider search makes up for in part. That case is not measured here. Siblings share a neighbor, so many of the
likeliest pairs are candidates whatever the index finds.

`seconds` are those of `top_links_of`, everything included: building the index, measuring its recall, and the search;
`CPU s` is the time of all cores, by which a busy machine can be told; `MB` is the peak of the process, with the graph
and the fit. `recall` is the share of `true` pairs, found by exact search, that are in the list: in graphs of up to
200,000 nodes all of the list that exact search makes; else the pairs that 4,000 random nodes have with all others and
whose scores are no lower than the last one of the list. `exact s` is how long exact search of the whole graph took.

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

from h2hgcn.datasets.pairs import PairSpace, contains, distinct_pairs
from h2hgcn.geometry import lorentz
from h2hgcn.tasks import LinkPrediction
from h2hgcn.training import Run, TrainingSettings, fit
from h2hgcn.training.recommending import top_links_of

# Children of a node, the deviation of their directions by depth, and how much farther from the origin they are.
_CHILDREN, _NARROWER, _STEP = 10, 0.6, 0.4

# Nodes up to which the whole graph is searched exactly, and nodes of larger graphs that are.
_WHOLE, _ASKED = 200_000, 4000


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
    random, children = torch.Generator().manual_seed(0), torch.arange(1, count)
    parents, vectors, depths = (children - 1) // _CHILDREN, torch.empty(count, dim), torch.zeros(count)
    vectors[0] = torch.randn(dim, generator=random)
    first, last, depth = 1, 1 + _CHILDREN, 1
    while first < count:
        level = slice(first, min(last, count))
        noise = torch.randn(level.stop - level.start, dim, generator=random)
        vectors[level] = vectors[parents[level.start - 1 : level.stop - 1]] + _NARROWER**depth * noise
        depths[level] = depth
        first, last, depth = last, last * _CHILDREN + 1, depth + 1
    siblings = torch.stack([children[:-1], children[1:]])[:, (parents[:-1] == parents[1:]) & (children[1:] % 2 == 0)]
    edges = torch.cat([torch.stack([children, parents]), siblings], 1)
    lengths = (_STEP * (1 + depths)).unsqueeze(1)
    points = lorentz.exp_origin(vectors / vectors.norm(dim=1, keepdim=True) * lengths)
    return torch.cat([edges, edges.flip(0)], 1), points


def measure(count: int, dim: int, k: int, index: str, threads: int) -> list[dict[str, Any]]:
    """A row with the neighborhoods' terms, and one without."""
    torch.set_num_threads(threads)
    edges, points = tree(count, dim)
    data = Data(x=torch.ones(count, 1), edge_index=edges, num_nodes=count)
    settings = TrainingSettings(epochs=1, threads=threads, batch_size="full")
    run = fit(LinkPrediction(neighborhood_terms=True), data, Given(points), settings=settings)
    with_terms = measured_row(run, k, index)
    assert run.link_decoder is not None
    run.link_decoder.neighborhood = None
    return [with_terms, measured_row(run, k, index)]


def measured_row(run: Run, k: int, index: str) -> dict[str, Any]:
    count = run.data.num_nodes
    said: list[str] = []
    start, before = time.perf_counter(), time.process_time()
    found = top_links_of(run, k, index, say=said.append)
    seconds, processor = time.perf_counter() - start, time.process_time() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    pairs, space = np.stack([found["source"], found["target"]], axis=1), PairSpace(count)
    start = time.perf_counter()
    if count <= _WHOLE:
        exact = top_links_of(run, k, "exact")
        true = np.stack([exact["source"], exact["target"]], axis=1)
    else:
        true = exact_part(run, pairs, np.sort(np.random.RandomState(1).permutation(count)[:_ASKED]))
    took = f"{time.perf_counter() - start:.3g}" if count <= _WHOLE else "-"
    recall = contains(np.sort(space.ranks(pairs)), space.ranks(true)).mean()
    return {
        "decoder": "by distance" if run.link_order()[1] is None else "with terms",
        "nodes": count, "edges": run.links.shape[1] // 2, "seconds": seconds, "CPU s": processor, "MB": round(peak),
        "recall": f"{recall:.4f}", "true": len(true), "exact s": took, "said": said[0],
    }  # fmt: skip


def exact_part(run: Run, pairs: Any, nodes: Any) -> Any:
    """The missing links of some nodes whose scores are at least those of the list ``pairs``."""
    decoder = run.link_decoder
    assert decoder is not None
    scores = decoder.pair_scores(lambda: run.neighborhoods, run.embeddings, run.model.distance_scale)
    least, space = scores.of(pairs).min(), PairSpace(scores.num_nodes)
    parts = [scores.near(nodes[first : first + 16], slice(None), least) for first in range(0, len(nodes), 16)]
    if scores.graph is not None:
        parts.append(scores.sharing(nodes, least))
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
    options = arguments.parse_args()
    rows: list[dict[str, Any]] = []
    for count in options.sizes:  # each in a process of its own, for its memory
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            work = (count, options.dim, options.top, options.index, options.threads)
            rows += pool.submit(measure, *work).result()
    publish({f"The {options.top:,} likeliest links, dim {options.dim}": rows}, options)


if __name__ == "__main__":
    main()
