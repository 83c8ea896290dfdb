"""The first layer of a network: it takes features as they come, dense or sparse."""

from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from h2hgcn.layers.features import SparseFeatures, is_sparse, prepare_features


class FeatureLinear(nn.Linear):
    """``nn.Linear`` for features ``(n, in_features)`` that may be a sparse matrix of torch or SciPy."""

    def forward(self, x: Any) -> Tensor:
        shape = tuple(x.shape)
        if not shape or shape[-1] != self.in_features:
            raise ValueError(
                f"x has shape {shape}, but the encoder was made for {self.in_features} features; pass one row of "
                f"{self.in_features} numbers for each node, or make an encoder with in_features={shape[-1]}"
            )
        return feature_product(x, self.weight, self.bias)


def feature_product(x: Any, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``F.linear`` for features ``(n, in_features)`` that may be a sparse matrix of torch or SciPy."""
    if is_sparse(x):
        return prepare_features(x).to(weight.dtype).linear(weight, bias)
    return F.linear(x.to(weight.dtype), weight, bias)


def feature_dropout(x: Any, p: float, training: bool) -> Tensor | SparseFeatures:
    """Dropout of features, of whose zeros a sparse matrix has none to drop."""
    return prepare_features(x).dropout(p, training) if is_sparse(x) else F.dropout(x, p, training)


def dense_features(x: Any) -> Tensor:
    """Features as a dense tensor, for layers that take nothing else."""
    return prepare_features(x).to_dense() if is_sparse(x) else x
