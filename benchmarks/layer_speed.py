"""Time and memory of two convolutions, forward and backward, on a graph of PubMed's size.

Every system has a process of its own, as it would in use, since allocators remember what ran before; the processes
take turns, one step each, so that a noisy machine is noisy to all of them. Gradients flow to the input and to all
weights.

- `ours`: two H2HConv layers on a prepared adjacency, as H2HGCN runs them between the exponential map and its output;
- `ours, edge_index`: the same layers called one by one with the edge_index, as PyG's are, checks included;
- `ours, with exp`: H2HGCN without a stem, from Euclidean vectors, the exponential map included;
- `PyG GCNConv`: on the edge_index, by gather and scatter;
- `CSR GCN`: relu(A(XW) + b) on torch.sparse_csr tensors, the transpose prepared once;
- `same-kernel GCN`: the same on our sparse product, which is faster than torch.sparse_csr's;
- `products`: the bare dense and sparse products on our kernel, the floor of any GCN;
- `literal`: the paper's equations as they are written, by gather and scatter.
"""

import ctypes
import gc
import multiprocessing
import statistics
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import literal
import torch
from report import parser, publish
from torch import Tensor, nn
from torch_geometric.nn import GCNConv

from h2hgcn.geometry import lorentz
from h2hgcn.kernels.csr import sparse_matmul
from h2hgcn.layers import H2HConv, prepare_adjacency
from h2hgcn.models import H2HGCN

NUM_NODES = 19_717
NUM_EDGES = 44_324
NUM_LAYERS = 2

Forward = Callable[[], Tensor]


def pubmed_sized_graph() -> Tensor:
    """Both directions of random edges, one end drawn from a heavy-tailed distribution."""
    generator = torch.Generator().manual_seed(0)
    popularity = torch.rand(NUM_NODES, generator=generator).pow(-0.6)
    source = torch.multinomial(popularity, NUM_EDGES, replacement=True, generator=generator)
    target = torch.randint(NUM_NODES, (NUM_EDGES,), generator=generator)
    edges = torch.stack([source, target])
    return torch.cat([edges, edges.flip(0)], dim=1)


class Problem:
    """The graph, the features, and the weights of one width."""

    def __init__(self, dim: int) -> None:
        torch.manual_seed(0)
        self.dim = dim
        self.edge_index = pubmed_sized_graph()
        self.x = (torch.randn(NUM_NODES, dim) / dim**0.5).requires_grad_()
        self.points = lorentz.exp_origin(self.x.detach()).requires_grad_()
        self.convs = [H2HConv(dim, dim) for _ in range(NUM_LAYERS)]
        self.leaves: list[Tensor] = []
        self.weights = [nn.Parameter(torch.randn(dim, dim) / dim**0.5) for _ in range(NUM_LAYERS)]
        self.biases = [nn.Parameter(torch.zeros(dim)) for _ in range(NUM_LAYERS)]

    def _stiefel(self) -> list[Tensor]:
        return [conv.linear.weight for conv in self.convs]

    def ours(self) -> Forward:
        adjacency = prepare_adjacency(self.edge_index, None, NUM_NODES)
        self.leaves = [self.points, *self._stiefel()]

        def forward() -> Tensor:
            points: Tensor = self.points
            for conv in self.convs:
                points = conv.convolve(points, adjacency.matrix(conv.neighbor_weights, points.dtype))
            return points

        return forward

    def ours_edge_index(self) -> Forward:
        self.leaves = [self.points, *self._stiefel()]

        def forward() -> Tensor:
            points: Tensor = self.points
            for conv in self.convs:
                points = conv(points, self.edge_index)
            return points

        return forward

    def ours_with_exp(self) -> Forward:
        encoder = H2HGCN(self.dim, self.dim, NUM_LAYERS, stem=False)
        adjacency = prepare_adjacency(self.edge_index, None, NUM_NODES)
        self.leaves = [self.x, *(parameter for parameter in encoder.parameters() if parameter.requires_grad)]
        return lambda: encoder(self.x, adjacency)

    def pyg(self) -> Forward:
        convs = [GCNConv(self.dim, self.dim) for _ in range(NUM_LAYERS)]
        self.leaves = [self.x, *(parameter for conv in convs for parameter in conv.parameters())]

        def forward() -> Tensor:
            hidden: Tensor = self.x
            for conv in convs:
                hidden = conv(hidden, self.edge_index).relu()
            return hidden

        return forward

    def csr_gcn(self) -> Forward:
        matrix = prepare_adjacency(self.edge_index, None, NUM_NODES).matrix("symmetric", torch.float32)
        size = (NUM_NODES, NUM_NODES)
        forward = torch.sparse_csr_tensor(*matrix[:3], size, check_invariants=False)
        backward = torch.sparse_csr_tensor(*matrix[3:], size, check_invariants=False)
        return self._gcn(lambda dense: TorchCSRProduct.apply(dense, forward, backward))  # type: ignore[no-untyped-call]

    def same_kernel_gcn(self) -> Forward:
        matrix = prepare_adjacency(self.edge_index, None, NUM_NODES).matrix("symmetric", torch.float32)
        return self._gcn(lambda dense: sparse_matmul(matrix, dense))

    def _gcn(self, product: Callable[[Tensor], Tensor]) -> Forward:
        self.leaves = [self.x, *self.weights, *self.biases]

        def forward() -> Tensor:
            hidden: Tensor = self.x
            for weight, bias in zip(self.weights, self.biases, strict=True):
                hidden = (product(hidden @ weight.T) + bias).relu()
            return hidden

        return forward

    def products(self) -> Forward:
        matrix = prepare_adjacency(self.edge_index, None, NUM_NODES).matrix("symmetric", torch.float32)
        self.leaves = [self.x, *self.weights]

        def forward() -> Tensor:
            hidden: Tensor = self.x
            for weight in self.weights:
                hidden = sparse_matmul(matrix, hidden @ weight.T)
            return hidden

        return forward

    def literal(self) -> Forward:
        index, weights = literal.with_self_loops(self.edge_index, torch.ones(self.edge_index.shape[1]), NUM_NODES)
        weights = literal.neighbor_weights(index, weights, NUM_NODES, "symmetric")
        layers = self._stiefel()
        self.leaves = [self.points, *layers]
        return lambda: literal.encoder(self.points, layers, index, weights, torch.relu)


