import pytest
import torch

from h2hgcn.kernels.csr import prepare_features
from h2hgcn.layers.inputs import FeatureLinear, feature_dropout


def sparse_and_dense():
    x = torch.randn(30, 12).relu()
    return x.to_sparse_coo(), x


def test_sparse_and_dense_features_give_the_same():
    torch.manual_seed(0)
    sparse, dense = sparse_and_dense()
    for bias in (True, False):
        linear = FeatureLinear(12, 5, bias=bias)
        torch.testing.assert_close(linear(sparse), linear(dense))
        torch.testing.assert_close(linear(dense), torch.nn.functional.linear(dense, linear.weight, linear.bias))
        gradients = [torch.autograd.grad(linear(x).square().sum(), linear.weight)[0] for x in (sparse, dense)]
        torch.testing.assert_close(*gradients)
    assert torch.equal(prepare_features(sparse).to_dense(), dense)


def test_dropout_of_features():
    sparse, dense = sparse_and_dense()
    for x in (sparse, dense):
        torch.manual_seed(1)
        dropped, kept = (feature_dropout(x, 0.5, training) for training in (True, False))
        if x is sparse:
            dropped, kept = dropped.to_dense(), kept.to_dense()
        assert set(dropped[dense > 0].div(dense[dense > 0]).round().tolist()) == {0.0, 2.0}
        assert torch.equal(kept, dense)


def test_features_of_another_width():
    for x in sparse_and_dense():
        with pytest.raises(ValueError, match=r"x has shape \(30, 12\), but the encoder was made for 7 features"):
            FeatureLinear(7, 5)(x)
