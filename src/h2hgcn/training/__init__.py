"""Training: optimizers, the loop, checkpoints, and the folder of a run."""

from h2hgcn.training.fit import fit
from h2hgcn.training.loading import load_run
from h2hgcn.training.loggers import Logger
from h2hgcn.training.loop import NonFiniteLossError
from h2hgcn.training.optimizers import StiefelOptimizer, build_optimizer
from h2hgcn.training.run import Run
from h2hgcn.training.settings import TrainingSettings

__all__ = [
    "Logger",
    "NonFiniteLossError",
    "Run",
    "StiefelOptimizer",
    "TrainingSettings",
    "build_optimizer",
    "fit",
    "load_run",
]
