"""Classes of nodes from those of their neighbours, without features and without learning."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.nn.models import LabelPropagation

from h2hgcn.layers.adjacency import Adjacency

# What the paper leaves open, at values that are common on citation graphs.
_STEPS = 50
_ALPHA = 0.9


def propagated_classes(adjacency: Adjacency, labels: Tensor, train: Tensor) -> NDArray[np.int64]:
    """The class that label propagation (Zhou et al. 2004) gives to every node from the training nodes; the most
    frequent one where no label arrives.
    """
    index, weights = adjacency.edges(self_loops=False)
    index, weights = gcn_norm(index, weights.float(), adjacency.num_nodes, add_self_loops=False)  # not done for weights
    scores = LabelPropagation(_STEPS, _ALPHA)(labels.clamp_min(0), index, train, weights)
    classes = scores.argmax(1)
    classes[scores.amax(1) == 0] = torch.bincount(labels[train]).argmax()
    return classes.cpu().numpy()
