import pickle

import literal
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from samples import boost, dtypes, generator, random_graph, random_points, seeds
from torch import nn
from torch.nn import functional as F

from h2hgcn.geometry import lorentz, poincare, stiefel
from h2hgcn.layers import H2HConv, LorentzLinear, prepare_adjacency
from h2hgcn.layers.h2h_conv import midpoint, resolve_activation
from h2hgcn.models import H2HGCN
from h2hgcn.models.h2h_gcn import VariedConv
from h2hgcn.training import build_optimizer


@given(seed=seeds, dtype=dtypes, in_dim=st.integers(1, 20), grow=st.integers(0, 10))
def test_isometry(seed, dtype, in_dim, grow):
    torch.manual_seed(seed)
    layer = LorentzLinear(in_dim, in_dim + grow, dtype=dtype)
    x, y = (random_points(10, in_dim, 4.0, seed + k, dtype) for k in range(2))
    image_x, image_y = layer(x), layer(y)
    assert lorentz.violation(image_x).max() <= 20 * torch.finfo(dtype).eps
    assert torch.equal(image_x[:, 0], x[:, 0])
    tolerance = 1e-3 if dtype == torch.float32 else 1e-10
    torch.testing.assert_close(
        lorentz.distance(image_x, image_y), lorentz.distance(x, y), rtol=tolerance, atol=tolerance
    )


def test_is_the_block_diagonal_matrix_of_the_paper():
    layer = LorentzLinear(3, 5, dtype=torch.float64)
    points = random_points(4, 3, 2.0)
    block_diagonal = torch.block_diag(torch.ones(1, 1, dtype=torch.float64), layer.weight)
    torch.testing.assert_close(layer(points), points @ block_diagonal.T)
    assert layer.weight.shape == (5, 3)
    assert repr(layer) == "LorentzLinear(3, 5)"


def test_reset_draws_another_orthonormal_matrix():
    layer = LorentzLinear(4, 4)
    before = layer.weight.clone()
    layer.reset_parameters()
    assert not torch.equal(before, layer.weight)
    assert stiefel.violation(layer.weight) < 1e-6


def test_bad_dimensions():
    with pytest.raises(ValueError, match=r"out_dim=3 is below in_dim=5.*stem"):
        LorentzLinear(5, 3)
    with pytest.raises(ValueError, match="at least one dimension"):
        LorentzLinear(0, 3)
    with pytest.raises(ValueError, match=r"needs a last axis of 4.*exp_origin"):
        LorentzLinear(3, 3)(torch.ones(2, 3))
    with pytest.raises(ValueError, match="float32 or float64"):
        LorentzLinear(3, 3)(torch.ones(2, 4, dtype=torch.float16))


KEEPING = ["identity", "relu", "leaky_relu", "elu", "tanh", "softsign", None, torch.sin, nn.Hardtanh(), nn.Softshrink()]


@given(seed=seeds, dtype=dtypes, activation=st.sampled_from(KEEPING), radius=st.floats(0, 12))
def test_stays_on_the_hyperboloid_and_never_moves_outwards(seed, dtype, activation, radius):
    points = random_points(20, 5, radius, seed, dtype)
    activated = resolve_activation(activation)(points)
    assert activated.isfinite().all()
    assert lorentz.violation(activated).max() <= 8 * torch.finfo(dtype).eps
    outwards = lorentz.distance_to_origin(activated) - lorentz.distance_to_origin(points)
    assert outwards.max() <= 1e-4


@pytest.mark.parametrize("activation", ["relu", "tanh", "elu", "softsign"])
def test_is_eq_13(activation):
    points = random_points(20, 5, 3.0)
    resolved = resolve_activation(activation)
    expected = poincare.to_lorentz(resolved.function(poincare.from_lorentz(points)))
    torch.testing.assert_close(resolved(points), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    ("given_activation", "slope"),
    [
        ("relu", 0.0),
        (F.relu, 0.0),
        (torch.relu, 0.0),
        (nn.ReLU(), 0.0),
        (nn.LeakyReLU(0.3), 0.3),
        (nn.Identity(), 1.0),
        (None, 1.0),
    ],
)
def test_known_functions_get_the_fast_kernel(given_activation, slope):
    assert resolve_activation(given_activation).slope == slope


@pytest.mark.parametrize(
    ("activation", "message"),
    [
        ("selu", "'selu' leaves the Poincaré ball.*elu, identity, leaky_relu, relu, softsign, tanh"),
        (F.selu, "leaves the Poincaré ball"),
        (nn.SELU(), "leaves the Poincaré ball"),
        ("gelu", "'gelu' is self-gated.*elu, identity, leaky_relu, relu, softsign, tanh"),
        (nn.GELU(), "self-gated"),
        (torch.sigmoid, "leaves the Poincaré ball"),
        (torch.exp, "leaves the Poincaré ball"),
        (nn.PReLU(), "learnable parameters"),
        ("swiglu", "not known to keep"),
    ],
)
def test_others_are_refused(activation, message):
    with pytest.raises(ValueError, match=message):
        resolve_activation(activation)


def test_slopes_beyond_one_are_refused():
    with pytest.raises(ValueError, match=r"negative_slope=1\.5"):
        resolve_activation("leaky_relu", 1.5)


def test_can_be_pickled():
    activation = pickle.loads(pickle.dumps(resolve_activation("leaky_relu", 0.2)))
    assert activation.slope == 0.2


def test_functions_of_the_users_own_are_theirs_whatever_their_name():
    def relu(x):
        return x.clamp(-0.1, 0.1)

    def gelu(x):
        return x / 2

    assert resolve_activation(relu).slope is None
    assert resolve_activation(relu).function is relu
    assert resolve_activation(gelu).function is gelu


