import pytest
import torch
from samples import random_points

from h2hgcn.geometry import lorentz
from h2hgcn.layers import CentroidDistance, FermiDiracDecoder


def test_is_eq_14():
    source, target = random_points(6, 3, 2.0, 1), random_points(6, 3, 2.0, 2)
    decoder = FermiDiracDecoder(r=1.5, t=0.7).double()
    expected = 1 / (((lorentz.distance(source, target) ** 2 - 1.5) / 0.7).exp() + 1)
    torch.testing.assert_close(decoder.probability(source, target), expected)
    torch.testing.assert_close(decoder(source, target).sigmoid(), expected)
    farther = decoder(source, target, distance_scale=2.0)
    torch.testing.assert_close(farther, (1.5 - 4 * lorentz.squared_distance(source, target)) / 0.7)


def test_logits_of_far_points_are_finite_where_exponentials_are_not():
    near, far = random_points(1, 3, 0.1), lorentz.exp_origin(torch.full((1, 3), 9.0))
    loss = torch.nn.functional.binary_cross_entropy_with_logits(FermiDiracDecoder()(near.float(), far), torch.ones(1))
    assert loss.isfinite()


def test_r_and_t_are_learnt_on_request():
    source, target = random_points(6, 3, 2.0, 1, torch.float32), random_points(6, 3, 2.0, 2, torch.float32)
    fixed, learnt = FermiDiracDecoder(), FermiDiracDecoder(learnable=True)
    assert not list(fixed.parameters())
    assert sorted(fixed.state_dict()) == sorted(learnt.state_dict())
    optimizer = torch.optim.SGD(learnt.parameters(), lr=10.0)
    learnt(source, target).sum().backward()
    optimizer.step()
    assert learnt.r != 2.0
    assert learnt.t > 0


@pytest.mark.parametrize("log_temperature", [-200.0, -20.0, 20.0, 200.0])
def test_extreme_temperatures_stay_finite(log_temperature, dtype):
    near, far = torch.zeros(1, 3, dtype=dtype), torch.full((1, 3), 9.0, dtype=dtype)
    source, target = (lorentz.exp_origin(tangent).requires_grad_() for tangent in (near, far))
    decoder = FermiDiracDecoder(learnable=True).to(dtype)
    with torch.no_grad():
        decoder.log_temperature.fill_(log_temperature)
    inputs = (decoder.radius, decoder.log_temperature, source, target)
    logits = decoder(source, target)
    gradients = torch.autograd.grad(logits.sum(), inputs, create_graph=True)
    again = torch.autograd.grad(sum(gradient.sum() for gradient in gradients), inputs)
    assert all(value.isfinite().all() for value in (decoder.t, logits, *gradients, *again))
    assert decoder.t > 0
    assert (gradients[1] == 0) == (abs(log_temperature) > 20)


def test_of_another_space():
    decoder = FermiDiracDecoder(squared_distance=lambda x, y: (x - y).square().sum(-1))
    torch.testing.assert_close(decoder(torch.zeros(1, 2), torch.ones(1, 2)), torch.tensor([0.0]))


def test_bad_input():
    with pytest.raises(ValueError, match="positive temperature"):
        FermiDiracDecoder(t=0.0)
    for t in (1e-12, 1e12):
        with pytest.raises(ValueError, match="finite between -20 and 20: take a t from there"):
            FermiDiracDecoder(t=t)
    decoder, euclidean = FermiDiracDecoder(), FermiDiracDecoder(squared_distance=lambda x, y: (x - y).square().sum(-1))
    for width in (1, 3):  # a width of 1 would broadcast
        for model in (decoder, euclidean):
            with pytest.raises(ValueError, match=rf"shape \(2, {width}\) and target points \(2, 4\)"):
                model(torch.ones(2, width), torch.ones(2, 4))
            with pytest.raises(ValueError, match=rf"shape \(2, 4\) and target points \(2, {width}\)"):
                model(torch.ones(2, 4), torch.ones(2, width))
    assert repr(FermiDiracDecoder()) == "FermiDiracDecoder(r=2, t=1, learnable=False)"


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
    with pytest.raises(ValueError, match="num_centroids=0 must be at least 1"):
        CentroidDistance(4, 0)
    with pytest.raises(ValueError, match="dim=0 must be at least 1"):
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


def test_autocast_does_not_lower_the_precision_of_distances():
    torch.manual_seed(0)
    centroids = CentroidDistance(3, 4)
    points = lorentz.exp_origin(torch.randn(9, 3)).requires_grad_()
    expected = torch.autograd.grad(centroids(points).sum(), points)[0], centroids(points)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        distances = centroids(points)
    torch.testing.assert_close((torch.autograd.grad(distances.sum(), points)[0], distances), expected)
