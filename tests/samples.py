"""Random points, graphs and pairs that several tests draw from."""

import math

import torch
from hypothesis import strategies as st

from h2hgcn.geometry import lorentz

seeds = st.integers(0, 2**31 - 1)
dtypes = st.sampled_from([torch.float32, torch.float64])


def generator(seed):
    return torch.Generator().manual_seed(seed)


def random_points(count, dim, radius, seed=0, dtype=torch.float64):
    """Points in random directions, at radii up to ``radius``."""
    random = generator(seed)
    direction = torch.nn.functional.normalize(torch.randn(count, dim, generator=random, dtype=torch.float64))
    length = radius * torch.rand(count, 1, generator=random, dtype=torch.float64)
    return lorentz.exp_origin((direction * length).to(dtype))


def random_graph(num_nodes, num_edges, seed=0):
    """Weighted, directed, with duplicate edges, self-loops, and a last node without any edge."""
    random = generator(seed)
    edge_index = torch.randint(max(1, num_nodes - 1), (2, num_edges), generator=random)
    edge_index = torch.cat([edge_index, edge_index[:, : num_edges // 4]], dim=1)
    edge_weight = 0.1 + torch.rand(edge_index.shape[1], generator=random, dtype=torch.float64)
    loops = edge_index[0] == edge_index[1]
    keep = ~loops | (torch.cumsum(loops, 0) <= 1)
    return edge_index[:, keep], edge_weight[keep]


def pair_at(radius, distance, kind, dim=16, seed=0):
    """Space coordinates (float64) of two points about ``distance`` apart: by "angle", by "radius", or by "both"."""
    random = generator(seed)
    u, w = torch.linalg.qr(torch.randn(dim, 2, generator=random, dtype=torch.float64))[0].T
    radial = {"angle": 0.0, "radius": distance, "both": distance / 2}[kind]
    other = radius - radial
    cosine_gap = (math.cosh(distance) - math.cosh(radial)) / (math.sinh(radius) * abs(math.sinh(other)) or math.inf)
    angle = 2 * math.asin(math.sqrt(min(2.0, cosine_gap) / 2))
    first = math.sinh(radius) * u
    second = math.sinh(other) * (math.cos(angle) * u + math.sin(angle) * w)
    return first, second


def as_points(space, dtype):
    space = torch.atleast_2d(space).to(dtype)
    return lorentz.project(torch.cat([torch.ones_like(space[:, :1]), space], dim=1))


def boost(points, rapidity, seed=0):
    """A Lorentz boost of all points, in a random direction."""
    dim = points.shape[-1] - 1
    direction = torch.nn.functional.normalize(torch.randn(dim, generator=generator(seed), dtype=points.dtype), dim=0)
    matrix = torch.eye(dim + 1, dtype=points.dtype)
    matrix[0, 0] = math.cosh(rapidity)
    matrix[0, 1:] = matrix[1:, 0] = math.sinh(rapidity) * direction
    matrix[1:, 1:] += (math.cosh(rapidity) - 1) * torch.outer(direction, direction)
    return points @ matrix
