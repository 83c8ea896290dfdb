"""The equations of the paper, letter by letter: the oracle of the tests, and the slow end of the speed benchmark.

Dai et al., "A Hyperbolic-to-Hyperbolic Graph Convolutional Network", CVPR 2021, Eq. 5, 6, 9-13. Nothing here is
stable, fast, or defined at the edges; nothing here shares code with the package.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

Activation = Callable[[Tensor], Tensor]


def with_self_loops(edge_index: Tensor, edge_weight: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    """N̂(i): every node is its own neighbour, with weight 1 unless the graph says otherwise."""
    missing = sorted(set(range(num_nodes)) - set(edge_index[0][edge_index[0] == edge_index[1]].tolist()))
    loops = torch.tensor([missing, missing], dtype=torch.long)
    return torch.cat([edge_index, loops], dim=1), torch.cat([edge_weight, edge_weight.new_ones(len(missing))])


def neighbor_weights(edge_index: Tensor, edge_weight: Tensor, num_nodes: int, scheme: str) -> Tensor:
    """w_ij of every edge, self-loops included: as given, or divided by sqrt(d_i d_j)."""
    if scheme == "uniform":
        return edge_weight
    source, target = edge_index
    degree = torch.zeros(num_nodes, dtype=edge_weight.dtype).index_add(0, target, edge_weight)
    return edge_weight / (degree[source] * degree[target]).sqrt()


def exponential_map(features: Tensor) -> Tensor:
    """Eq. 9."""
    norm = features.norm(dim=1, keepdim=True)
    return torch.cat([norm.cosh(), norm.sinh() * features / norm], dim=1)


def transformation(points: Tensor, weight: Tensor) -> Tensor:
    """Eq. 10-11."""
    block_diagonal = torch.block_diag(torch.ones(1, 1, dtype=weight.dtype), weight)
    return points @ block_diagonal.T


def einstein_midpoint(points: Tensor, edge_index: Tensor, weights: Tensor) -> Tensor:
    """Eq. 12."""
    source, target = edge_index
    klein = points[:, 1:] / points[:, :1]
    factor = 1 / (1 - klein.square().sum(1)).sqrt()
    coefficient = weights * factor[source]
    numerator = torch.zeros_like(klein).index_add(0, target, coefficient[:, None] * klein[source])
    denominator = torch.zeros_like(factor).index_add(0, target, coefficient)
    average = numerator / denominator[:, None]
    return (
        torch.cat([torch.ones_like(average[:, :1]), average], dim=1)
        / (1 - average.square().sum(1, keepdim=True)).sqrt()
    )


def activation_in_ball(points: Tensor, activation: Activation) -> Tensor:
    """Eq. 13."""
    ball = activation(points[:, 1:] / (points[:, :1] + 1))
    square = ball.square().sum(1, keepdim=True)
    return torch.cat([1 + square, 2 * ball], dim=1) / (1 - square)


def convolution(points: Tensor, weight: Tensor, edge_index: Tensor, weights: Tensor, activation: Activation) -> Tensor:
    """One layer; ``edge_index`` has its self-loops."""
    return activation_in_ball(einstein_midpoint(transformation(points, weight), edge_index, weights), activation)


def encoder(
    points: Tensor, layers: Sequence[Tensor], edge_index: Tensor, weights: Tensor, activation: Activation
) -> Tensor:
    """Algorithm 1 from the hyperbolic representations on."""
    for weight in layers:
        points = convolution(points, weight, edge_index, weights, activation)
    return points
