import pytest
import torch
from samples import random_points

from h2hgcn.geometry import lorentz
from h2hgcn.layers import FermiDiracDecoder


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
