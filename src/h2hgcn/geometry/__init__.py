"""Hyperbolic and Stiefel geometry as pure functions on tensors."""

from h2hgcn.geometry import klein, lorentz, numerics, poincare, stiefel

__all__ = ["klein", "lorentz", "numerics", "poincare", "stiefel"]
