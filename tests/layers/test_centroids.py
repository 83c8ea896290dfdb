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
    assert torch.equal(layer(points, batch), pooled)
    assert torch.equal(layer(points, batch.int(), num_graphs=3), pooled)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the compiler's own parts
def test_means_over_graphs_compile_to_one_graph():
    torch._dynamo.reset()
    layer = CentroidDistance(4, 7)
    points, batch = random_points(5, 4, 3.0, dtype=torch.float32), torch.tensor([0, 0, 0, 2, 2])
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(points, batch, num_graphs=3), layer(points, batch, num_graphs=3))


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
    with pytest.raises(ValueError, match="dim=0: a hyperbolic space has at least one dimension"):
        CentroidDistance(0, 3)


def test_no_nodes_are_no_graphs():
    nothing = torch.empty(0, dtype=torch.long)
    assert CentroidDistance(4, 3)(torch.ones(0, 5), nothing).shape == (0, 3)
    assert CentroidDistance(4, 3)(torch.ones(0, 5), nothing, 2).shape == (2, 3)


@pytest.mark.parametrize(
    ("batch", "num_graphs", "message"),
    [
        (torch.tensor([0]), None, r"shape \(1,\) .*there are 2 nodes; pass one integer for each"),
        (torch.tensor([0, 0, 0]), None, r"shape \(3,\) .*there are 2 nodes"),
        (torch.tensor([[0], [1]]), None, r"shape \(2, 1\)"),
        (torch.tensor(0), None, r"shape \(\)"),
        (torch.tensor([0.0, 1.0]), None, "float32.*pass one integer for each"),
        (torch.tensor([False, True]), None, "bool.*pass one integer for each"),
        (torch.tensor([0, -1]), None, "names graph -1; graphs are counted from 0"),
        (torch.tensor([0, -1]), 2, "names graph -1; graphs are counted from 0"),
        (torch.tensor([0, 2]), 2, "names graph 2, but there are 2 graphs; fix num_graphs or the batch"),
        ([0, 1], None, "is a list; pass a tensor"),
    ],
)
def test_bad_batches(batch, num_graphs, message):
    with pytest.raises(ValueError, match=message):
        CentroidDistance(4, 3)(random_points(2, 4, 1.0, dtype=torch.float32), batch, num_graphs)
