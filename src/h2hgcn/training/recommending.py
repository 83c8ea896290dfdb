"""The likeliest missing links of nodes of a run, or of its whole graph, and the index beside it."""

import hashlib
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from h2hgcn.datasets.pairs import PairSpace, distinct_pairs
from h2hgcn.embeddings.nearest import (
    POPULAR,
    Direction,
    ExactSearch,
    FaissSearch,
    ScoredSearch,
    Search,
    Vectors,
    WidenedSearch,
    as_links,
    build_search,
    check_count,
    identity_of,
    load_faiss,
    measured_recall,
    recommend_links,
    recommend_many,
    vectors_of,
)
from h2hgcn.errors import DataError, DataWarning
from h2hgcn.files import atomic_write, stamped, unstamped
from h2hgcn.layers.spaces import check_space
from h2hgcn.tasks.neighborhoods import HUB
from h2hgcn.tasks.top_links import BestPairs, LinkScores, best_pairs, highest
from h2hgcn.training.artifacts import coordinates_of
from h2hgcn.training.folder import RunFolder
from h2hgcn.training.names import NodeNames

if TYPE_CHECKING:
    import pandas

    from h2hgcn.training.run import Run

# Nodes from which on an index is the default, and up to which exact search takes the place of one that misses much.
LARGE, _MOST_EXACT = 50_000, 200_000

# The recall that an index must have, the neighbors and nodes it is measured by, and how much wider one with less is
# searched.
_ENOUGH, _K_OF_RECALL, _NODES_OF_RECALL, _WIDER = 0.95, 10, 500, {"hnsw": 4, "ivf": 3}

# Of the likeliest links of a graph by an index: neighbors of each node that are looked at first, nodes that are worked
# on at once, and the most neighbors that are looked at in a round.
_FIRST, _NODES, _MOST_FOUND = 4, 1 << 16, 1 << 26

# Pairs that are found beyond those that are wanted, since a decoder's logits are rounded to single precision.
_SPARE = 1000

Progress = Callable[[int, int], None]
Say = Callable[[str], None]


class Recommendation(NamedTuple):
    """A node that may be linked, by its id; the probability is None where no decoder of links was trained."""

    node: Any
    probability: float | None
    distance: float


class RecommendedLinks(list[Recommendation]):
    """The likeliest missing links of one node after the other; ``nodes`` and ``ranks`` say whose each is, and its
    place among them.
    """

    def __init__(self, columns: dict[str, Any]) -> None:
        lists = _lists(columns)
        self.nodes, self.ranks = lists["node"], lists["rank"]
        super().__init__(map(Recommendation, lists["other"], lists["probability"], lists["distance"]))

    def to_pandas(self) -> "pandas.DataFrame":
        """The columns ``node``, ``rank``, ``other``, ``distance`` and ``probability``, as ``h2hgcn recommend`` has."""
        frame = import_pandas().DataFrame(self, columns=["other", "probability", "distance"])
        frame.insert(0, "node", self.nodes)
        frame.insert(1, "rank", self.ranks)
        return frame[["node", "rank", "other", "distance", "probability"]]


class TopLink(NamedTuple):
    """A missing link of a graph, by the ids of its nodes; the probability is None where no decoder was trained."""

    source: Any
    target: Any
    probability: float | None
    distance: float


class TopLinks(list[TopLink]):
    """The likeliest missing links of a graph, the likeliest first."""

    def __init__(self, columns: dict[str, Any]) -> None:
        lists = _lists(columns)
        super().__init__(map(TopLink, *(lists[name] for name in TopLink._fields)))

    def to_pandas(self) -> "pandas.DataFrame":
        """The columns ``rank``, ``source``, ``target``, ``distance`` and ``probability``, as ``h2hgcn recommend --top``
        has.
        """
        frame = import_pandas().DataFrame(self, columns=TopLink._fields)
        frame.insert(0, "rank", range(1, 1 + len(self)))
        return frame[["rank", "source", "target", "distance", "probability"]]


def _lists(columns: dict[str, Any]) -> dict[str, list[Any]]:
    """Columns as lists, with a ``probability`` in any case."""
    found = {name: column.tolist() for name, column in columns.items()}
    return found | {"probability": found.get("probability", [None] * len(found["rank"]))}


def import_pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise DataError("to_pandas() needs pandas; install it with: pip install pandas") from None
    return pandas


