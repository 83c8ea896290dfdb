"""Experiments: typed configuration, and settings that are known to serve."""

from h2hgcn.experiments.config import Experiment, read_experiment

__all__ = ["Experiment", "read_experiment"]
