"""Checks of what layers and encoders are made with and called with."""

from typing import Any

from torch import Tensor

from h2hgcn.layers.features import is_sparse
from h2hgcn.layers.spaces import Space


def check_sizes(**sizes: int) -> None:
    """Raises unless all are at least 1."""
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name}={size} must be at least 1")


def check_shares(**shares: float) -> None:
    """Raises unless every share can be dropped."""
    for name, share in shares.items():
        if not 0 <= share < 1:
            raise ValueError(f"{name}={share} must be 0 or more, and below 1")


def check_manifold(manifold: str) -> Space:
    """The argument itself, if it names a model of hyperbolic space."""
    if manifold == "lorentz":
        return "lorentz"
    if manifold == "ball":
        return "ball"
    raise ValueError(f"manifold={manifold!r} is not known; use 'lorentz' or 'ball'")


def check_features(x: Any, in_features: int) -> None:
    """Raises unless ``x`` has a row of ``in_features`` numbers for each node."""
    if not isinstance(x, Tensor) and not is_sparse(x):
        raise ValueError(f"x is a {type(x).__name__}; pass a tensor, or a sparse matrix of torch or SciPy")
    shape = tuple(x.shape)
    if len(shape) != 2 or shape[1] != in_features:
        raise ValueError(
            f"x has shape {shape}, but the encoder was made for {in_features} features; pass one row of {in_features} "
            f"numbers for each node, or make an encoder with in_features={shape[-1] if shape else 0}"
        )