def recommend_links_of(
    run: "Run",
    nodes: Any = None,
    k: int = 10,
    index: str | None = None,
    direction: str | None = None,
    progress: Progress = lambda done, total: None,
    say: Say = lambda words: None,
) -> dict[str, Any]:
    """Columns ``node``, ``rank``, ``other``, ``distance`` and, if the run has a link decoder, ``probability``: the
    ``k`` likeliest missing links of a node or of several, named by id, or of all. A node with fewer has fewer rows,
    which a ``DataWarning`` says.

    ``index`` is ``"exact"``, or ``"hnsw"`` or ``"ivf"`` of FAISS, which is kept in the run's folder; None takes HNSW
    for large graphs. The links of a single id are exact in any case. ``direction`` is as in ``Run.recommend``. ``say``
    is told of an index that is built, of its recall, and of what is done if that is low.
    """
    names, space = _checked_names(run), coordinates_of(run.model.encoder)
    numbers = np.arange(len(names.ids)) if nodes is None else names.numbers(nodes).reshape(-1)
    (way, rank), edges = run.link_order(direction), run.links.numpy()
    if nodes is not None and not np.ndim(nodes):
        found = recommend_links(
            run.embeddings.numpy(), edges, int(numbers[0]), k, space=space, name=names.ids[numbers[0]].item(),
            direction=way, rank=rank,
        )  # fmt: skip
        counts, others, distances = np.array([len(found.nodes)]), found.nodes, found.distances
        ranks = np.arange(1, len(others) + 1)
    else:
        vectors = vectors_of(run.embeddings.numpy(), space)
        options: dict[str, Any] = {"direction": way, "rank": rank}
        search = _search(run, vectors, _kind(index, len(names.ids)), options, say)
        many = recommend_many(vectors, edges, numbers, k, search, **options, progress=progress)
        there = many.others >= 0
        counts, others, distances = there.sum(1), many.others[there], many.distances[there]
        ranks = 1 + there.nonzero()[1]
    _warn_of_fewer(names.ids[numbers], counts, k)
    sources = np.repeat(numbers, counts)
    columns = {
        "node": names.ids[sources], "rank": ranks, "other": names.ids[others], "distance": distances * run.model.scale
    }  # fmt: skip
    probabilities = run.link_probabilities(as_links(np.stack([sources, others], axis=1), way))
    return columns if probabilities is None else columns | {"probability": probabilities}


def _checked_names(run: "Run") -> NodeNames:
    """The ids of a run's nodes; raises if it has no one graph to recommend links of."""
    if run.task.of_collections:
        raise DataError("links can be recommended within one graph, not among the graphs of a collection")
    if run.data is None:
        raise DataError("the run does not hold its graph; run its command again, which writes it again")
    return NodeNames(run.data)


def _kind(index: str | None, num_nodes: int) -> str:
    return index or ("exact" if num_nodes < LARGE else "hnsw")


def _warn_of_fewer(ids: NDArray[Any], counts: NDArray[np.int64], k: int) -> None:
    fewer = np.flatnonzero(counts < k)
    if not counts.any():
        raise DataError(f"node {ids[0]} is linked to all other nodes; there is no link to recommend")
    if len(fewer):
        first = fewer[counts[fewer].argmin()]
        more = f"; {len(fewer) - 1:,} more nodes have fewer than {k:,}" if len(fewer) > 1 else ""
        note = f"node {ids[first]} has {counts[first]:,} missing links of the {k:,} asked for{more}"
        warnings.warn(note, DataWarning, stacklevel=3)


