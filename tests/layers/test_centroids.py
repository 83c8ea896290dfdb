import pytest
import torch
from samples import random_points

from h2hgcn.geometry import lorentz
from h2hgcn.layers import CentroidDistance


def test_distances_of_nodes(dtype):
    layer = CentroidDistance(4, 7, dtype=dtype)
    points = random_points(5, 4, 3.0, dtype=dtype)
    expected = lorentz.distance(points[:, None], layer.centroids[None])
    torch.testing.assert_close(layer(points), expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(layer(points, distance_scale=0.5), expected / 2, rtol=1e-5, atol=1e-6)
    assert lorentz.violation(layer.centroids).max() < 1e-6


def test_means_over_graphs():
    layer = CentroidDistance(4, 7)
    points = random_points(5, 4, 3.0, dtype=torch.float32)
    batch = torch.tensor([0, 0, 0, 2, 2])
    pooled = layer(points, batch, num_graphs=3)
    torch.testing.assert_close(pooled[0], layer(points)[:3].mean(0))
    torch.testing.assert_close(pooled[2], layer(points)[3:].mean(0))
    assert (pooled[1] == 0).all()


def test_gradients_reach_points_and_centroids_even_where_they_meet():
    layer = CentroidDistance(4, 3)
    points = layer.centroids.detach().clone().requires_grad_()
    layer(points).sum().backward()
    assert points.grad.isfinite().all()
    assert layer.tangents.grad.isfinite().all()
    assert layer.tangents.grad.abs().sum() > 0


def test_empty_and_bad_input():
    assert CentroidDistance(4, 3)(torch.ones(0, 5)).shape == (0, 3)
    with pytest.raises(ValueError, match="needs a last axis of 5"):
        CentroidDistance(4, 3)(torch.ones(2, 4))
    with pytest.raises(ValueError, match="at least one"):
        CentroidDistance(4, 0)
