import pytest
import torch
from torch import nn

from h2hgcn.layers.inputs import FeatureLinear
from h2hgcn.models.encoder import widths
from h2hgcn.models.mlp import Stack


def test_activations_are_between_layers():
    first, second = FeatureLinear(3, 4), FeatureLinear(4, 2)
    x = torch.randn(5, 3)
    torch.testing.assert_close(Stack([first, second], "tanh")(x), second(torch.tanh(first(x))))
    torch.testing.assert_close(Stack([first, second], None)(x), second(first(x)))


def test_what_else_is_given_goes_to_every_layer():
    class Scaled(nn.Linear):
        def forward(self, x, scale):
            return scale * super().forward(x)

    first, second = Scaled(3, 4), Scaled(4, 2)
    x = torch.randn(5, 3)
    torch.testing.assert_close(Stack([first, second])(x, 2.0), second(first(x, 2.0).relu(), 2.0))


@pytest.mark.parametrize("sparse", [False, True])
def test_dropout_acts_in_training_only(sparse):
    x = torch.randn(50, 3).to_sparse_coo() if sparse else torch.randn(50, 3)
    for dropouts in ({"dropout": 0.5}, {"feature_dropout": 0.5}):
        stack = Stack([FeatureLinear(3, 4), FeatureLinear(4, 2)], **dropouts)
        assert not torch.equal(stack(x), stack(x))
        stack.eval()
        assert torch.equal(stack(x), stack(x))


def test_widths():
    assert widths(7, 3, 1) == [(7, 3)]
    assert widths(7, 3, 3) == [(7, 3), (3, 3), (3, 3)]
    for bad, message in (((0, 3, 1), "in_features=0"), ((7, 0, 1), "dim=0"), ((7, 3, 0), "num_layers=0")):
        with pytest.raises(ValueError, match=f"{message} must be at least 1"):
            widths(*bad)


def test_weights_are_drawn_anew():
    stack = Stack([FeatureLinear(3, 4), FeatureLinear(4, 2)])
    before = [parameter.clone() for parameter in stack.parameters()]
    stack.reset_parameters()
    assert not any(torch.equal(*pair) for pair in zip(before, stack.parameters(), strict=True))
