"""No NaN and no infinity: random configurations (depth 1 to 16, width 2 to 256, activation, features scaled by 10⁻⁶ to
10⁶, dense, sparse, disconnected and edgeless graphs, float32 and float64), 20 training steps each.

The test suite trains the first few hundred of them.
"""

import multiprocessing
import random
import sys

import torch
from report import parser, publish
from torch import Tensor
from torch.nn import functional as F

from h2hgcn.geometry import lorentz, stiefel
from h2hgcn.layers import CentroidDistance, FermiDiracDecoder, prepare_adjacency
from h2hgcn.models import H2HGCN
from h2hgcn.training import build_optimizer

ACTIVATIONS = ["relu", "relu", "leaky_relu", "identity", "elu", "tanh", "softsign"]


def draw_graph(draw: random.Random, num_nodes: int) -> Tensor:
    kind = draw.choice(["dense", "sparse", "disconnected", "edgeless"])
    if kind == "dense":
        return torch.ones(num_nodes, num_nodes).nonzero().T
    if kind == "edgeless":
        return torch.empty(2, 0, dtype=torch.long)
    reach = num_nodes if kind == "sparse" else max(1, num_nodes // 3)
    return torch.randint(reach, (2, 2 * num_nodes))


def draw_model(draw: random.Random, in_features: int, width: int, dtype: torch.dtype) -> H2HGCN:
    stem = draw.random() < 0.7 or width < in_features
    return H2HGCN(
        in_features,
        width,
        draw.randint(1, 16),
        activation=draw.choice(ACTIVATIONS),
        neighbor_weights=draw.choice(["symmetric", "uniform"]),
        stem=stem,
        stem_activation=draw.choice(["relu", "selu", "tanh", None]),
        tied=stem and draw.random() < 0.3,
        dropout=draw.choice([0.0, 0.5]),
        max_tangent_norm=draw.choice([None, None, 1.0, 3.0]),
        learn_curvature=draw.random() < 0.3,
        dtype=dtype,
    )


def train(seed: int) -> None:
    """Trains one configuration, and fails where a number goes bad."""
    draw = random.Random(seed)
    torch.manual_seed(seed)
    dtype = draw.choice([torch.float32, torch.float64])
    num_nodes = draw.choice([1, 2, 12, 30])
    width = draw.choice([2, 2, 3, 3, 4, 8, 8, 8, 16, 16, 16, 16, 16, 32, 32, 32, 64, 64, 128, 256])
    in_features = draw.choice([2, 5, 20])
    x = 10 ** draw.uniform(-6, 6) * torch.randn(num_nodes, in_features, dtype=dtype)
    if draw.random() < 0.3:
        x[torch.rand_like(x) < 0.7] = 0
        x = x.to_sparse() if draw.random() < 0.5 else x
    edge_index = draw_graph(draw, num_nodes)
    adjacency = prepare_adjacency(edge_index, None, num_nodes)
    model = draw_model(draw, in_features, width, dtype)
    head = CentroidDistance(width, 3, dtype=dtype)
    decoder = FermiDiracDecoder(learnable=draw.random() < 0.5).to(dtype)
    modules = torch.nn.ModuleList([model, head, decoder])
    optimizer = build_optimizer(
        modules,
        lr=10 ** draw.uniform(-4, -1),
        stiefel_lr=10 ** draw.uniform(-3, 1),
        stiefel_method=draw.choice(["rsgd", "radam"]),
    )
    labels = torch.randint(3, (num_nodes,))
    pairs = torch.randint(num_nodes, (2, 40))
    for _ in range(20):
        optimizer.zero_grad()
        points = model(x, adjacency)
        links = decoder(points[pairs[0]], points[pairs[1]], distance_scale=model.distance_scale)
        loss = F.cross_entropy(-head(points), labels)
        loss = loss + F.binary_cross_entropy_with_logits(links, (torch.arange(40) % 2).to(dtype))
        loss.backward()
        assert loss.isfinite(), f"loss {loss.item()}"
        assert points.isfinite().all()
        assert lorentz.violation(points).max() <= 1e-5
        for name, parameter in modules.named_parameters():
            assert parameter.grad is None or parameter.grad.isfinite().all(), f"gradient of {name}"
        optimizer.step()
    for name, parameter in modules.named_parameters():
        assert parameter.isfinite().all(), name
    first = model.get_parameter("convs.0.linear.weight")
    assert stiefel.violation(first) <= 1e-5


def failure(seed: int) -> str | None:
    """What went wrong in a configuration, if anything did."""
    torch.set_num_threads(1)
    try:
        train(seed)
    except AssertionError as error:
        return f"configuration {seed}: {error}"
    return None


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--configurations", type=int, default=1000, help="how many (default: %(default)s)")
    arguments.add_argument("--processes", type=int, default=2, help="side by side (default: %(default)s)")
    options = arguments.parse_args()
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        failures = [message for message in pool.map(failure, range(options.configurations), chunksize=10) if message]
    for message in failures:
        print(message, file=sys.stderr)
    publish(
        {"Training without a bad number": [{"configurations": options.configurations, "failures": len(failures)}]},
        options,
    )
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
