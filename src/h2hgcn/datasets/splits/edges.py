"""Splits for link prediction: a clean one, and the one that HGCN's and H2H-GCN's published figures were made with."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from h2hgcn.datasets.splits.legacy_shuffle import shuffle_head
from h2hgcn.datasets.splits.pairs import Pairs, PairSpace, Ranks, contains, distinct_pairs, nth_absent
from h2hgcn.datasets.splits.splits import EdgeSplit, Protocol, check_fractions, check_protocol, check_seed
from h2hgcn.errors import DataError, DataWarning

# Pairs are drawn and rejected up to this share of edges among all pairs; above it the absent ones are numbered.
_SPARSE = 0.5


def split_edges(
    graph: Any, val: float = 0.05, test: float = 0.1, *, seed: int = 1234, protocol: Protocol = "clean"
) -> EdgeSplit:
    """Splits the edges of a PyG ``Data``.

    ``"clean"``: edges are shared out at random; negatives are distinct pairs of different nodes without an edge,
    none of them in two parts. ``"legacy"``: HGCN's procedure bit for bit, self-pairs among edges and negatives
    included. The same seed gives the same split everywhere: NumPy's ``RandomState`` is frozen.
    """
    check_protocol(protocol)
    check_fractions(val, test)
    check_seed(seed)
    directed = bool(getattr(graph, "directed", False))
    if protocol == "legacy" and directed:
        raise DataError("the legacy protocol knows undirected graphs only; use protocol='clean'")
    space = PairSpace(int(graph.num_nodes), directed, with_self=protocol == "legacy")
    edges = distinct_pairs(space, _pairs_of(graph, with_removed_loops=protocol == "legacy"))
    num_val, num_test = int(len(edges) * val), int(len(edges) * test)
    random = np.random.RandomState(seed)
    ranks = space.ranks(edges)  # sorted, since distinct pairs come in row-major order
    random.shuffle(edges)
    draw = _legacy_negatives if protocol == "legacy" else _clean_negatives
    negatives = space.pairs(draw(random, space, ranks, num_val + num_test))
    train = edges[num_val + num_test :]
    _warn_of_self_pairs(edges, negatives)
    for part, share, count in (("val", val, num_val), ("test", test, num_test)):
        if share and not count:
            warnings.warn(f"{len(edges)} edges leave none for {part}={share}", DataWarning, stacklevel=2)
    return EdgeSplit(
        train=train, val=edges[:num_val], test=edges[num_val : num_val + num_test],
        val_neg=negatives[:num_val], test_neg=negatives[num_val:],
        num_nodes=space.num_nodes, seed=seed, protocol=protocol, directed=directed,
        train_weights=_train_weights(graph, space, train),
    )  # fmt: skip


def draw_negatives(split: EdgeSplit, count: int, random: np.random.RandomState | np.random.Generator | int) -> Pairs:
    """``count`` pairs ``(count, 2)`` to train against, drawn afresh with replacement from all that are not training
    edges. ``random`` is one of NumPy's generators, which goes on from call to call, or a seed.

    Pairs held out for validation and test may be among them, in both protocols: to leave them out would tell the
    model which pairs these are. Legacy has self-pairs, clean has none.
    """
    space = split.space
    known = np.sort(space.ranks(split.train))
    if count and len(known) >= len(space):
        raise DataError(f"all {len(space)} pairs of nodes are training edges; there are no negatives to draw")
    if isinstance(random, int):
        random = np.random.RandomState(random)
    integers = random.integers if isinstance(random, np.random.Generator) else random.randint
    return space.pairs(nth_absent(known, integers(0, len(space) - len(known), count, dtype=np.int64)))


def _pairs_of(graph: Any, with_removed_loops: bool) -> Pairs:
    if graph.edge_index is None:
        raise DataError("the graph has no edge_index; link prediction needs edges")
    pairs = graph.edge_index.cpu().numpy().T
    loops = getattr(graph, "self_loops", None)
    if with_removed_loops and loops is not None:
        pairs = np.concatenate([pairs, np.stack([loops.numpy(), loops.numpy()], axis=1)])
    return pairs


def _legacy_negatives(random: np.random.RandomState, space: PairSpace, edges: Ranks, count: int) -> Ranks:
    absent = len(space) - len(edges)
    if absent >= 2**32:
        raise DataError(
            f"the legacy protocol shuffles every pair of nodes, of which {space.num_nodes} nodes have {len(space)}; "
            "use protocol='clean'"
        )
    _check_enough(absent, count)
    return nth_absent(edges, shuffle_head(random, absent, count))


def _clean_negatives(random: np.random.RandomState, space: PairSpace, edges: Ranks, count: int) -> Ranks:
    absent = len(space) - len(edges)
    _check_enough(absent, count)
    if len(edges) + count > _SPARSE * len(space):
        return nth_absent(edges, random.permutation(absent)[:count])
    drawn = np.empty(0, dtype=np.int64)
    while len(drawn) < count:
        fresh = random.randint(0, len(space), 2 * count, dtype=np.int64)
        drawn = np.concatenate([drawn, fresh[~contains(edges, fresh)]])
        drawn = drawn[np.sort(np.unique(drawn, return_index=True)[1])]  # the first of equals, in the order drawn
    return drawn[:count]


def _train_weights(graph: Any, space: PairSpace, train: Pairs) -> NDArray[np.float32] | None:
    weights = getattr(graph, "edge_weight", None)
    if weights is None:
        return None
    pairs = graph.edge_index.cpu().numpy().T
    inside = np.ones(len(pairs), dtype=bool) if space.with_self else pairs[:, 0] != pairs[:, 1]
    ranks, first = np.unique(space.ranks(space.canonical(pairs)), return_index=True)
    values: NDArray[np.float32] = weights.cpu().numpy().astype(np.float32)[inside][first]
    return values[np.searchsorted(ranks, space.ranks(train))]


def _warn_of_self_pairs(edges: Pairs, negatives: Pairs) -> None:
    counts = [int((pairs[:, 0] == pairs[:, 1]).sum()) for pairs in (edges, negatives)]
    if any(counts):
        warnings.warn(
            f"the legacy split has {counts[0]} self-pairs among its edges and {counts[1]} among its negatives; "
            "protocol='clean' has none",
            DataWarning,
            stacklevel=3,
        )


def _check_enough(absent: int, count: int) -> None:
    if absent < count:
        raise DataError(
            f"{count} pairs without an edge are needed to validate and test against, but the graph has {absent}; "
            "lower val and test"
        )
