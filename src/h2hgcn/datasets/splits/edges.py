"""Splits for link prediction: a clean one, and the one that HGCN's and H2H-GCN's published figures were made with."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from h2hgcn.datasets.edge_arrays import check_nodes, edge_ends, edge_weights
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
    if getattr(graph, "edge_index", None) is None:
        raise DataError("the graph has no edge_index; link prediction needs edges")
    given, weights, loops = edge_ends(graph).T, edge_weights(graph), _removed_loops(graph, protocol)
    if len(loops) and weights is not None:
        raise DataError("the legacy protocol puts back self-loops, which have no weights here; use protocol='clean'")
    space = PairSpace(int(graph.num_nodes or 0), directed, with_self=protocol == "legacy")
    edges = distinct_pairs(space, np.concatenate([given, loops]))
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
        train_weights=None if weights is None else _weights_of(train, space, given, weights),
    )  # fmt: skip


def draw_negatives(split: EdgeSplit, count: int, random: np.random.RandomState | np.random.Generator | int) -> Pairs:
    """``count`` pairs ``(count, 2)`` to train against, drawn afresh with replacement from all that are not training
    edges. ``random`` is one of NumPy's generators, which goes on from call to call, or a seed.

    Pairs held out for validation and test may be among them, in both protocols: to leave them out would tell the
    model which pairs these are. Legacy has self-pairs, clean has none.
    """
    if not isinstance(count, int | np.integer) or count < 0:
        raise DataError(f"count={count!r} must be a whole number, 0 or more")
    if not isinstance(random, np.random.RandomState | np.random.Generator):
        check_seed(random)
        random = np.random.RandomState(random)
    space = split.space
    known = np.sort(space.ranks(split.train))
    if count and len(known) >= len(space):
        raise DataError(f"all {len(space)} pairs of nodes are training edges; there are no negatives to draw")
    integers = random.integers if isinstance(random, np.random.Generator) else random.randint
    return space.pairs(nth_absent(known, integers(0, max(len(space) - len(known), 1), count, dtype=np.int64)))


def _removed_loops(graph: Any, protocol: Protocol) -> Pairs:
    """The self-loops that a reader left out of the edges, and that the legacy protocol counts among them."""
    loops = getattr(graph, "self_loops", None)
    if protocol != "legacy" or loops is None:
        return np.empty((0, 2), dtype=np.int64)
    nodes = loops.cpu().numpy().astype(np.int64)
    check_nodes(graph, "self_loops", nodes)
    return np.stack([nodes, nodes], axis=1)


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


def _weights_of(train: Pairs, space: PairSpace, given: Pairs, weights: NDArray[np.float32]) -> NDArray[np.float32]:
    inside = np.ones(len(given), dtype=bool) if space.with_self else given[:, 0] != given[:, 1]
    ranks, first = np.unique(space.ranks(space.canonical(given)), return_index=True)
    return weights[inside][first][np.searchsorted(ranks, space.ranks(train))]


def _warn_of_self_pairs(edges: Pairs, negatives: Pairs) -> None:
    counts = {"edges": edges, "negatives": negatives}
    found = [
        f"{n} among its {name}" for name, pairs in counts.items() if (n := int((pairs[:, 0] == pairs[:, 1]).sum()))
    ]
    if found:
        warnings.warn(
            f"the legacy split has self-pairs: {' and '.join(found)}; protocol='clean' has none",
            DataWarning,
            stacklevel=3,
        )


def _check_enough(absent: int, count: int) -> None:
    if absent < count:
        raise DataError(
            f"{count} pairs without an edge are needed to validate and test against, but the graph has {absent}; "
            "lower val and test"
        )
