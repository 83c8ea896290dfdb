import literal
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from samples import boost, dtypes, generator, random_graph, random_points, seeds
from torch.nn import functional as F

from h2hgcn.geometry import lorentz, stiefel
from h2hgcn.kernels.convolution import midpoint
from h2hgcn.layers import H2HConv, prepare_adjacency

ACTIVATIONS = {
    "relu": torch.relu,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "identity": lambda x: x,
    "tanh": torch.tanh,
    "elu": F.elu,
}


@given(
    seed=seeds,
    name=st.sampled_from(sorted(ACTIVATIONS)),
    scheme=st.sampled_from(["symmetric", "uniform"]),
    in_dim=st.integers(1, 6),
    grow=st.integers(0, 3),
    radius=st.floats(0.1, 3),
)
def test_agrees_with_the_equations_of_the_paper(seed, name, scheme, in_dim, grow, radius):
    torch.manual_seed(seed)
    num_nodes = 12
    edge_index, edge_weight = random_graph(num_nodes, 30, seed)
    points = random_points(num_nodes, in_dim, radius, seed)
    conv = H2HConv(in_dim, in_dim + grow, name, scheme, negative_slope=0.2, dtype=torch.float64)
    index, weights = literal.with_self_loops(edge_index, edge_weight, num_nodes)
    weights = literal.neighbor_weights(index, weights, num_nodes, scheme)
    output_grad = torch.randn(num_nodes, in_dim + grow + 1, dtype=torch.float64)

    results = []
    for forward in (
        lambda x: conv(x, edge_index, edge_weight),
        lambda x: literal.convolution(x, conv.linear.weight, index, weights, ACTIVATIONS[name]),
    ):
        space = points[:, 1:].clone().requires_grad_()
        output = forward(lorentz.project(torch.cat([points[:, :1], space], 1)))
        by_space, by_weight = torch.autograd.grad(output, (space, conv.linear.weight), output_grad)
        # off the manifold both are arbitrary: the paper's γ and our time agree on it alone
        results.append((output, by_space, stiefel.project_tangent(conv.linear.weight, by_weight)))
    (ours, *our_gradients), (truth, *true_gradients) = results
    assert ((ours - truth).abs() <= 1e-12 * truth.norm(dim=1, keepdim=True)).all()
    for ours, truth in zip(our_gradients, true_gradients, strict=True):
        assert (ours - truth).abs().max() <= 1e-9 * truth.abs().max()


@given(seed=seeds, dtype=dtypes, scheme=st.sampled_from(["symmetric", "uniform"]), rapidity=st.floats(0, 2))
def test_aggregation_laws(seed, dtype, scheme, rapidity):
    num_nodes, dim = 10, 4
    edge_index, edge_weight = random_graph(num_nodes, 25, seed)
    points = random_points(num_nodes, dim, 3.0, seed)
    matrix = prepare_adjacency(edge_index, edge_weight, num_nodes).matrix(scheme, dtype)

    def aggregate(x, matrix=matrix):
        time, space = midpoint(x[:, 0].to(dtype), x[:, 1:].to(dtype), matrix)
        return torch.cat([time[:, None], space], 1)

    aggregated = aggregate(points)
    tolerance = 5e-3 if dtype == torch.float32 else 1e-9
    assert lorentz.violation(aggregated).max() <= (1e-3 if dtype == torch.float32 else 1e-12)

    rotation = stiefel.random_orthonormal(dim, dim, generator=generator(seed), dtype=torch.float64)
    rotated = aggregate(torch.cat([points[:, :1], points[:, 1:] @ rotation], 1))
    expected = torch.cat([aggregated[:, :1], aggregated[:, 1:] @ rotation.to(dtype)], 1)
    assert lorentz.distance(rotated, expected).max() <= tolerance

    boosted = aggregate(boost(points, rapidity, seed))
    assert lorentz.distance(boosted, boost(aggregated.double(), rapidity, seed).to(dtype)).max() <= tolerance

    order = torch.randperm(num_nodes, generator=generator(seed))
    inverse = order.argsort()
    permuted_matrix = prepare_adjacency(inverse[edge_index], edge_weight, num_nodes).matrix(scheme, dtype)
    permuted = aggregate(points[order], permuted_matrix)
    assert lorentz.distance(permuted, aggregated[order]).max() <= tolerance


@given(seed=seeds, dtype=dtypes, radius=st.floats(0, 16), activation=st.sampled_from(["relu", "tanh"]))
def test_output_is_on_the_hyperboloid_at_every_radius(seed, dtype, radius, activation):
    torch.manual_seed(seed)
    conv = H2HConv(5, 5, activation, dtype=dtype)
    points = random_points(10, 5, radius, seed, dtype).requires_grad_()
    output = conv(points, random_graph(10, 25, seed)[0])
    output.sum().backward()
    assert lorentz.violation(output).max() <= 1e-6
    assert points.grad.isfinite().all()
    assert conv.linear.weight.grad.isfinite().all()


