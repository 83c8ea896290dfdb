import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import random_points, seeds

from h2hgcn.embeddings import recommend_links
from h2hgcn.errors import DataError
from h2hgcn.geometry import poincare


def edges_of(seed, nodes=30, count=40):
    return np.random.default_rng(seed).integers(nodes, size=(2, count))


def plain_distance(space, first, second):
    """Euclid's, or arcosh of the Lorentz product, which is good for points near the origin."""
    if space == "euclidean":
        return np.sqrt(((first - second) ** 2).sum())
    return np.arccosh(max(1.0, first[0] * second[0] - first[1:] @ second[1:]))


@given(seeds, st.integers(1, 5), st.sampled_from(["lorentz", "euclidean"]))
def test_links_are_those_of_a_plain_search(seed, k, space):
    points, edges, node = random_points(30, 3, 3.0, seed).numpy(), edges_of(seed), seed % 30
    linked = {a for a, b in edges.T if b == node} | {b for a, b in edges.T if a == node} | {node}
    ranked = sorted((plain_distance(space, points[node], points[other]), other) for other in set(range(30)) - linked)
    found = recommend_links(points, edges, node, k, space=space)
    assert found.nodes.tolist() == [other for _, other in ranked[:k]]
    np.testing.assert_allclose(found.distances, [distance for distance, _ in ranked[:k]], rtol=1e-6, atol=1e-6)
    assert found.scores is None


@given(seeds)
def test_permuted_nodes_get_permuted_links(seed):
    points, edges = random_points(30, 4, 5.0, seed).numpy(), edges_of(seed)
    order = np.random.default_rng(seed).permutation(30)
    place = order.argsort()
    found = recommend_links(points, edges, 7, 4)
    permuted = recommend_links(points[order], place[edges], int(place[7]), 4)
    np.testing.assert_array_equal(order[permuted.nodes], found.nodes)


def test_close_points_far_out_keep_their_order():
    radii = 14 + np.array([0.0, 3e-9, 1e-9, 2e-9])
    points = np.stack([np.cosh(radii), np.sinh(radii)], axis=1)
    assert recommend_links(points, [], 0, 3).nodes.tolist() == [2, 3, 1]


def test_equal_distances_come_by_index_and_scores_by_distance():
    points = np.zeros((5, 2))
    found = recommend_links(points, np.empty((2, 0)), 2, 4, lambda distances: 1 / (1 + distances), space="euclidean")
    assert found.nodes.tolist() == [0, 1, 3, 4]
    assert found.scores.tolist() == [1, 1, 1, 1]


def test_fewer_links_where_fewer_are_left():
    found = recommend_links(random_points(5, 2, 1.0).numpy(), [[0, 2], [1, 0]], 0, 3)
    assert sorted(found.nodes.tolist()) == [3, 4]


def test_ball_points():
    points = random_points(20, 3, 3.0)
    found = recommend_links(poincare.from_lorentz(points).numpy(), edges_of(0, 20, 10), 3, 5, space="poincare")
    np.testing.assert_array_equal(found.nodes, recommend_links(points.numpy(), edges_of(0, 20, 10), 3, 5).nodes)


@pytest.mark.parametrize(
    ("edges", "node", "k", "message"),
    [
        ([[0, 2, 0, 0], [1, 0, 3, 4]], 0, 3, "node 0 is linked to all other nodes; there is no link to recommend"),
        ([], 0, 0, "k=0 must be at least 1"),
        ([], 5, 1, "there is no node 5; there are 5 points"),
        ([], -1, 1, "no node -1"),
        ([[0], [9]], 0, 1, "name nodes 0 to 9"),
        ([[0, 1], [1, 2], [2, 3]], 0, 1, "shape"),
        ([[0.5], [1.0]], 0, 1, "integers"),
    ],
)
def test_what_cannot_be_answered_is_refused(edges, node, k, message):
    with pytest.raises(DataError, match=message):
        recommend_links(random_points(5, 2, 1.0).numpy(), edges, node, k)
