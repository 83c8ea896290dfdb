"""What a page is given: columns, links, points, and what is near."""

import numpy as np
import pytest
import torch
from samples import random_points
from scenes import tree, tree_scene

from h2hgcn.embeddings import recommend_links
from h2hgcn.errors import DataError
from h2hgcn.explorer import make_scene
from h2hgcn.explorer.export import make_payload
from h2hgcn.explorer.scene import MISSING, OTHER, make_column
from h2hgcn.geometry import lorentz, poincare

POINTS = random_points(60, 5, 3.0)


def test_points_of_the_disk_are_shown_as_they_are():
    points, _, _ = tree()
    scene = tree_scene()
    np.testing.assert_allclose(scene.points, points, atol=1e-12)
    assert "origin of the space" in scene.note
    radius = next(column for column in scene.columns if column.name == "radius")
    np.testing.assert_allclose(radius.values, 2 * np.arctanh(np.linalg.norm(points, axis=1)), rtol=1e-6)


@pytest.mark.parametrize("space", ["lorentz", "poincare", "klein"])
def test_points_of_more_dimensions_are_projected(space):
    given = {"lorentz": POINTS, "poincare": poincare.from_lorentz(POINTS), "klein": POINTS[:, 1:] / POINTS[:, :1]}
    scene = make_scene(given[space].numpy(), range(60), space=space)
    assert scene.points.shape == (60, 2)
    assert "(of 5)" in scene.note
    assert scene.dim == 5


def test_euclidean_points_are_refused():
    with pytest.raises(DataError, match="Euclidean"):
        make_scene(np.eye(3), range(3), space="euclidean")


def test_links_come_both_ways_and_once():
    scene = make_scene(np.zeros((5, 2)), range(5), None, "poincare", [[0, 1, 2, 2, 3], [1, 0, 2, 1, 1]])
    assert scene.links.toarray().nonzero()[1].tolist() == [1, 0, 2, 3, 1, 1]
    assert make_payload(scene).about["links"] == 3
    degree = next(column for column in scene.columns if column.name == "degree")
    assert degree.values.tolist() == [1, 3, 1, 1, 0]
    with pytest.raises(DataError, match="there are 2 points"):
        make_scene(np.zeros((2, 2)), range(2), None, "poincare", [[0], [2]])


def test_columns_of_numbers():
    column = make_column("size", [1.5, np.nan, -np.inf, 4.0])
    assert column.described() == {
        "name": "size", "kind": "number", "low": 1.5, "middle": 2.75, "high": 4.0, "whole": False
    }  # fmt: skip
    assert np.isnan(column.values).tolist() == [False, True, True, False]
    assert make_column("n", [1, 2]).values.dtype == np.float32
    assert make_column("n", [1, 2**40 + 1]).values.tolist() == [1, 2**40 + 1]
    assert make_column("n", [1e300, 0.0]).values.tolist() == [1e300, 0.0]
    assert make_column("n", [np.nan]).described()["high"] == 0


def test_columns_of_names():
    column = make_column("kind", np.array(["10", "9", None, "b", "9"], dtype=object))
    assert column.categories == ("9", "10", "b")
    assert column.values.tolist() == [1, 0, MISSING, 2, 0]
    assert make_column("kind", [True, False]).categories == ("no", "yes")
    many = make_column("kind", [str(k) for k in range(1_500)] + ["1499"] * 2)
    assert many.categories[-2:] == ("1499", OTHER)
    assert (many.values == 1_000).sum() == 500


def test_predictions_have_the_colors_of_labels():
    """A class that is never predicted keeps its place, and so the others keep their colors."""
    points, labels = np.zeros((4, 2)), ["b", "a", "c", "b"]
    extra = {"prediction": ["c", "c", "b", "b"], "kind": ["x", "a", "x", "x"]}
    scene = make_scene(points, range(4), labels, "poincare", extra=extra)
    columns = {column.name: column for column in scene.columns}
    assert columns["prediction"].categories == columns["label"].categories == ("a", "b", "c")
    assert columns["prediction"].values.tolist() == [2, 2, 1, 1]
    assert columns["kind"].categories == ("a", "x")


