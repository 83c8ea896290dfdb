import numpy as np
import pytest
import torch
from samples import random_points

from h2hgcn.datasets.shape import random_taxonomy
from h2hgcn.embeddings import layout, layout_in_disk, plot_disk, project_to_disk
from h2hgcn.geometry import lorentz


def tree_points(edges, dim=12, seed=0):
    """Points of a tree's nodes, each near its parent; edges go from child to parent, parents first."""
    random = np.random.RandomState(seed)
    vectors = np.zeros((len(edges) + 1, dim))
    for child, parent in edges:
        vectors[child] = 0.9 * vectors[parent] + random.normal(scale=0.4, size=dim)
    return lorentz.exp_origin(torch.from_numpy(vectors)).numpy()


EDGES = random_taxonomy(300, 1)
POINTS = tree_points(EDGES)


def test_neighbors_and_distances_are_kept_better_than_by_the_projection():
    found = layout_in_disk(POINTS)
    assert found.method == "neighbors"
    before, after = (layout.faithfulness(POINTS, disk.points) for disk in (project_to_disk(POINTS), found))
    assert after.neighbors >= 2 * before.neighbors
    assert after.spearman > before.spearman - 0.1
    assert f"{after.neighbors:.0%} are among the 10 nearest here (projection: {before.neighbors:.0%})" in found.keeps


@pytest.mark.parametrize("directed", [True, False])
def test_a_tree_is_drawn_from_its_root(directed):
    edges = EDGES.T if directed else np.hstack([EDGES.T, EDGES.T[::-1]])
    found = layout_in_disk(POINTS, edges)
    assert found.method == "tree"
    radii, angles = np.linalg.norm(found.points, axis=1), np.arctan2(*found.points.T[::-1])
    root = int(radii.argmin())
    assert radii[root] == 0
    if directed:
        assert root == 0
        assert (radii[EDGES[:, 0]] > radii[EDGES[:, 1]]).all()
    # what hangs below a child of the root lies in a sector of its own
    branch = np.arange(300)
    if directed:
        for child, parent in EDGES:
            branch[child] = child if parent == root else branch[parent]
        below = np.flatnonzero(np.arange(300) != root)
        order = branch[below[np.argsort(angles[below])]]
        changes = (order != np.roll(order, 1)).sum()
        assert changes == len(np.unique(order))


def test_a_path_and_a_forest_are_trees_and_a_ring_is_not():
    start = project_to_disk(random_points(40, 4, 2.0).numpy()).points
    path = np.array([range(39), range(1, 40)])
    middle = np.linalg.norm(layout._draw_tree(np.hstack([path, path[::-1]]), start), axis=1).argmin()
    assert middle in (19, 20)
    forest = layout._draw_tree(path[:, np.arange(39) != 20], start)
    assert np.linalg.norm(forest, axis=1).min() > 0.05  # the middle is nobody's
    assert layout._draw_tree(np.array([range(40), [*range(1, 40), 0]]), start) is None
    assert layout._draw_tree(np.empty((2, 0), int), start) is None


def test_the_same_seed_gives_the_same_layout_on_any_number_of_threads():
    before = torch.get_num_threads()
    try:
        found = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found.append(layout_in_disk(POINTS).points)
    finally:
        torch.set_num_threads(before)
    np.testing.assert_array_equal(*found)
    assert not np.array_equal(found[0], layout_in_disk(POINTS, seed=1).points)


def test_where_the_projection_is_as_good_it_is_kept(monkeypatch):
    plane, flat = random_points(30, 2, 2.0).numpy(), np.random.RandomState(0).normal(size=(30, 5))
    for points, space in ((plane, "lorentz"), (flat, "euclidean"), (POINTS[:3], "lorentz")):
        np.testing.assert_array_equal(layout_in_disk(points, space=space).points, project_to_disk(points, space).points)
    same = layout_in_disk(np.repeat(POINTS[5:6], 40, axis=0))
    assert np.isfinite(same.points).all()
    noise = np.random.RandomState(0).normal(scale=1e-9, size=(40, 4))
    near = layout_in_disk(lorentz.exp_origin(torch.from_numpy(noise)).numpy())
    assert np.linalg.norm(near.points, axis=1).max() < 1
    monkeypatch.setattr(layout, "MOST_POINTS", 100)
    many = layout_in_disk(POINTS)
    assert many.method == "projection"
    assert "Layouts that keep neighbors are made for up to" in many.keeps


def test_a_point_that_is_nobodys_neighbor(tmp_path):
    far = lorentz.exp_origin(torch.full((1, 12), 3.0, dtype=torch.float64)).numpy()
    found = layout_in_disk(np.vstack([POINTS, far]))
    assert np.linalg.norm(found.points, axis=1).max() < 1
    plot_disk(tmp_path / "layout.png", found)
