"""Time and memory of an epoch of training, ours beside a PyG GCN's, and where the time goes.

An epoch is one round of our training loop: a batch is drawn, a loss taken, differentiated and stepped on, and the
validation data looked at once. Every system has a process of its own; the processes take turns of a few epochs, so that
a noisy machine is noisy to all of them, and yet most epochs follow one of their own, as in training. All figures are
medians over epochs.

- `ours`: H2HGCN with two convolutions after its Euclidean stem, Stiefel weights stepped on by Riemannian SGD;
- `GCN, dense x`: two `GCNConv` layers of the same width with ReLU between them, through the same loop and tasks, with
  Adam. Its decoders are the same on Euclidean points: Fermi-Dirac on squared distances for links; for classes distances
  to as many learnt centroids into a linear classifier, and the same link-prediction term. It is handed what a user of
  PyG has, the edge_index and dense features. The normalisation is worked out once for a graph and shared by both
  layers: kept for good where the graph stays the same, again for the messages of each epoch of `lp-share`;
- `GCN, sparse x`: the same with features as a torch.sparse_csr tensor;
- `GCN, no centroids`: for classes, the faster of the two with a linear classifier in the place of the centroids, which
  is what a Euclidean model would have.

`ratio` is ours to the faster of the first two GCNs, by the clock. `CPU ratio` is the same by processor time, which does
not count the time that other programs hold the cores.

`lp` and `nc` are the tasks with their default settings; in `lp-share` half of the training edges, drawn again in each
epoch, carry messages and the other half is predicted, as in the presets of the command line. `batch` is the drawing of
negatives and messages; the backward pass is split at the points between encoder and decoder; `rest` is what the loop
itself does. `outside` is the share of an epoch spent elsewhere than in the encoder, be it forward, backward or in
evaluation.
"""

import multiprocessing
import statistics
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

import torch
from layer_speed import peak_megabytes
from report import parser, publish
from torch import Tensor, nn
from torch_geometric.nn import GCNConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from h2hgcn.datasets import DataError, load_dataset
from h2hgcn.models import H2HGCN
from h2hgcn.tasks import LinkPrediction, NodeClassification
from h2hgcn.tasks.model import Model, compact
from h2hgcn.training.loop import TrainingState, train
from h2hgcn.training.optimizers import StiefelOptimizer, build_optimizer
from h2hgcn.training.settings import TrainingSettings, torch_seeded

DATASETS = ("disease", "cora", "pubmed")
TASKS: dict[str, Any] = {
    "lp": LinkPrediction(),
    "lp-share": LinkPrediction(message_share=0.5),
    "nc": NodeClassification(),
}
SAME_DECODER = ("GCN, dense x", "GCN, sparse x")
NO_CENTROIDS = "GCN, no centroids"
SYSTEMS = ("ours", *SAME_DECODER, NO_CENTROIDS)
PARTS = ("batch", "encoder", "decoder, loss", "decoder back", "encoder back", "step", "evaluation", "rest")
NUM_LAYERS = 2
TURN = 6
WARM_UP = 1


class GCN(nn.Module):
    """Convolutions on an edge_index, the normalised form of one graph being kept."""

    space = "euclidean"

    def __init__(self, in_features: int, dim: int, kept: Tensor, num_nodes: int) -> None:
        super().__init__()
        self.dim = dim
        self.num_nodes = num_nodes
        widths = [in_features, *[dim] * NUM_LAYERS]
        self.convs = nn.ModuleList(GCNConv(widths[k], dim, normalize=False) for k in range(NUM_LAYERS))
        self.kept = kept
        self.normalized = gcn_norm(kept, None, num_nodes)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        graph = self.normalized if edge_index is self.kept else gcn_norm(edge_index, None, self.num_nodes)
        *convs, last = self.convs
        for conv in convs:
            x = conv(x, *graph).relu()
        points: Tensor = last(x, *graph)
        return points


class PlainFeatures:
    """Features that no scaling turns into another form."""

    def __init__(self, x: Tensor) -> None:
        self.x = x

    def of(self, scaling: nn.Module, prepared: bool = False) -> Tensor:
        return self.x


