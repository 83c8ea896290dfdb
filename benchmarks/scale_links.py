"""The nearest of all points of a large embedding, by an index and exactly."""

import time
from typing import Any

import numpy as np
import torch

from h2hgcn.embeddings.nearest import ExactSearch, build_search, measured_recall, recommend_many, vectors_of
from h2hgcn.geometry import lorentz

_K = 10

# Nodes on which exact search is measured.
_ASKED = 2000


def links_table(count: int, dim: int, kinds: list[str]) -> list[dict[str, Any]]:
    points = vectors_of(lorentz.exp_origin(_clustered(count, dim)).numpy())
    nodes, edges = np.arange(count), np.empty((2, 0), np.int64)
    some = nodes[:: max(count // _ASKED, 1)]
    start = time.perf_counter()
    recommend_many(points, edges, some, _K, ExactSearch(points))
    exact = (time.perf_counter() - start) / len(some) * count
    rows = [{"points": count, "index": "exact", "build s": 0.0, "all nodes s": exact, "faster": 1.0, "recall@10": "1"}]
    for kind in kinds:
        start = time.perf_counter()
        search = build_search(points, kind)
        built = time.perf_counter()
        recommend_many(points, edges, nodes, _K, search)
        seconds = time.perf_counter() - built
        recall = measured_recall(points, edges, search, _K)
        rows.append(
            {"points": count, "index": kind, "build s": built - start, "all nodes s": seconds,
             "faster": exact / seconds, "recall@10": f"{recall:.4f}"}
        )  # fmt: skip
    return rows


def _clustered(count: int, dim: int) -> torch.Tensor:
    """Tangent vectors at the origin around a thousandth as many directions, of lengths from 1 to 4."""
    random = torch.Generator().manual_seed(0)
    centers = torch.randn(max(count // 1000, 1), dim, generator=random)
    vectors = centers[torch.randint(len(centers), (count,), generator=random)]
    vectors += 0.5 * torch.randn(count, dim, generator=random)
    return vectors * (1 + 3 * torch.rand(count, 1, generator=random)) / vectors.norm(dim=1, keepdim=True)