@pytest.mark.parametrize("radius", [7.0, 9.0, 12.0])
def test_float32_points_far_out_are_summed_in_float64(radius):
    direction = F.normalize(torch.tensor([1.0, 0.5, -0.2]) + 1e-4 * torch.randn(10, 3), dim=1)
    points = lorentz.exp_origin(radius * direction)  # neighbours close together, where the sums cancel most
    conv = H2HConv(3, 3, "leaky_relu")
    exact = H2HConv(3, 3, "leaky_relu", dtype=torch.float64)
    exact.linear.weight.data = stiefel.widened(conv.linear.weight.data)
    edge_index = random_graph(10, 30)[0]
    error = lorentz.distance(conv(points, edge_index).double(), exact(lorentz.project(points.double()), edge_index))
    assert error.max() <= 4e-7 * torch.tensor(radius).cosh()  # what float32 coordinates resolve there


def test_64_layers_stay_on_the_hyperboloid():
    points = random_points(200, 16, 6.0, dtype=torch.float32)
    adjacency = prepare_adjacency(random_graph(200, 400)[0], None, 200)
    for _ in range(64):
        points = H2HConv(16, 16, "leaky_relu")(points, adjacency)
        assert lorentz.violation(points).max() <= 1e-5


@pytest.mark.parametrize("num_nodes", [0, 1, 3])
def test_small_graphs(num_nodes, dtype):
    no_edges = torch.empty(2, 0, dtype=torch.long)
    points = lorentz.exp_origin(torch.zeros(num_nodes, 3, dtype=dtype)).requires_grad_()
    for activation in ("relu", "tanh"):
        for out_dim in (3, 5):
            output = H2HConv(3, out_dim, activation, dtype=dtype)(points, no_edges)
            assert output.shape == (num_nodes, out_dim + 1)
            output.sum().backward()
            assert points.grad.isfinite().all()


def test_an_isolated_node_is_only_rotated_and_activated():
    points = random_points(2, 3, 2.0)
    conv = H2HConv(3, 3, None, dtype=torch.float64)
    torch.testing.assert_close(conv(points, torch.empty(2, 0, dtype=torch.long)), conv.linear(points))


def test_batches_are_block_diagonal():
    conv = H2HConv(3, 3, dtype=torch.float64)
    graphs = [(random_points(6, 3, 2.0, k), *random_graph(6, 12, k)) for k in range(3)]
    apart = torch.cat([conv(*graph) for graph in graphs])
    offsets = [graph[1] + 6 * k for k, graph in enumerate(graphs)]
    together = conv(torch.cat([g[0] for g in graphs]), torch.cat(offsets, dim=1), torch.cat([g[2] for g in graphs]))
    torch.testing.assert_close(together, apart)


GOOD = random_points(3, 4, 1.0, dtype=torch.float32)
EDGE = torch.tensor([[0], [1]])


@pytest.mark.parametrize(
    ("points", "edge_index", "edge_weight", "message"),
    [
        (torch.ones(3, 4), EDGE, None, "needs a last axis of 5"),
        (GOOD[0], EDGE, None, "one row for each node"),
        (torch.zeros(3, 5), EDGE, None, "time coordinate of 0.*exp_origin"),
        (GOOD * float("nan"), EDGE, None, "NaN or infinity, first in row 0"),
        (GOOD, torch.tensor([[0], [7]]), None, "names node 7, but there are 3 nodes"),
        (GOOD, EDGE, torch.tensor([-1.0]), "not negative"),
        (GOOD, EDGE, torch.tensor([0.0]), "zero"),
    ],
)
def test_bad_input(points, edge_index, edge_weight, message):
    with pytest.raises(ValueError, match=message):
        H2HConv(4, 4)(points, edge_index, edge_weight)


def test_bad_arguments():
    with pytest.raises(ValueError, match="stem"):
        H2HConv(5, 4)
    with pytest.raises(ValueError, match="'degree' is not known"):
        H2HConv(4, 4, neighbor_weights="degree")
    with pytest.raises(ValueError, match="leaves the Poincaré ball"):
        H2HConv(4, 4, "selu")


def test_repr():
    assert repr(H2HConv(4, 6)).startswith("H2HConv(\n  4, 6, activation='relu', neighbor_weights='symmetric'")


@pytest.mark.parametrize("radius", [2.0, 4.0, 6.3])
@pytest.mark.parametrize("degree", [100, 20_000])
@pytest.mark.parametrize("out_dim", [4, 6])
@pytest.mark.parametrize("activation", [None, torch.clone], ids=["kernel", "composed"])
def test_hubs_are_not_moved_by_rounding(degree, radius, out_dim, activation):
    tangent = radius * F.normalize(torch.randn(1, 4)).expand(degree + 1, 4)
    points = lorentz.exp_origin(tangent)  # all at one place, which is their midpoint
    spokes = torch.stack([torch.arange(1, degree + 1), torch.zeros(degree, dtype=torch.long)])
    conv = H2HConv(4, out_dim, activation)
    moved = lorentz.distance(conv(points, spokes), conv.linear(points))
    assert moved.max() <= 0.02


def test_mixed_precision_of_points_and_weights():
    points = random_points(3, 4, 1.0)
    assert H2HConv(4, 4)(points, EDGE).dtype == torch.float64
    assert H2HConv(4, 4, dtype=torch.float64)(points.float(), EDGE).dtype == torch.float32


def test_validation_before_training():
    edge_index = EDGE.clone()
    for activation in ("relu", "tanh"):
        conv = H2HConv(4, 4, activation)
        with torch.inference_mode():
            conv(GOOD, edge_index)
        conv(GOOD, edge_index).sum().backward()