def top_links_of(
    run: "Run",
    k: int = 100,
    index: str | None = None,
    progress: Progress = lambda done, total: None,
    say: Say = lambda words: None,
) -> dict[str, Any]:
    """Columns ``rank``, ``source``, ``target``, ``distance`` and, if the run has a link decoder, ``probability``: the
    ``k`` likeliest missing links of the whole graph, each pair once, or each direction of it if the decoder is
    directed. Where there are fewer, all, which a ``DataWarning`` says. ``index`` and ``say`` are as above.
    """
    names = _checked_names(run)
    check_count(k)
    decoder, points, num_nodes = run.link_decoder, run.embeddings, len(names.ids)
    space = PairSpace(num_nodes, decoder is not None and decoder.directed)
    known = distinct_pairs(space, run.links.T.numpy())
    left = len(space) - len(known)
    if not left:
        raise DataError("all pairs of nodes are linked; there is no link to recommend")
    if left < k:
        warnings.warn(f"{k:,} links were asked for; {left:,} are left, and these are all", DataWarning, stacklevel=2)
    count, kind, rank = k, _kind(index, num_nodes), run.link_order()[1]
    nearest = None if kind == "exact" else _nearest(run, kind, rank, say)
    # by an index, pairs that share neighbors are looked at even where sharing adds nothing
    graph, zeros = None if nearest is None else run.neighborhoods, np.zeros(num_nodes)
    encoder_space = check_space(run.model.encoder.space)
    by_distance = scores = LinkScores(zeros, zeros, points, space=encoder_space, graph=graph)
    if rank is not None:
        assert decoder is not None
        scores = decoder.pair_scores(lambda: run.neighborhoods, points.to(run.device), run.model.distance_scale)
        count += _SPARE
    if nearest is None:
        best = best_pairs(scores, known, min(count, left), space.directed, progress)
    else:
        best = BestPairs(scores, space, known, min(count, left))
        _add_near(best, scores, nearest, space, progress)
    pairs, _ = best.found()
    if rank is not None:
        pairs = pairs[np.lexsort((*pairs.T[::-1], -rank(pairs)))]
    pairs = pairs[:k]
    columns = {
        "rank": np.arange(1, len(pairs) + 1), "source": names.ids[pairs[:, 0]], "target": names.ids[pairs[:, 1]],
        "distance": np.sqrt(by_distance.squared_distances(pairs)) * run.model.scale,
    }  # fmt: skip
    probabilities = run.link_probabilities(pairs)
    return columns if probabilities is None else columns | {"probability": probabilities}