def gcn_on(problem: Any, graph: Any, dim: int, sparse: bool) -> GCN:
    """The encoder, and the problem made to hand it an edge_index and plain features."""
    problem.features = PlainFeatures(problem.x.to_sparse_csr() if sparse else problem.x)
    links = problem.task.name == "lp"
    problem.adjacency = problem.messages = problem.split.train_edge_index() if links else graph.edge_index
    problem._messages = lambda chosen: replace(problem.split, train=problem.split.train[chosen]).train_edge_index()
    return GCN(problem.in_features, dim, problem.adjacency, problem.num_nodes)


class Stopwatch:
    """Seconds by the part of an epoch that was over when they had passed."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.processor = time.process_time()
        self.last = time.perf_counter()

    def lap(self, part: str) -> None:
        now = time.perf_counter()
        self.seconds[part] += now - self.last
        self.last = now

    def around(self, function: Callable[..., Any], before: str, inside: str) -> Callable[..., Any]:
        def timed(*arguments: Any) -> Any:
            self.lap(before)
            result = function(*arguments)
            self.lap(inside)
            return result

        return timed

    def watch(self, problem: Any, model: Model, optimizer: StiefelOptimizer) -> None:
        """Puts laps where one part of an epoch ends and the next begins."""
        problem.loss = self.around(problem.loss, "batch", "decoder, loss")
        problem.evaluate = self.around(problem.evaluate, "rest", "evaluation")
        optimizer.step = self.around(optimizer.step, "encoder back", "step")  # type: ignore[method-assign]
        model.encoder.register_forward_hook(self._after_encoder)

    def _after_encoder(self, encoder: nn.Module, inputs: Any, points: Tensor) -> None:
        self.lap("encoder" if encoder.training else "encoder in evaluation")
        if encoder.training:
            points.register_hook(lambda grad: self.lap("decoder back"))


def serve(connection: Connection, system: str, dataset: str, task: str, dim: int, threads: int) -> None:
    """Runs epochs of one system when asked to, and answers with their seconds; at last, with its peak memory."""
    torch.set_num_threads(threads)
    warnings.filterwarnings("ignore", "Sparse CSR tensor support")
    graph = load_dataset(dataset)
    settings_of_task = TASKS[task]
    if task == "nc" and system in SAME_DECODER:
        settings_of_task = replace(settings_of_task, classifier="centroids")
    problem = settings_of_task.bind(graph)
    with torch_seeded(0):
        if system == "ours":
            encoder: nn.Module = H2HGCN(problem.in_features, dim, NUM_LAYERS)
        else:
            sparse = system == "GCN, sparse x" or (system == NO_CENTROIDS and compact(problem.x).is_sparse)
            encoder = gcn_on(problem, graph, dim, sparse)
        model = problem.build(encoder)
    optimizer, state = build_optimizer(model), TrainingState()
    stopwatch = Stopwatch()
    stopwatch.watch(problem, model, optimizer)

    def asked_to_stop() -> bool:
        stop = connection.recv() != "epoch"
        stopwatch.start()
        return stop

    def answer(_: Any) -> None:
        stopwatch.lap("rest")
        connection.send((dict(stopwatch.seconds), time.process_time() - stopwatch.processor))

    settings = TrainingSettings(epochs=10**9, patience=None)
    connection.send("ready")
    train(problem, model, optimizer, settings, 0, state, answer, asked_to_stop)
    once = replace(settings, epochs=state.epoch + 1)
    connection.send(peak_megabytes(lambda: train(problem, model, optimizer, once, 0, state, lambda _: None)))


def measure(
    dataset: str, task: str, dim: int, repeats: int, threads: int
) -> tuple[dict[str, dict[str, float]], dict[str, float | None]]:
    """Median milliseconds of the parts of an epoch, and peak megabytes, of every system."""
    context = multiprocessing.get_context("spawn")
    connections: dict[str, Any] = {}
    for name in systems_of(task):
        connections[name], child = context.Pipe()
        arguments = (child, name, dataset, task, dim, threads)
        context.Process(target=serve, args=arguments, daemon=True).start()
        child.close()
        connections[name].recv()
    epochs: dict[str, list[tuple[dict[str, float], float]]] = {name: [] for name in connections}
    for _ in range(WARM_UP + repeats):
        for name, connection in connections.items():
            for _ in range(TURN):
                connection.send("epoch")
                epochs[name].append(connection.recv())
    peaks = {}
    for name, connection in connections.items():
        connection.send("stop")
        peaks[name] = connection.recv()
    return {name: medians(laps[WARM_UP * TURN :]) for name, laps in epochs.items()}, peaks


def systems_of(task: str) -> tuple[str, ...]:
    return SYSTEMS if task == "nc" else ("ours", *SAME_DECODER)


def medians(epochs: list[tuple[dict[str, float], float]]) -> dict[str, float]:
    """Milliseconds of each part and of the epoch, by the clock and of the processor; the share outside the encoder."""
    totals = [sum(parts.values()) for parts, _ in epochs]
    result = {part: 1e3 * statistics.median(parts[part] for parts, _ in epochs) for part in epochs[0][0]}
    result["processor"] = 1e3 * statistics.median(processor for _, processor in epochs)
    result["evaluation"] += result["encoder in evaluation"]
    within = result["encoder"] + result["encoder back"] + result["encoder in evaluation"]
    result["epoch"] = 1e3 * statistics.median(totals)
    result["outside"] = 1 - within / result["epoch"]
    return result


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--datasets", nargs="+", default=list(DATASETS), help="named ones (default: %(default)s)")
    arguments.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS), help="(default: all)")
    arguments.add_argument("--dim", type=int, default=64, help="width of the layers (default: %(default)s)")
    arguments.add_argument(
        "--repeats", type=int, default=15, help=f"turns of each system, of {TURN} epochs (default: %(default)s)"
    )
    options = arguments.parse_args()
    epochs, parts, memory = [], [], []
    for dataset in options.datasets:
        absent = why_absent(dataset)
        for task in options.tasks:
            place = {"dataset": dataset, "task": task}
            figures, peaks = (
                ({}, {}) if absent else measure(dataset, task, options.dim, options.repeats, options.threads)
            )
            epochs.append(place | epoch_row(figures, absent))
            parts += [place | {"system": name} | part_row(figures.get(name, {})) for name in systems_of(task)]
            memory.append(place | {name: rounded(peaks.get(name), 0) for name in SYSTEMS})
    tables = {
        "Median milliseconds of an epoch": epochs,
        "Median milliseconds of the parts of an epoch": parts,
        "Peak megabytes of an epoch": memory,
    }
    publish(tables, options)


def why_absent(dataset: str) -> str | None:
    try:
        load_dataset(dataset)
    except DataError as error:
        return str(error).split(":")[0]
    return None


def epoch_row(figures: dict[str, dict[str, float]], absent: str | None) -> dict[str, Any]:
    row: dict[str, Any] = {name: rounded(figures.get(name, {}).get("epoch"), 2) for name in SYSTEMS}
    if absent:
        return row | {"ratio": absent, "CPU ratio": "-", "outside, ours": "-", "outside, GCN": "-"}
    ours, *gcns = (figures[name] for name in ("ours", *SAME_DECODER))
    faster = min(gcns, key=lambda gcn: gcn["epoch"])
    return row | {
        "ratio": round(ours["epoch"] / faster["epoch"], 2),
        "CPU ratio": round(ours["processor"] / min(gcn["processor"] for gcn in gcns), 2),
        "outside, ours": f"{ours['outside']:.0%}",
        "outside, GCN": f"{faster['outside']:.0%}",
    }


def part_row(figures: dict[str, float]) -> dict[str, Any]:
    return {part: rounded(figures.get(part), 2) for part in PARTS}


def rounded(value: float | None, digits: int) -> Any:
    return "-" if value is None else round(value, digits)


if __name__ == "__main__":
    main()
