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


def test_of_another_space():
    decoder = FermiDiracDecoder(squared_distance=lambda x, y: (x - y).square().sum(-1))
    torch.testing.assert_close(decoder(torch.zeros(1, 2), torch.ones(1, 2)), torch.tensor([0.0]))


def test_bad_input():
    with pytest.raises(ValueError, match="positive temperature"):
        FermiDiracDecoder(t=0.0)
    with pytest.raises(ValueError, match="width 3, target points 4"):
        FermiDiracDecoder()(torch.ones(2, 3), torch.ones(2, 4))
    assert repr(FermiDiracDecoder()) == "FermiDiracDecoder(r=2, t=1, learnable=False)"