def _add_near(best: BestPairs, scores: LinkScores, nearest: FaissSearch, space: PairSpace, progress: Progress) -> None:
    """Adds what may be likely: pairs that share neighbors, all pairs of the nodes with the highest terms, and the
    nearest of each node, more of them where the farthest that was found might still be likely enough.
    """
    if scores.graph is not None:
        for rows in scores.sharing_blocks(HUB):
            best.add(scores.sharing(rows, best.least, not space.directed, HUB))
    highest_target = np.zeros((len(scores.sources), 1))
    if scores.sources.any() or scores.targets.any():
        for pairs in scores.near_popular(POPULAR, lambda: best.least, space.directed):
            best.add(space.ordered(pairs))
        others = np.delete(scores.targets, highest(scores.targets, POPULAR), axis=1)
        highest_target = others.max(1, keepdims=True, initial=-np.inf)
    at_no_distance = scores.sources + highest_target
    open_nodes = np.flatnonzero(at_no_distance.max(0) >= best.least)
    count = min(_FIRST + 1, scores.num_nodes)
    while len(open_nodes):
        still_open, done = [], 0
        for nodes in np.array_split(open_nodes, -(-len(open_nodes) * count // (_NODES * _FIRST))):
            found = nearest.search(nodes, count)
            farthest = np.stack([nodes, found[:, -1]], axis=1)
            pairs = np.stack([np.repeat(nodes, count), found.ravel()], axis=1)
            best.add(space.ordered(pairs[(pairs[:, 1] >= 0) & (pairs[:, 0] != pairs[:, 1])]))
            complete = farthest[:, 1] >= 0  # an index may find fewer
            bounds = np.full(len(nodes), -np.inf)
            squares = scores.squared_distances(farthest[complete])
            bounds[complete] = (at_no_distance[:, nodes[complete]] - scores.slopes * squares).max(0)
            still_open.append(nodes[bounds >= best.least])
            done += len(nodes)
            progress(done, len(open_nodes))
        open_nodes = np.concatenate(still_open)
        count = min(4 * count, scores.num_nodes) if count < scores.num_nodes else 0
        if len(open_nodes) * count > _MOST_FOUND or not count:
            return


def _decoded(run: "Run", vectors: Vectors, way: Direction | None, rank: Any) -> tuple[Vectors, Search, Any]:
    """The points as a search by an index wants them, the exact search, and what the decoder prefers; that is None if it
    goes by distance.
    """
    if rank is None:
        return vectors, ExactSearch(vectors), None
    assert run.link_decoder is not None
    space, points = coordinates_of(run.model.encoder), run.embeddings.to(run.device)
    links = run.link_decoder.as_search(lambda: run.neighborhoods, points, way == "in", run.model.distance_scale)
    queries = vectors_of(links.queries.cpu().numpy(), space)
    exact = ScoredSearch(vectors, queries.points, links.own, links.terms, links.slopes, links.of_rows)
    return vectors._replace(queries=queries.queries), exact, links


def _search(run: "Run", vectors: Vectors, kind: str, options: dict[str, Any], say: Say) -> Search:
    """The search by distance, or if ``options`` have a ``rank`` the one that finds what it puts first."""
    way = options["direction"]
    vectors, exact, links = _decoded(run, vectors, way, options["rank"])
    if kind == "exact":
        return exact
    index = _Index(run, kind, vectors)
    search: Search = index.search
    if links is not None:
        search = WidenedSearch(index.search, links.terms, links.two_hops)

    def recall() -> float:
        return measured_recall(vectors, run.links.numpy(), search, _K_OF_RECALL, exact=exact, **options)

    about = index.about if way is None else index.about.setdefault(way, {})
    return search if index.finds_enough(recall, about, say) else exact


def _nearest(run: "Run", kind: str, rank: Any, say: Say) -> FaissSearch | None:
    """The index of a run that finds the nearest points; None if exact search takes its place."""
    vectors = vectors_of(run.embeddings.numpy(), coordinates_of(run.model.encoder))
    vectors, _, links = _decoded(run, vectors, run.link_order()[0], rank)
    index = _Index(run, kind, vectors)

    def recall() -> float:
        nodes = np.sort(np.random.RandomState(0).permutation(len(vectors.data))[:_NODES_OF_RECALL])
        found, true = (search.search(nodes, _K_OF_RECALL) for search in (index.search, ExactSearch(vectors)))
        return float(np.mean([len(np.intersect1d(a, b)) / len(b) for a, b in zip(found, true, strict=True)]))

    about = index.about if links is None else index.about.setdefault("nearest", {})
    return index.search if index.finds_enough(recall, about, say) else None


class _Index:
    """An index of FAISS, which is built if the folder of the run has none, and what is known about it."""

    def __init__(self, run: "Run", kind: str, vectors: Vectors) -> None:
        self._folder = None if run.folder is None else Path(run.folder)
        kept = None if self._folder is None else _load(self._folder, kind, vectors)
        self._is_new = kept is None
        self.search: FaissSearch
        self.about: dict[str, Any]
        if kept is None:
            built = build_search(vectors, kind)
            assert isinstance(built, FaissSearch)
            kept = built, {"kind": kind, "points": identity_of(vectors), "k": _K_OF_RECALL}
        self.search, self.about = kept

    def finds_enough(self, measured: Callable[[], float], about: dict[str, Any], say: Say) -> bool:
        """Whether an index may be used, by its recall, which is kept in ``about``. One that misses too much is searched
        wider; if that is not enough, search is exact unless the graph is too large for that.
        """
        recall: float | None = about.get("recall")
        self.search.width = about.get("width", 1)
        if recall is not None and recall >= _ENOUGH:
            return True
        count, kind = self.search.index.ntotal, self.search.kind
        recall = measured() if recall is None else recall
        words = f"{kind} index of {count:,} points: recall@{_K_OF_RECALL} {recall:.4f} against exact search"
        if recall < _ENOUGH and self.search.width < _WIDER[kind]:
            self.search.width = _WIDER[kind]
            recall = measured()
            words += f", {recall:.4f} if searched wider"
        about |= {"recall": recall, "width": self.search.width}
        if self._folder is not None:
            self._save(self._folder)
        instead = recall < _ENOUGH and count <= _MOST_EXACT
        if instead:
            words += "; search is exact instead"
        elif recall < _ENOUGH:
            words += "; some of the likeliest links are missed, --index exact finds all"
        say(words)
        return not instead

    def _save(self, folder: Path) -> None:
        RunFolder(folder).check_links()
        if self._is_new:
            data = load_faiss().serialize_index(self.search.index).tobytes()
            self.about["index"] = hashlib.sha256(data).hexdigest()
            with atomic_write(folder / "index.faiss") as file:
                file.write(data)
            self._is_new = False
        with atomic_write(folder / "index.json") as file:
            file.write((json.dumps(stamped(self.about), indent=2) + "\n").encode())


def _load(folder: Path, kind: str, vectors: Vectors) -> tuple[FaissSearch, dict[str, Any]] | None:
    """The index in the folder of a run, and what is known about it; None if there is no whole one of this kind and of
    these points.
    """
    try:
        about = unstamped(json.loads((folder / "index.json").read_text(encoding="utf-8")))
        data = (folder / "index.faiss").read_bytes()
        wanted = {"kind": kind, "points": identity_of(vectors), "index": hashlib.sha256(data).hexdigest()}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return None
    if any(about.get(name) != value for name, value in wanted.items()):
        return None
    index = load_faiss().deserialize_index(np.frombuffer(data, np.uint8))
    return FaissSearch(index, about["kind"], vectors.queries), about
