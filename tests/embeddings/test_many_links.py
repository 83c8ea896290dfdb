import numpy as np
import pytest
from samples import random_points

from h2hgcn.embeddings import nearest as link_index
from h2hgcn.embeddings import nearest as many_links
from h2hgcn.embeddings import recommend_links
from h2hgcn.embeddings.nearest import build_search, identity_of, measured_recall, recommend_many, vectors_of
from h2hgcn.errors import DataError

KINDS = ["exact", "hnsw", "ivf"]


def edges_of(num_nodes, num_edges, seed=0):
    return np.random.RandomState(seed).randint(0, num_nodes, (2, num_edges))


def points_of(space, count=400, radius=3.0):
    points = random_points(count, 5, radius)
    if space == "euclidean":
        return points[:, 1:].numpy()
    return (points if space == "lorentz" else points[:, 1:] / (1 + points[:, :1])).numpy()


def search_of(vectors, kind):
    if kind != "exact":
        pytest.importorskip("faiss")
    return build_search(vectors, kind)


@pytest.mark.parametrize("space", ["lorentz", "poincare", "euclidean"])
def test_an_exact_search_is_that_of_each_node(space, monkeypatch):
    monkeypatch.setattr(many_links, "_BLOCK", 64)
    monkeypatch.setattr(link_index, "_PRODUCTS", 5000)
    points, edges = points_of(space), edges_of(400, 3000)
    vectors = vectors_of(points, space)
    told = []
    found = recommend_many(
        vectors, edges, np.arange(400), 7, build_search(vectors, "exact"), progress=lambda *done: told.append(done)
    )
    for node in range(0, 400, 13):
        wanted = recommend_links(points, edges, node, 7, space=space)
        assert found.others[node].tolist() == wanted.nodes.tolist()
        assert found.distances[node] == pytest.approx(wanted.distances, rel=1e-9)
    assert told[-1] == (400, 400)


@pytest.mark.parametrize("radius", [3.0, 8.0])
@pytest.mark.parametrize("kind", ["hnsw", "ivf"])
def test_an_index_finds_nearly_all(kind, radius):
    vectors = vectors_of(points_of("lorentz", 3000, radius))
    search = search_of(vectors, kind)
    assert measured_recall(vectors, edges_of(3000, 9000), search) >= (0.95 if kind == "hnsw" else 0.5)


def test_recall_is_that_of_the_search():
    vectors = vectors_of(points_of("lorentz"))
    exact = build_search(vectors, "exact")

    class Half:
        def search(self, nodes, count):
            return np.where(np.arange(count) % 2, exact.search(nodes, count), -1)

    assert measured_recall(vectors, edges_of(400, 10), exact) == 1.0
    assert measured_recall(vectors, edges_of(400, 10), Half()) < 0.8


@pytest.mark.parametrize("kind", KINDS)
def test_a_hub_gets_its_links_too(kind):
    """All of the nearest are linked, so the search has to go far."""
    points = points_of("lorentz")
    hub = int(points[:, 0].argmin())
    near = recommend_links(points, np.empty((2, 0), np.int64), hub, 395).nodes
    edges = np.stack([np.full(390, hub), near[:390]])
    vectors = vectors_of(points)
    found = recommend_many(vectors, edges, np.array([hub]), 5, search_of(vectors, kind))
    assert found.others[0].tolist() == near[390:395].tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_a_node_with_fewer_missing_links_gets_fewer(kind, monkeypatch):
    """Node 0 knows everybody, node 1 all but three; the others are as they would be without them."""
    monkeypatch.setattr(many_links, "_FOUND", 500)
    points = points_of("lorentz", 60)
    edges = np.array([(0, other) for other in range(1, 60)] + [(other, 1) for other in range(2, 57)]).T
    vectors = vectors_of(points)
    found = recommend_many(vectors, edges, np.arange(60), 5, search_of(vectors, kind))
    assert found.others[0].tolist() == [-1] * 5
    assert np.isinf(found.distances[0]).all()
    assert sorted(found.others[1].tolist()) == [-1, -1, 57, 58, 59]
    for node in range(1, 60):
        wanted = recommend_links(points, edges, node, 5)
        assert found.others[node, : len(wanted.nodes)].tolist() == wanted.nodes.tolist()


def test_close_points_are_told_apart():
    """At radius 7, inner products in single precision are off by more than these distances differ."""
    points = random_points(1, 4, 1.0).expand(60, 5).clone()
    directions = random_points(60, 4, 1.0, seed=3)[:, 1:]
    far = directions[:1] / directions[:1].norm()
    tangents = 7 * far + 1e-4 * directions
    radius = tangents.norm(dim=1, keepdim=True)
    points = np.concatenate([radius.cosh().numpy(), (tangents / radius * radius.sinh()).numpy()], 1)
    vectors = vectors_of(points)
    found = recommend_many(vectors, np.empty((2, 0)), np.arange(60), 59, build_search(vectors, "exact"))
    assert (np.diff(found.distances, axis=1) >= 0).all()
    assert found.others[0].tolist() == recommend_links(points, np.empty((2, 0)), 0, 59).nodes.tolist()


def test_other_points_have_another_identity():
    one, other = (vectors_of(points_of("lorentz", radius=radius)) for radius in (1.0, 2.0))
    assert identity_of(one) == identity_of(vectors_of(points_of("lorentz", radius=1.0))) != identity_of(other)


def test_bad_input(monkeypatch):
    vectors = vectors_of(points_of("lorentz", 10))
    exact = build_search(vectors, "exact")
    with pytest.raises(DataError, match="index='tree' is not known; use one of exact, hnsw, ivf"):
        build_search(vectors, "tree")
    with pytest.raises(DataError, match="at least 1"):
        recommend_many(vectors, np.empty((2, 0)), np.arange(2), 0, exact)
    with pytest.raises(DataError, match="too small for an index"):
        measured_recall(vectors, np.empty((2, 0)), exact)
    monkeypatch.setattr(link_index.importlib, "import_module", lambda name: (_ for _ in ()).throw(ImportError(name)))
    with pytest.raises(DataError, match=r"pip install 'h2hgcn\[scale\]'"):
        build_search(vectors, "hnsw")
