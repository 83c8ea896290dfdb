"""The pictures of docs/maths.md are those that the functions of the package draw now."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

DOCS = Path(__file__).parents[2] / "docs"
NUMBER = re.compile(r"(?<![\w#])-?\d+\.?\d*(?:e-?\d+)?(?!\w)")


@pytest.fixture(scope="module")
def make_pictures():
    pytest.importorskip("matplotlib")
    sys.path.insert(0, str(DOCS))
    import make_pictures

    yield make_pictures
    sys.path.remove(str(DOCS))


def drawn(path):
    """The strokes of a picture, without the names of its parts, which hang on the last bit of a number."""
    strokes = re.findall(r' d="([^"]+)"', path.read_text())
    return " ".join(re.sub(NUMBER, "", stroke) for stroke in strokes), [
        float(number) for stroke in strokes for number in re.findall(NUMBER, stroke)
    ]


@pytest.mark.parametrize("name", ["convolution", "midpoints", "models", "tree"])
def test_pictures_are_current(make_pictures, name, tmp_path):
    """Made anew by: python docs/make_pictures.py"""
    assert sorted(make_pictures.PICTURES) == ["convolution", "midpoints", "models", "tree"]
    (kinds, numbers) = drawn(make_pictures.write(name, "light", tmp_path))
    for look in make_pictures.LOOKS:
        committed = drawn(DOCS / "images" / f"{name}-{look}.svg")
        assert committed[0] == kinds
        np.testing.assert_allclose(committed[1], numbers, atol=0.01)


def test_all_edges_of_the_tree_are_equally_long(make_pictures):
    from h2hgcn.geometry import lorentz, poincare

    tree = make_pictures.tree
    disk, nodes = tree.place(hyperbolic=True)
    points = poincare.to_lorentz(disk)
    parents = torch.tensor([parent for parent, _ in nodes[1:]])
    lengths = lorentz.distance(points[parents], points[1:])
    torch.testing.assert_close(lengths, torch.full_like(lengths, tree.LENGTH))


def test_the_midpoint_moves_along_and_the_other_means_do_not(make_pictures):
    from h2hgcn.geometry import poincare

    means = make_pictures.midpoints
    disk = torch.tensor([[0.38, -0.51], [0.36, 0.83], [0.79, -0.18]], dtype=torch.float64)
    moved = poincare.to_lorentz(poincare.mobius_add(means.SHIFT, disk))
    away = {}
    for mean in (means.einstein, means.tangent_mean, means.coordinate_mean):
        carried = poincare.mobius_add(means.SHIFT, poincare.from_lorentz(mean(poincare.to_lorentz(disk))))
        away[mean.__name__] = float((carried - poincare.from_lorentz(mean(moved))).norm())
    assert away["einstein"] < 1e-12
    assert min(away["tangent_mean"], away["coordinate_mean"]) > 0.1
