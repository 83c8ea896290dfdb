"""The likeliest missing links of many nodes of a run, and the index beside it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from h2hgcn.atomic import atomic_write
from h2hgcn.embeddings.link_index import (
    ExactSearch,
    FaissSearch,
    ScoredSearch,
    Vectors,
    WidenedSearch,
    build_search,
    identity_of,
    load_faiss,
    vectors_of,
)
from h2hgcn.embeddings.many_links import Search, measured_recall, recommend_many
from h2hgcn.embeddings.neighbors import as_links
from h2hgcn.errors import DataError
from h2hgcn.tasks.heads import LinkSearch
from h2hgcn.training.artifacts import coordinates_of
from h2hgcn.training.node_names import NodeNames
from h2hgcn.training.run import Run

# Nodes from which on an index is the default.
LARGE = 50_000

_K_OF_RECALL = 10


def recommend_links_of(
    run: Run,
    nodes: Any = None,
    k: int = 10,
    index: str | None = None,
    direction: str | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    say: Callable[[str], None] = lambda words: None,
) -> dict[str, Any]:
    """Columns ``node``, ``rank``, ``other``, ``distance`` and, if the run has a link decoder, ``probability``: the
    ``k`` likeliest missing links of nodes named by id, or of all.

    ``index`` is ``"exact"``, or ``"hnsw"`` or ``"ivf"`` of FAISS, which is kept in the run's folder; None takes HNSW
    for large graphs. ``direction`` is as in ``Run.recommend``. ``say`` is told of an index that is built, and of its
    recall.
    """
    if run.task.name == "gc":
        raise DataError("links can be recommended within one graph, not among the graphs of a collection")
    if run.data is None:
        raise DataError("the run does not hold its graph; run its command again, which writes it anew")
    names = NodeNames(run.data)
    numbers = np.arange(len(names.ids)) if nodes is None else names.numbers(nodes).reshape(-1)
    space = coordinates_of(run.model.encoder)
    vectors = vectors_of(run.embeddings.numpy(), space)
    edges, euclidean = run.links.numpy(), space == "euclidean"
    way, rank = run.link_order(direction)
    options: dict[str, Any] = {"euclidean": euclidean, "direction": way, "rank": rank}
    search = _search(run, vectors, index or ("exact" if len(names.ids) < LARGE else "hnsw"), edges, options, say)
    found = recommend_many(vectors, edges, numbers, k, search, **options, progress=progress)
    sources, others = np.repeat(found.nodes, k), found.others.ravel()
    columns = {
        "node": names.ids[sources], "rank": np.tile(np.arange(1, k + 1), len(numbers)), "other": names.ids[others],
        "distance": found.distances.ravel() * _scale(run),
    }  # fmt: skip
    probabilities = run.link_probabilities(as_links(np.stack([sources, others], axis=1), way))
    return columns if probabilities is None else columns | {"probability": probabilities}


def _search(
    run: Run, vectors: Vectors, kind: str, edges: Any, options: dict[str, Any], say: Callable[[str], None]
) -> Search:
    """The search by distance, or if ``options`` have a ``rank`` the one that finds what it puts first."""
    exact: Search = ExactSearch(vectors)
    links: LinkSearch | None = None
    if options["rank"] is not None:
        assert run.link_decoder is not None
        incoming, points = options["direction"] == "in", run.embeddings.to(run.device)
        links = run.link_decoder.as_search(lambda: run.neighborhoods, points, incoming, run.model.distance_scale)
        queries = vectors_of(links.queries.cpu().numpy(), coordinates_of(run.model.encoder))
        exact = ScoredSearch(vectors, queries.points, links.terms, links.slope, options["euclidean"], links.of_rows)
        vectors = vectors._replace(queries=queries.queries)
    if kind == "exact":
        return exact
    known = None if run.folder is None else _load(Path(run.folder), kind, vectors)
    index = build_search(vectors, kind) if known is None else known
    assert isinstance(index, FaissSearch)
    search = index if links is None else WidenedSearch(index, links.terms.numpy(), links.two_hops)
    if known is None:
        recall = measured_recall(vectors, edges, search, _K_OF_RECALL, exact=exact, **options)
        say(f"{kind} index of {len(vectors.data):,} points: recall@{_K_OF_RECALL} {recall:.4f} against exact search")
        if run.folder is not None:
            _save(Path(run.folder), index, vectors, recall)
    return search


def _scale(run: Run) -> float:
    return float(torch.as_tensor(run.model.distance_scale).detach())


def _save(folder: Path, search: FaissSearch, vectors: Vectors, recall: float) -> None:
    about = {"kind": search.kind, "points": identity_of(vectors), "recall": recall, "k": _K_OF_RECALL}
    with atomic_write(folder / "index.faiss") as file:
        file.write(load_faiss().serialize_index(search.index).tobytes())
    with atomic_write(folder / "index.json") as file:
        file.write((json.dumps(about, indent=2) + "\n").encode())


def _load(folder: Path, kind: str, vectors: Vectors) -> FaissSearch | None:
    """The index in the folder of a run; None if there is none of this kind."""
    if not (folder / "index.json").exists() or not (folder / "index.faiss").exists():
        return None
    advice = f"delete {folder / 'index.faiss'} and {folder / 'index.json'}, and it is built anew"
    try:
        about = json.loads((folder / "index.json").read_text(encoding="utf-8"))
        if about["points"] != identity_of(vectors):
            raise DataError(f"{folder / 'index.faiss'} belongs to another run: its points are others; {advice}")
        if about["kind"] != kind:
            return None
        faiss = load_faiss()
        index = faiss.deserialize_index(np.fromfile(folder / "index.faiss", np.uint8))
        if index.ntotal != len(vectors.data) or index.d != vectors.data.shape[1]:
            raise DataError(f"{folder / 'index.faiss'} belongs to another run: its size is another; {advice}")
    except (ValueError, KeyError, TypeError, RuntimeError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"the index in {folder} is damaged ({type(error).__name__}); {advice}") from error
    return FaissSearch(index, about["kind"], vectors.queries)
