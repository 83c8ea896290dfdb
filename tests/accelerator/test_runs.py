"""Training, loading and predicting on an accelerator, for the three tasks."""

from functools import partial

import numpy as np
import pytest
import torch
from runs import SMALL, TASKS, disease, shapes

from h2hgcn.models import H2HGCN
from h2hgcn.tasks import LinkPrediction, NodeClassification
from h2hgcn.training import TrainingSettings, fit, load_run

FEW = TrainingSettings(epochs=2, checkpoint_seconds=0)
SAMPLED = TrainingSettings(epochs=2, batch_size=32, fanout="3,2", workers=1)


def wide(graph):
    """The same graph with features that are kept sparse."""
    x = torch.zeros(graph.num_nodes, 200)
    x[torch.arange(graph.num_nodes), torch.arange(graph.num_nodes) % 200] = 1
    graph.x = x
    return graph