SYSTEMS: dict[str, Callable[[Problem], Forward]] = {
    "ours": Problem.ours,
    "ours, edge_index": Problem.ours_edge_index,
    "ours, with exp": Problem.ours_with_exp,
    "PyG GCNConv": Problem.pyg,
    "CSR GCN": Problem.csr_gcn,
    "same-kernel GCN": Problem.same_kernel_gcn,
    "products": Problem.products,
    "literal": Problem.literal,
}


class TorchCSRProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, dense: Tensor, matrix: Tensor, transpose: Tensor) -> Tensor:
        ctx.transpose = transpose
        return matrix @ dense

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return ctx.transpose @ grad, None, None


def serve(connection: Connection, name: str, dim: int, threads: int) -> None:
    """Runs steps of one system as they are asked for, and answers with their seconds; at last, with its peak memory."""
    torch.set_num_threads(threads)
    problem = Problem(dim)
    forward = SYSTEMS[name](problem)
    grad = torch.randn_like(forward())

    def step() -> None:
        torch.autograd.grad(forward(), problem.leaves, grad)

    step()
    connection.send("ready")
    while connection.recv() == "step":
        start = time.perf_counter()
        step()
        connection.send(time.perf_counter() - start)
    connection.send(peak_megabytes(step))


def peak_megabytes(step: Callable[[], None]) -> float | None:
    """What a step adds at its peak to what the process holds without it; None where the system does not tell."""
    gc.collect()
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    except OSError:
        return None
    before = _status_megabytes("VmRSS")
    step()
    return _status_megabytes("VmHWM") - before


def _status_megabytes(key: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(key)) / 1024


def measure(dim: int, repeats: int, threads: int) -> tuple[dict[str, float], dict[str, float | None]]:
    """Median seconds and peak megabytes of every system."""
    context = multiprocessing.get_context("spawn")
    connections: dict[str, Any] = {}
    for name in SYSTEMS:
        connections[name], child = context.Pipe()
        context.Process(target=serve, args=(child, name, dim, threads), daemon=True).start()
        connections[name].recv()
    seconds: dict[str, list[float]] = {name: [] for name in SYSTEMS}
    for _ in range(repeats):
        for name, connection in connections.items():
            connection.send("step")
            seconds[name].append(connection.recv())
    peaks = {}
    for name, connection in connections.items():
        connection.send("stop")
        peaks[name] = connection.recv()
    return {name: statistics.median(values) for name, values in seconds.items()}, peaks


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument(
        "--dims", type=int, nargs="+", default=[16, 64, 128, 256], help="widths (default: %(default)s)"
    )
    arguments.add_argument("--repeats", type=int, default=25, help="steps of each system (default: %(default)s)")
    options = arguments.parse_args()
    torch.set_num_threads(options.threads)
    milliseconds, ratios, memory = [], [], []
    for dim in options.dims:
        seconds, peaks = measure(dim, options.repeats, options.threads)
        milliseconds.append({"dim": dim, **{name: round(1e3 * value, 1) for name, value in seconds.items()}})
        ratios.append({"dim": dim, **{name: round(seconds["ours"] / value, 2) for name, value in seconds.items()}})
        memory.append({"dim": dim, **{name: None if peak is None else round(peak) for name, peak in peaks.items()}})
    tables = {
        "Median milliseconds of a step": milliseconds,
        "Our time divided by each system's": ratios,
        "Peak megabytes of a step": memory,
    }
    publish(tables, options)


if __name__ == "__main__":
    main()