@pytest.mark.parametrize(
    "function", [lambda b: F.normalize(b, dim=-1), lambda b: b / b.abs().amax(-1, keepdim=True), 5]
)
def test_functions_of_rows_are_refused(function):
    with pytest.raises(ValueError, match=r"mixes coordinates|is a int|leaves"):
        resolve_activation(function)


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
        return midpoint(x.to(dtype), matrix)

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
    exact.linear.weight.data = stiefel.orthonormal_factor(conv.linear.weight.data.double())
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
        (GOOD.double() * float("nan"), EDGE, None, "NaN or infinity, first in row 0"),
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


GRAPH = random_graph(12, 30, 0)
POINTS = random_points(12, 4, 2.0, 0)


def varied(**options):
    torch.manual_seed(0)
    return VariedConv(4, 4, "leaky_relu", dtype=torch.float64, **options)


@pytest.mark.parametrize("weights", ["stiefel", "fixed", "free"])
def test_all_weights_start_as_the_same_layer(weights):
    torch.manual_seed(0)
    plain = H2HConv(4, 4, "leaky_relu", dtype=torch.float64)
    torch.testing.assert_close(varied(weights=weights)(POINTS, *GRAPH), plain(POINTS, *GRAPH), rtol=1e-12, atol=1e-12)


def test_free_weights_are_no_isometry_and_stay_on_the_hyperboloid():
    conv = varied(weights="free")
    assert type(conv.linear.weight) is torch.nn.Parameter
    with torch.no_grad():
        conv.linear.weight.mul_(1.5)
    points = conv(POINTS, *GRAPH)
    assert lorentz.violation(points).max() < 1e-12
    assert points[:, 0].mean() > varied()(POINTS, *GRAPH)[:, 0].mean()


def test_the_tangent_mean_is_that_of_logarithms():
    conv = varied(aggregation="tangent", neighbor_weights="uniform", weights="fixed")
    index, weights = literal.with_self_loops(*GRAPH, 12)
    weights = literal.neighbor_weights(index, weights, 12, "uniform")
    dense = torch.zeros(12, 12, dtype=torch.float64).index_put_((index[1], index[0]), weights, accumulate=True)
    means = dense / dense.sum(1, keepdim=True) @ lorentz.log_origin(conv.linear(POINTS))
    expected = conv.activation(lorentz.exp_origin(means))
    torch.testing.assert_close(conv(POINTS, *GRAPH), expected, rtol=1e-9, atol=1e-9)


def test_free_weights_stay_as_they_are_for_points_far_out():
    """They were made orthonormal, which undid what was learned."""
    far = lorentz.exp_origin(8.0 * F.normalize(torch.randn(12, 4)))
    conv = VariedConv(4, 4, None, weights="free")
    with torch.no_grad():
        conv.linear.weight.mul_(0.2)
    alone = conv(far, torch.empty(2, 0, dtype=torch.long))
    torch.testing.assert_close(alone[:, 1:], far[:, 1:] @ conv.linear.weight.mT, rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("weights", ["stiefel", "fixed", "free"])
@pytest.mark.parametrize("aggregation", ["midpoint", "tangent"])
def test_training_moves_what_may_move(weights, aggregation):
    torch.manual_seed(0)
    model = H2HGCN(4, 4, weights=weights, aggregation=aggregation)
    before = model.convs[0].linear.weight.detach().clone()
    optimizer = build_optimizer(model, lr=0.05)
    for _ in range(20):
        optimizer.zero_grad()
        points = model(POINTS[:, 1:].float(), *GRAPH)
        points[:, 1].sum().backward()
        optimizer.step()
    after = model.convs[0].linear.weight.detach()
    assert lorentz.violation(points).max() < 1e-5
    assert torch.equal(before, after) == (weights == "fixed")
    assert (stiefel.violation(after) < 1e-5) == (weights != "free")
    assert f"weights={weights!r}" in repr(model) or (weights, aggregation) == ("stiefel", "midpoint")


@pytest.mark.parametrize(("option", "value"), [("weights", "stifel"), ("aggregation", "mean")])
def test_unknown_variants(option, value):
    with pytest.raises(ValueError, match=f"{option}='{value}' is not known"):
        H2HGCN(4, 4, **{option: value})


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("prepared", [False, True])
def test_transforms_of_torch_func(activation, prepared):
    edge_index, edge_weight = random_graph(12, 30)
    graph = (prepare_adjacency(edge_index, edge_weight, 12),) if prepared else (edge_index, edge_weight)
    conv = H2HConv(4, 5, activation, dtype=torch.float64)
    x, y = (random_points(12, 4, 2.0, seed) for seed in (1, 2))
    parameters = dict(conv.named_parameters())
    direction = torch.randn_like(x)

    def total(points, parameters):
        return torch.func.functional_call(conv, parameters, (points, *graph)).square().sum()

    by_points, by_parameters = torch.func.grad(total, (0, 1))(x, parameters)
    variable = x.clone().requires_grad_()
    total(variable, parameters).backward()
    torch.testing.assert_close(by_points, variable.grad)
    torch.testing.assert_close(by_parameters["linear.weight"], conv.linear.weight.grad)
    _, along = torch.func.jvp(lambda points: total(points, parameters), (x,), (direction,))
    torch.testing.assert_close(along, (by_points * direction).sum())
    mapped = torch.func.vmap(lambda points: conv(points, *graph))(torch.stack([x, y]))
    torch.testing.assert_close(mapped, torch.stack([conv(x, *graph), conv(y, *graph)]))
    conv(variable, *graph).sum().backward()  # nothing of a transform was kept
