import copy

import geoopt
import pytest
import torch
from samples import generator, random_graph
from torch import nn

from h2hgcn.geometry import lorentz, stiefel
from h2hgcn.layers import LorentzLinear
from h2hgcn.layers.inputs import NodePoints
from h2hgcn.models import H2HGCN
from h2hgcn.training import StiefelOptimizer, build_optimizer
from h2hgcn.training.optimizers import StiefelSGD

EDGE_INDEX = random_graph(30, 80)[0]
X = torch.randn(30, 6, generator=generator(0))


def loss_of(model):
    points = model(X, EDGE_INDEX)
    return lorentz.squared_distance(points[EDGE_INDEX[0]], points[EDGE_INDEX[1]]).mean()


def train(model, optimizer, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(model).backward()
        optimizer.step()


def test_one_step_is_eq_16_to_18():
    layer = LorentzLinear(3, 5, dtype=torch.float64)
    before = layer.weight.detach().clone()
    gradient = torch.randn(5, 3, dtype=torch.float64)
    layer.weight.grad = gradient
    build_optimizer(layer, stiefel_lr=0.3).step()
    symmetric = (before.T @ gradient + gradient.T @ before) / 2
    q, r = torch.linalg.qr(before - 0.3 * (gradient - before @ symmetric))
    torch.testing.assert_close(layer.weight.detach(), q * r.diagonal().sign())


@pytest.mark.parametrize("method", ["rsgd", "radam"])
def test_weights_stay_orthonormal_for_2000_steps(method):
    model = H2HGCN(6, 64, 2)
    train(model, build_optimizer(model, lr=1e-3, stiefel_lr=0.1, stiefel_method=method), 2000)
    for conv in model.convs:
        gram = conv.linear.weight.detach().double()
        gram = gram.T @ gram - torch.eye(64, dtype=torch.float64)
        assert torch.linalg.matrix_norm(gram, ord=float("inf")) <= 1e-5


def test_learns_a_rotation():
    target = stiefel.random_orthonormal(4, 4, generator=generator(3), dtype=torch.float64)
    target[:, 0] *= torch.linalg.det(target)  # the same component of the manifold as the identity
    layer = LorentzLinear(4, 4, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(torch.eye(4))
    points = lorentz.exp_origin(torch.randn(50, 4, dtype=torch.float64))
    optimizer = build_optimizer(layer, stiefel_lr=0.05)
    for _ in range(500):
        optimizer.zero_grad()
        (layer(points)[:, 1:] - points[:, 1:] @ target.T).square().mean().backward()
        optimizer.step()
    torch.testing.assert_close(layer.weight.detach(), target, rtol=0, atol=1e-3)


def test_state_continues_bit_for_bit():
    straight = H2HGCN(6, 4)
    copied = H2HGCN(6, 4)
    copied.load_state_dict(straight.state_dict())
    for method in ("rsgd", "radam"):
        optimizer = build_optimizer(straight, stiefel_method=method)
        train(straight, optimizer, 6)
        first = build_optimizer(copied, stiefel_method=method)
        train(copied, first, 3)
        second = build_optimizer(copied, lr=0.5, stiefel_method=method)
        second.load_state_dict(first.state_dict())
        train(copied, second, 3)
        for a, b in zip(straight.parameters(), copied.parameters(), strict=True):
            assert torch.equal(a, b)


def test_schedulers_and_scalers_see_one_optimizer():
    model = H2HGCN(6, 4)
    optimizer = build_optimizer(model, lr=0.1, stiefel_lr=1.0)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    train(model, optimizer, 1)
    scheduler.step()
    assert [group["lr"] for group in optimizer.param_groups] == [0.05, 0.5]
    assert [part.param_groups[0]["lr"] for part in optimizer.parts] == [0.05, 0.5]
    loaded = build_optimizer(model)
    loaded.load_state_dict(optimizer.state_dict())
    loaded.param_groups[1]["lr"] = 0.25
    assert loaded.parts[1].param_groups[0]["lr"] == 0.25


def test_closures_are_called():
    model = H2HGCN(6, 4)
    optimizer = build_optimizer(model)

    def closure():
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        return loss

    assert optimizer.step(closure) > 0


def test_each_parameter_has_its_optimizer():
    model = H2HGCN(6, 4)
    euclidean, on_manifold = build_optimizer(model, weight_decay=0.1).parts
    assert isinstance(on_manifold, StiefelSGD)
    assert all(isinstance(p, geoopt.ManifoldParameter) for p in on_manifold.param_groups[0]["params"])
    assert euclidean.param_groups[0]["weight_decay"] == 0.1
    assert "weight_decay" not in on_manifold.param_groups[0]
    assert len(build_optimizer(nn.Linear(2, 2)).parts) == 1
    assert len(build_optimizer(LorentzLinear(2, 2)).parts) == 1


class TwoManifolds(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = LorentzLinear(3, 4)
        self.positions = geoopt.ManifoldParameter(torch.zeros(5, 2), manifold=geoopt.PoincareBall())
        self.flat = nn.Parameter(torch.ones(2))


@pytest.mark.parametrize(("method", "other"), [("rsgd", "RiemannianSGD"), ("radam", "RiemannianAdam")])
def test_other_manifolds_are_left_to_geoopt(method, other):
    module = TwoManifolds()
    optimizer = build_optimizer(module, lr=0.1, stiefel_method=method)
    assert type(optimizer.parts[-1]).__name__ == other
    assert any(parameter is module.positions for parameter in optimizer.parts[-1].param_groups[-1]["params"])
    stepped = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    assert stepped == {id(parameter) for parameter in module.parameters()}
    before = copy.deepcopy(module.state_dict())
    for parameter in module.parameters():
        parameter.grad = torch.randn_like(parameter)
    optimizer.step()
    assert all(not torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert stiefel.violation(module.linear.weight) < 1e-6
    second = build_optimizer(module, stiefel_method=method)
    second.load_state_dict(optimizer.state_dict())
    assert [group["lr"] for group in second.param_groups] == [0.1] * len(optimizer.param_groups)


@pytest.mark.parametrize("lr", [1e-3, 0.3, 30.0])
def test_steps_are_those_of_geoopt(lr):
    """Weights of three shapes, short steps and long ones, against geoopt's own manifold and optimiser."""
    random = generator(0)
    shapes = [(5, 3), (4, 4), (5, 3), (6, 1)]
    points = [stiefel.random_orthonormal(*shape, generator=random, dtype=torch.float64) for shape in shapes]
    gradients = [torch.randn(shape, generator=random, dtype=torch.float64) for shape in shapes]
    ours, theirs = (
        [geoopt.ManifoldParameter(point.clone(), manifold=geoopt.EuclideanStiefel()) for point in points]
        for _ in range(2)
    )
    for kind, weights in ((StiefelSGD, ours), (geoopt.optim.RiemannianSGD, theirs)):
        optimizer = kind(weights, lr=lr)
        for _ in range(3):
            for weight, gradient in zip(weights, gradients, strict=True):
                weight.grad = gradient.clone()
            optimizer.step()
    for got, expected in zip(ours, theirs, strict=True):
        torch.testing.assert_close(got.detach(), expected.detach(), rtol=1e-9, atol=1e-12)


def test_weights_without_gradients_stay():
    model = H2HGCN(6, 4)
    before = copy.deepcopy(model.state_dict())
    assert build_optimizer(model).parts[1].step(lambda: 3) == 3
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_bad_arguments():
    with pytest.raises(ValueError, match="'sgd' is not known"):
        build_optimizer(H2HGCN(6, 4), stiefel_method="sgd")
    with pytest.raises(ValueError, match="no parameter"):
        StiefelOptimizer(None, None)


def test_copies_step_and_late_parameters_are_refused():
    model = H2HGCN(6, 4)
    optimizer = build_optimizer(model)
    train(model, optimizer, 1)
    model_copy, optimizer_copy = copy.deepcopy((model, optimizer))
    train(model, optimizer, 2)
    train(model_copy, optimizer_copy, 2)
    for a, b in zip(model.parameters(), model_copy.parameters(), strict=True):
        assert torch.equal(a, b)
    optimizer_copy.param_groups[0]["lr"] = 0.5
    assert optimizer_copy.parts[0].param_groups[0]["lr"] == 0.5
    with pytest.raises(ValueError, match="cannot be added later"):
        optimizer.add_param_group({"params": [nn.Parameter(torch.ones(1))]})
    with pytest.raises(ValueError, match="was it of another model"):
        optimizer.load_state_dict(torch.optim.Adam(model.parameters()).state_dict())
    with pytest.raises(ValueError, match="pass the module itself"):
        build_optimizer(model.parameters())


def test_points_of_the_ball_decay_and_stiefel_weights_do_not():
    ball, stiefel_weight = NodePoints(10, 3), LorentzLinear(3, 4)
    ball.weight.data *= 400
    before = ball().norm(dim=1)
    optimizer = build_optimizer(nn.ModuleList([ball, stiefel_weight]), lr=0.1, weight_decay=0.5)
    decays = {id(p): group.get("weight_decay", 0) for group in optimizer.param_groups for p in group["params"]}
    assert decays[id(stiefel_weight.weight)] == 0
    for parameter in (*ball.parameters(), *stiefel_weight.parameters()):
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    assert (ball().norm(dim=1) < before).all()
