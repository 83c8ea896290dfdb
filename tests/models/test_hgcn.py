import geoopt
import pytest
import torch
from samples import generator, random_graph

from h2hgcn.geometry import lorentz
from h2hgcn.layers import prepare_adjacency
from h2hgcn.layers.spaces import as_lorentz
from h2hgcn.models import HGCN

EDGE_INDEX, EDGE_WEIGHT = random_graph(20, 50)


def features(num_nodes=20, width=6, dtype=torch.float64):
    return torch.randn(num_nodes, width, generator=generator(1), dtype=dtype)


def neighbor_weights(kind="uniform"):
    crow, col, values = prepare_adjacency(EDGE_INDEX, EDGE_WEIGHT, 20).matrix(kind, torch.float64)[:3]
    return torch.sparse_csr_tensor(crow, col, values, (20, 20), check_invariants=True).to_dense()


def with_curvatures(model, *curvatures):
    with torch.no_grad():
        model.log_curvatures.copy_(torch.tensor(curvatures).log())
    return model


def literal_ball(model, x):
    """The network as Chami et al. 2019 write it, on balls of the curvatures themselves."""
    balls = [geoopt.PoincareBall(c) for c in model.curvatures.tolist()]
    h = balls[0].expmap0(x)
    for conv, before, after in zip(model.convs, balls, balls[1:], strict=False):
        h = before.expmap0(before.logmap0(h) @ conv.weight.T)
        h = before.mobius_add(h, before.expmap0(conv.bias))
        h = before.expmap0(neighbor_weights() @ before.logmap0(h))
        h = after.expmap0(torch.relu(before.logmap0(h)))
    return h, balls[-1]


def literal_lorentz(model, x, local=False):
    """The same on hyperboloids, whose radius squared is ``1/c``."""
    spaces = [geoopt.Lorentz(1 / c) for c in model.curvatures.tolist()]

    def exp0(space, v):
        return space.expmap0(torch.cat([torch.zeros_like(v[:, :1]), v], dim=1))

    def log0(space, h):
        return space.logmap0(h)[:, 1:]

    h = exp0(spaces[0], x)
    for conv, before, after in zip(model.convs, spaces, spaces[1:], strict=False):
        h = exp0(before, log0(before, h) @ conv.weight.T)
        bias = torch.cat([torch.zeros(1, dtype=x.dtype), conv.bias]).expand(len(x), -1)
        h = before.expmap(h, before.transp0(h, bias))
        if local:
            means = [sum(w * before.logmap(h[i], h[j]) for j, w in enumerate(neighbor_weights()[i])) for i in range(20)]
            h = before.expmap(h, torch.stack(means))
        else:
            h = exp0(before, neighbor_weights() @ log0(before, h))
        h = exp0(after, torch.relu(log0(before, h)))
    return h, spaces[-1]


def test_it_is_the_paper_on_balls_of_their_own_curvatures():
    model = with_curvatures(HGCN(6, 4, manifold="ball", dtype=torch.float64), 0.5, 1.5, 0.8)
    x = 0.3 * features()
    h, ball = literal_ball(model, x)
    points = model(x, EDGE_INDEX, EDGE_WEIGHT)
    torch.testing.assert_close(points, h * model.curvatures[-1].sqrt(), rtol=1e-6, atol=1e-8)
    found = lorentz.distance(*as_lorentz(points, "ball").reshape(2, 10, -1)) * model.distance_scale
    torch.testing.assert_close(found, ball.dist(*h.reshape(2, 10, -1)), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("local", [False, True])
def test_it_is_the_paper_on_hyperboloids_of_their_own_curvatures(local):
    model = with_curvatures(HGCN(6, 4, local_aggregation=local, dtype=torch.float64), 0.5, 1.5, 0.8)
    x = 0.3 * features()
    h, _ = literal_lorentz(model, x, local)
    points = model(x, EDGE_INDEX, EDGE_WEIGHT)
    torch.testing.assert_close(points, h * model.curvatures[-1].sqrt(), rtol=1e-4, atol=1e-5)


def test_the_ball_is_the_hyperboloid_with_vectors_of_double_length():
    ball = HGCN(6, 4, manifold="ball", bias=False, dtype=torch.float64)
    hyperboloid = HGCN(6, 4, bias=False, dtype=torch.float64)
    hyperboloid.load_state_dict(ball.state_dict())
    x = features()
    found = as_lorentz(ball(0.5 * x, EDGE_INDEX), "ball")
    torch.testing.assert_close(found, hyperboloid(x, EDGE_INDEX), rtol=1e-6, atol=1e-8)


OPTIONS = [
    {"attention": True},
    {"local_aggregation": True},
    {"attention": True, "local_aggregation": True, "manifold": "ball"},
    {"manifold": "ball", "dropout": 0.5, "weight_dropout": 0.5, "feature_dropout": 0.5},
    {"activation": None, "num_layers": 1, "neighbor_weights": "symmetric"},
    {"activation": "tanh", "num_layers": 5},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_all_options_give_points_and_gradients(options, dtype):
    model = HGCN(6, 4, **options, dtype=dtype)
    points = model(features(dtype=dtype), EDGE_INDEX, EDGE_WEIGHT)
    assert points.shape == (20, 4 + (model.space == "lorentz"))
    assert lorentz.violation(as_lorentz(points, model.space)).max() < 1e-5
    (points * torch.randn_like(points)).sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_large_weights_do_not_turn_to_nan(options):
    model = HGCN(6, 4, **options)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(100).add_(1)
    points = model(features(dtype=torch.float32), EDGE_INDEX)
    points.sum().backward()
    assert points.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


def test_curvatures_stay_where_they_are_put():
    model = HGCN(6, 4, 3, curvature=0.25, learn_curvature=False)
    assert not model.log_curvatures.requires_grad
    torch.testing.assert_close(model.curvatures, torch.full((4,), 0.25))
    torch.testing.assert_close(model.distance_scale, torch.tensor(2.0))
    with torch.no_grad():
        model.log_curvatures.fill_(3)
    model.reset_parameters()
    torch.testing.assert_close(model.curvatures, torch.full((4,), 0.25))
    assert "curvatures=(-0.25, " in repr(model)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dim": 0}, "dim=0"),
        ({"num_layers": 0}, "num_layers=0"),
        ({"manifold": "klein"}, "'lorentz' or 'ball'"),
        ({"dropout": 1.0}, "dropout=1.0"),
        ({"weight_dropout": -0.1}, "weight_dropout=-0.1"),
        ({"curvature": -1.0}, "c > 0"),
        ({"neighbor_weights": "none"}, "neighbor_weights='none'"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        HGCN(**{"in_features": 6, "dim": 4} | options)


def test_bad_features():
    with pytest.raises(ValueError, match="made for 6 features"):
        HGCN(6, 4)(torch.zeros(20, 5), EDGE_INDEX)
    with pytest.raises(ValueError, match="x is a list"):
        HGCN(6, 4)([1, 2], EDGE_INDEX)
