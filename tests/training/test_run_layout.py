"""The layout for pictures in the folder of a run."""

from functools import partial

import numpy as np
import pytest
from runs import small_fit

from h2hgcn.cli.explore import open_scene
from h2hgcn.errors import DataWarning
from h2hgcn.models import H2HGCN
from h2hgcn.training import load_run
from h2hgcn.training.artifacts import read_layout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("layout") / "run"
    small_fit(model=partial(H2HGCN, dim=8, node_vectors=True), folder=path)  # points of many dimensions
    return path


def test_it_is_kept_and_shown(folder):
    found = read_layout(folder / "layout.safetensors", load_run(folder).embeddings.numpy())
    assert found.method in ("tree", "neighbors")
    assert "projection:" in found.keeps
    assert found.keeps in (folder / "report.html").read_text()
    scene = open_scene(folder)
    np.testing.assert_array_equal(scene.layout.points, found.points)
    assert scene.layout.keeps == found.keeps


def test_without_it_the_projection_is_shown(folder, tmp_path):
    path, points = tmp_path / "layout.safetensors", load_run(folder).embeddings.numpy()
    assert read_layout(path, points) is None
    whole = (folder / "layout.safetensors").read_bytes()
    path.write_bytes(whole)
    assert read_layout(path, points) is not None
    assert read_layout(path, points + 1) is None  # of another embedding
    path.write_bytes(whole[:50])
    with pytest.warns(DataWarning, match="the projection is shown"):
        assert read_layout(path, points) is None