def test_what_is_near_is_what_the_distances_say():
    edges = np.array([[3, 3, 8], [5, 9, 3]])
    scene = make_scene(POINTS.numpy(), range(60), edges=edges, distance_scale=2.0)
    distances = lorentz.distance(POINTS[3], POINTS)
    order = [node for node in np.argsort(distances.numpy(), kind="stable").tolist() if node != 3]
    found = scene.nearest.near("neighbors", 3, 7)
    assert [entry["node"] for entry in found] == order[:7]
    assert [entry["distance"] for entry in found] == pytest.approx([2 * float(distances[node]) for node in order[:7]])
    assert [entry["linked"] for entry in found] == [node in (5, 8, 9) for node in order[:7]]
    assert found[0]["probability"] is None
    missing = [entry["node"] for entry in scene.nearest.near("links", 3, 7)]
    assert missing == recommend_links(POINTS.numpy(), edges, 3, 7).nodes.tolist()
    assert len(scene.nearest.near("links", 3, 100)) == 56


def test_directed_links_are_those_from_a_node_in_the_order_of_the_decoder():
    edges = np.array([[3, 3, 8], [5, 9, 3]])
    scores = np.random.RandomState(0).normal(size=(60, 60))
    scene = make_scene(
        POINTS.numpy(), range(60), edges=edges, rank=lambda pairs: scores[pairs[:, 0], pairs[:, 1]], directed=True
    )
    for node, taken in ((3, {3, 5, 9}), (8, {3, 8}), (5, {5})):
        found = scene.nearest.near("links", node, 100)
        wanted = [other for other in np.argsort(-scores[node]).tolist() if other not in taken]
        assert [entry["node"] for entry in found] == wanted
        distances = lorentz.distance(POINTS[node], POINTS[wanted])
        assert [entry["distance"] for entry in found] == pytest.approx(distances.tolist())
    assert [entry["linked"] for entry in scene.nearest.near("links", 3, 57) if entry["node"] == 8] == [True]
    assert make_payload(scene).about["directed_links"]
    assert scene.nearest.near("neighbors", 3, 7) == make_scene(POINTS.numpy(), range(60), edges=edges).nearest.near(
        "neighbors", 3, 7
    )


def test_links_that_are_the_same_both_ways_leave_out_edges_of_either_direction():
    """A directed graph may have a symmetric decoder; then the list is that of recommend_links."""
    edges, random = np.array([[3, 3, 8], [5, 9, 3]]), np.random.RandomState(0)
    scores = random.normal(size=(60, 60))

    def rank(pairs):
        return scores[pairs[:, 0], pairs[:, 1]]

    scene = make_scene(POINTS.numpy(), range(60), edges=edges, rank=rank)
    found = [entry["node"] for entry in scene.nearest.near("links", 3, 7)]
    assert found == recommend_links(POINTS.numpy(), edges, 3, 7, rank=rank).nodes.tolist()
    assert 8 not in [entry["node"] for entry in scene.nearest.near("links", 3, 100)]


def test_a_lonely_point():
    scene = make_scene([[0.1, 0.2]], ["a"], space="poincare")
    assert scene.nearest.near("neighbors", 0, 5) == []
    assert not scene.nearest.knows_links


def test_the_payload_describes_its_buffers(scene):
    payload = make_payload(scene)
    for name, about in payload.about["buffers"].items():
        assert payload.buffers[name].dtype == np.dtype(about["type"])
        assert len(payload.buffers[name]) == about["length"]
    text, offsets = payload.buffers["id_text"].tobytes(), payload.buffers["id_offsets"]
    assert text[offsets[12] : offsets[13]] == b"n12"
    assert [column["name"] for column in payload.about["columns"]] == ["label", "radius", "degree", "weight", "parity"]
    assert payload.buffers["points"][2:4].tobytes() == scene.points[1].tobytes()


def test_nearest_where_products_are_rounded():
    """At a radius of 17 the product of float64 numbers tells close points apart no more; distances still do."""
    angles = 1.0 + 2 * np.arcsinh(np.sinh(np.arange(40) / 80) / np.sinh(17))
    space = np.sinh(17) * np.column_stack([np.cos(angles), np.sin(angles)])
    points = np.column_stack([np.sqrt(1 + (space**2).sum(1)), space])
    scene = make_scene(points, range(40))
    distances = lorentz.distance(*(torch.from_numpy(part) for part in (points[:1], points))).numpy()
    found = scene.nearest.near("neighbors", 0, 5)
    assert [entry["node"] for entry in found] == np.argsort(distances, kind="stable")[1:6].tolist()


def test_columns_have_different_names():
    extra = {"label ": [1, 2], " label": [3, 4], "label": [5, 6], " ": [7, 8]}
    scene = make_scene(np.zeros((2, 2)), range(2), ["a", "b"], "poincare", extra=extra)
    assert [column.name for column in scene.columns] == ["label", "radius", "label (2)", "label (3)", "no name"]
