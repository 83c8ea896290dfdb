"""Tasks: what is predicted, the loss, the metrics, and which of them selects."""

from typing import Any

from h2hgcn.tasks.baselines import link_baselines
from h2hgcn.tasks.embedding import Embedding
from h2hgcn.tasks.graphs import GraphClassification
from h2hgcn.tasks.links import LinkPrediction
from h2hgcn.tasks.nodes import NodeClassification

TASKS: dict[str, type[Any]] = {
    "lp": LinkPrediction,
    "nc": NodeClassification,
    "gc": GraphClassification,
    "embed": Embedding,
}

__all__ = ["TASKS", "Embedding", "GraphClassification", "LinkPrediction", "NodeClassification", "link_baselines"]
