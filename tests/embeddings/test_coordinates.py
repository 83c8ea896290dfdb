"""Coordinates of points: the tangent space at the origin."""

import numpy as np
import pytest
import torch

from h2hgcn.embeddings.coordinates import check_points, convert
from h2hgcn.errors import DataError
from h2hgcn.geometry import lorentz


def test_tangent_vectors_have_the_distance_and_the_direction_of_their_points():
    vectors = np.random.default_rng(0).normal(size=(20, 3)) * np.linspace(0, 5, 20)[:, None]
    points = lorentz.exp_origin(torch.from_numpy(vectors))
    found = convert(points, "tangent")
    np.testing.assert_allclose(found, vectors, atol=1e-9)
    origin = lorentz.exp_origin(torch.zeros(1, 3, dtype=torch.float64))
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), lorentz.distance(points, origin), atol=1e-6)
    np.testing.assert_allclose(convert(convert(found, "poincare", "tangent"), "lorentz", "poincare"), points, rtol=1e-6)


def test_what_has_no_tangent_vectors():
    with pytest.raises(DataError, match="euclidean points have no tangent coordinates"):
        convert(np.ones((2, 2)), "tangent", "euclidean")
    with pytest.raises(DataError, match="row 1 of the points is too far from the origin"):
        check_points([[1.0, 0], [400, 0]], "tangent")
