import sys

import numpy as np
import pytest
from samples import random_points

from h2hgcn.embeddings import plot_disk, project_to_disk
from h2hgcn.embeddings.disk import compose
from h2hgcn.errors import DataError

DISK = project_to_disk(random_points(60, 5, 3.0).numpy())
EDGES = np.stack([np.arange(59), np.arange(1, 60)])
HOSTILE = ["_hidden", "$\\frac", "<b>", "", None, "a" * 500]


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
@pytest.mark.parametrize("labels", [None, HOSTILE * 10, list(range(60)), [None] * 60])
def test_plot(tmp_path, ending, labels):
    path = plot_disk(tmp_path / f"disk.{ending}", DISK, labels, EDGES, title="50 $ _and_ 100 $")
    assert path.stat().st_size > 1000


def test_plots_of_arrays_single_points_and_euclidean_points(tmp_path):
    euclidean = project_to_disk(np.eye(4), "euclidean")
    for disk in (DISK.points, np.zeros((1, 2)), euclidean):
        assert plot_disk(tmp_path / "disk.png", disk, edges=[[0], [0]]).exists()


@pytest.mark.parametrize(
    ("path", "disk", "labels", "edges", "message"),
    [
        ("disk.xls", DISK, None, None, r"\.png"),
        ("disk.png", random_points(3, 3, 0.1)[:, 1:].numpy(), None, None, "project_to_disk first"),
        ("disk.png", np.ones((2, 2)), None, None, "unit ball"),
        ("disk.png", DISK, ["a"], None, "1 labels for 60 points"),
        ("disk.png", DISK, None, [[0], [60]], "60 points"),
    ],
)
def test_what_cannot_be_drawn_is_refused(tmp_path, path, disk, labels, edges, message):
    with pytest.raises(DataError, match=message):
        plot_disk(tmp_path / path, disk, labels, edges)


def test_plot_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(DataError, match=r"pip install 'h2hgcn\[plot\]'"):
        plot_disk(tmp_path / "disk.png", DISK)


def test_edges_count_once_and_many_are_left_out():
    assert len(compose(DISK, edges=np.hstack([EDGES, EDGES[::-1], [[3], [3]]])).edges.start) == 59
    first, second = np.triu_indices(150, 1)
    many = compose(np.zeros((150, 2)), edges=np.stack([first, second]))
    assert many.edges is None
    assert "11,175 edges are not drawn" in " ".join(many.caption)


@pytest.mark.parametrize(
    ("labels", "heading", "names"),
    [
        ([10, 9, 9] * 20, "Label", ["9", "10"]),
        (["b", None, "a"] * 20, "Label", ["a", "b", "no label"]),
        (range(60), "Distance to the middle", None),
        (None, "Distance to the middle", None),
    ],
)
def test_colors(labels, heading, names):
    coloring = compose(DISK, labels).coloring
    assert coloring.heading == heading
    assert names is None or coloring.names == names
    assert coloring.shades.max() < len(coloring.palette) == len(coloring.names)
