"""Training: optimisers."""

from h2hgcn.training.optimizers import StiefelOptimizer, build_optimizer

__all__ = ["StiefelOptimizer", "build_optimizer"]
