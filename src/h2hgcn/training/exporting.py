"""A run as a program of its own: its encoder and head on a fixed graph, for ``torch.export`` and ONNX."""

import io
import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy, deepcopy
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from h2hgcn.errors import DataError, DataWarning, first_line
from h2hgcn.files import atomic_write
from h2hgcn.graph.adjacency import Adjacency
from h2hgcn.kernels.csr import is_sparse
from h2hgcn.layers.spaces import check_space, mean_points
from h2hgcn.lazy import import_extra
from h2hgcn.models.encoder import Encoder
from h2hgcn.tasks.graphs import PreparedGraph, batch_of
from h2hgcn.tasks.links import LinkHead
from h2hgcn.tasks.neighborhoods import FixedNeighborhoods
from h2hgcn.training.names import chosen_graphs
from h2hgcn.training.settings import one_at_a_time

if TYPE_CHECKING:
    from h2hgcn.training.run import Run

Format = Literal["onnx", "torch"]
Part = Literal["all", "encoder"]
Tensors = dict[str, Tensor]

FORMATS: dict[str, Format] = {".onnx": "onnx", ".pt2": "torch"}
OPSET = 18

# By how much, relative to numbers above 1, a program may differ from its run without a warning.
_TOLERANCE = 1e-5

# Pairs that a program is traced and checked with, linked and not.
_PAIRS = 64


@dataclass(frozen=True)
class Exported:
    """What ``Run.export`` wrote: its inputs and outputs with their shapes, and the largest difference between the
    program's outputs and the run's, relative for numbers above 1 (None if ONNX Runtime is not there to measure it).
    """

    path: Path
    format: Format
    inputs: dict[str, tuple[Any, ...]]
    outputs: dict[str, tuple[Any, ...]]
    difference: float | None


@one_at_a_time()
def export_run(run: "Run", path: str | Path, format: str | None, part: str, graph: Any, opset: int) -> Exported:  # noqa: A002
    """``Run.export``."""
    path = Path(path)
    kind = _format_of(path, format)
    if part not in ("all", "encoder"):
        raise DataError(f"part={part!r} is not known; use 'all' or 'encoder'")
    if kind == "onnx":
        import_extra("onnxscript", "what ONNX is written with", "export")
        if opset < OPSET:
            raise DataError(f"opset={opset}: these models need the operations of opset {OPSET} or a newer one")
    model = FixedModel(run, part, graph)
    inputs = model.example(run)
    with torch.no_grad(), run.threads(model.adjacency.num_nodes):
        expected = model.expected(run, inputs)
        model(**inputs)  # prepares all that a graph is asked for
        program = _traced(run, model, inputs)
        used = {node.name for node in program.graph.nodes if node.op == "placeholder" and node.users}
        if "x" in inputs and "x" not in used:  # the model does not look at features
            model.fix_features(inputs.pop("x"))
            program = _traced(run, model, inputs)
        about = _about(run, model)
        if kind == "onnx":
            data = _as_onnx(run, program, list(expected), about, opset)
            found = _run_onnx(data, inputs, list(expected))
        else:
            buffer = io.BytesIO()
            torch.export.save(program, buffer, extra_files={"h2hgcn.json": json.dumps(about)})
            data, found = buffer.getvalue(), program.module()(**inputs)
    with atomic_write(path) as file:
        file.write(data)
    difference = None if found is None else _difference(found, expected)
    if difference is not None and not difference <= _TOLERANCE:
        warnings.warn(
            f"outputs of {path} differ from the run's by up to {difference:.1g}: float32 knows points far from the "
            "origin less well; train with training.dtype=float64 if that matters",
            DataWarning,
            stacklevel=3,
        )
    of_pairs = ("pairs", "probabilities") if "pairs" in inputs else ()
    given, got = (
        {name: ("num_pairs" if name in of_pairs else len(value), *value.shape[1:]) for name, value in some.items()}
        for some in (inputs, expected)
    )
    return Exported(path, kind, given, got, difference)


def _format_of(path: Path, given: str | None) -> Format:
    if given is None:
        if path.suffix.lower() not in FORMATS:
            raise DataError(f"{path}: end the name with {' or '.join(FORMATS)}, or give the format: onnx or torch")
        return FORMATS[path.suffix.lower()]
    for known in FORMATS.values():
        if given == known:
            return known
    raise DataError(f"format={given!r} is not known; use 'onnx' or 'torch'")


class FixedModel(nn.Module):
    """The encoder and the head of a run on one graph: features ``x`` (unless they are part of it), and for links
    ``pairs`` of nodes, to ``embeddings`` and ``probabilities``.

    A program cannot branch on values, so what depends on them is decided here: what was fitted after training, and
    whether features are standardized.
    """

    x: Tensor | None

    def __init__(self, run: "Run", part: str, graph: Any = None) -> None:
        super().__init__()
        model = deepcopy(run.model).cpu().eval().requires_grad_(False)
        self.encoder = model.encoder
        self.head = model.head if part == "all" and run.task.predicts is not None else None
        self.scaling = model.scaling
        if self.scaling.scaling == "auto":
            self.scaling.scaling = "standard" if self.scaling.needs_dense() else "raw"
        self.dtype = next(model.parameters()).dtype
        self.register_buffer("x", None)
        self.batch: Tensor | None = None
        self.graph: Any = None
        if run.task.of_collections:
            self.graph = _one_graph(run, graph)
            prepared = batch_of([PreparedGraph.of(self.graph, "the graph")])
            self.batch, features, adjacency = prepared.graph_of_node, prepared.x, prepared.adjacency
        elif graph is None:
            features, adjacency = run.problem.x, run.problem.adjacency  # type: ignore[attr-defined]
            if getattr(run.data, "structural", False):
                self.fix_features(self._dense(features))
        else:
            raise DataError("graph= chooses one of a collection, but this run is about one graph, which is exported")
        self.features = features
        self.adjacency: Adjacency = copy(adjacency.to("cpu"))
        self.adjacency._cache = {}  # what is traced must not stay in that of the run
        self.calibrated = self.head is not None and self.head.calibrated
        self.neighborhoods: FixedNeighborhoods | None = None
        if isinstance(self.head, LinkHead) and self.head.sees_neighborhoods:
            self.neighborhoods = FixedNeighborhoods(run.neighborhoods)
        terms = getattr(self.head, "features", None)
        self.terms = terms if terms is not None and terms.fitted else None
        self.unit_rows = self.terms is not None and bool(self.terms.unit_rows)

    def _dense(self, features: Any) -> Tensor:
        return (features.to_dense() if is_sparse(features) else features).detach().cpu().to(self.dtype)

    def fix_features(self, x: Tensor) -> None:
        """Makes features a part of the program instead of an input."""
        self.x = x

    def example(self, run: "Run") -> Tensors:
        """Inputs as the run has them."""
        inputs = {} if self.x is not None else {"x": self._dense(self.features)}
        if isinstance(self.head, LinkHead):
            count = run.data.num_nodes
            first = torch.arange(_PAIRS) % count
            others = torch.stack([first, (first + 1 + torch.arange(_PAIRS) % max(count - 1, 1)) % count], dim=1)
            inputs["pairs"] = torch.cat([others, run.data.edge_index.T[:_PAIRS].cpu()])
        return inputs

    def expected(self, run: "Run", inputs: Tensors) -> Tensors:
        """What the run gives for these inputs."""
        found = {"embeddings": run.embeddings if self.graph is None else run.encode([self.graph])}
        if "pairs" in inputs:
            found["probabilities"] = torch.from_numpy(run.link_probabilities(inputs["pairs"].numpy()))
        elif self.head is not None:
            found["probabilities"] = run.predict(None if self.graph is None else [self.graph])
        return found

    def forward(self, x: Tensor | None = None, pairs: Tensor | None = None) -> Tensors:
        x = self.x if x is None else x
        scaled, scale = self.scaling(x), getattr(self.encoder, "distance_scale", 1.0)
        if self.batch is None:
            points = embeddings = self.encoder(scaled, self.adjacency)
        elif getattr(self.encoder, "pools", False):
            points = embeddings = self.encoder(scaled, self.adjacency, self.batch, 1)
        else:
            points = self.encoder(scaled, self.adjacency)
            embeddings = mean_points(points, self.batch, 1, check_space(self.encoder.space))
        if self.head is None:
            return {"embeddings": embeddings}
        if pairs is not None:
            probabilities = self._of_links(points, pairs, scale)
        elif self.batch is None:
            probabilities = self._of_nodes(points, x, scale)
        else:
            batch = None if points is embeddings else self.batch
            probabilities = self.head.probabilities(self.head(points, batch, 1, scale))
        return {"embeddings": embeddings, "probabilities": probabilities}

    def _of_links(self, points: Tensor, pairs: Tensor, scale: Any) -> Tensor:
        head: Any = self.head
        logits = head(points, pairs, scale)
        if self.neighborhoods is not None:
            logits = head.neighborhood.combined(logits, self.neighborhoods(pairs))
        probabilities: Tensor = head.calibration.fitted_map(logits) if self.calibrated else logits.sigmoid()
        return probabilities

    def _of_nodes(self, points: Tensor, x: Any, scale: Any) -> Tensor:
        head: Any = self.head
        logits = head(points, scale)
        if self.terms is not None:
            rows = x.double()
            if self.unit_rows:
                lengths = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
                rows = rows / torch.where(lengths > 0, lengths, 1.0)
            added = (rows @ self.terms.weights.double() + self.terms.bias.double()).log_softmax(1)
            logits = self.terms.combined(logits, added)
        probabilities: Tensor = head.probabilities(logits)
        return probabilities


def _one_graph(run: "Run", graph: Any) -> Any:
    """One graph of a collection, or another one."""
    if graph is None:
        raise DataError(
            "--task gc is in the way: a program is for one fixed graph, and this run is about many; choose one by its "
            "name or number with --graph (graph=)"
        )
    columns = run.config["facts"].get("feature_names")
    if isinstance(graph, str) and getattr(run.data, "graph_ids", None) is None and graph.isdecimal():
        graph = int(graph)
    chosen = chosen_graphs([graph], run.data, columns)
    wanted = run.config["facts"]["in_features"]
    if chosen[0].x.shape[1] != wanted:
        raise DataError(f"the graph has {chosen[0].x.shape[1]} features a node; the model was trained with {wanted}")
    return chosen[0]


def _traced(run: "Run", model: FixedModel, inputs: Tensors) -> Any:
    """The program of a model, with any number of pairs."""
    sizes = {name: {0: torch.export.Dim("num_pairs")} if name == "pairs" else None for name in inputs}
    try:
        with _hushed():
            return torch.export.export(model, (), inputs, dynamic_shapes=sizes, strict=False)
    except Exception as error:  # of many kinds, as code of the user's own may do anything
        raise _refusal(run, model, error) from error


def _decompositions() -> dict[Any, Any]:
    """Operations that ONNX or ONNX Runtime lacks, some in float64 only, by others."""
    aten = torch.ops.aten
    return {
        aten.repeat_interleave.Tensor: _repeated,
        aten.asinh.default: _asinh,
        aten.sinh.default: _sinh,
        aten.clamp.Tensor: _clamped,
    }


def _repeated(repeats: Tensor, output_size: int | None = None) -> Tensor:
    assert output_size is not None
    ends = repeats.long().cumsum(0)
    steps = torch.zeros(output_size + 1, dtype=torch.long).index_add(0, ends[:-1], torch.ones_like(ends[:-1]))
    return steps[:output_size].cumsum(0)


def _clamped(x: Tensor, min: Tensor | None = None, max: Tensor | None = None) -> Tensor:  # noqa: A002
    x = x if min is None else torch.where(x < min, min, x)  # not maximum, which the optimizer of onnxscript gets wrong
    return x if max is None else torch.where(x > max, max, x)


def _asinh(x: Tensor) -> Tensor:
    return torch.sign(x) * torch.log(x.abs() + torch.sqrt(x.square() + 1))


def _sinh(x: Tensor) -> Tensor:
    grown = torch.expm1(x)
    return (grown + grown / (grown + 1)) / 2


def _refusal(run: "Run", model: FixedModel, error: Exception) -> DataError:
    """The error for a model that cannot be exported, with the option that is in the way."""
    config = getattr(model.encoder, "config", {})
    own = [name for name, value in config.items() if callable(value)]
    name = run.config["model"]["name"]
    if own:
        what = f"model.{own[0]}={config[own[0]]!r}, a function of your own,"
    elif not isinstance(model.encoder, Encoder):
        what = f"the encoder {name}, a module of your own,"
    else:
        what = f"--model {name}"
    return DataError(f"{what} is in the way of an export: {first_line(error)}; train with another one")


def _as_onnx(run: "Run", program: Any, outputs: list[str], about: dict[str, Any], opset: int) -> bytes:
    try:
        with _hushed():
            made = torch.onnx.export(
                program.run_decompositions(_decompositions()),
                (),
                opset_version=opset,
                output_names=outputs,
                dynamo=True,
                external_data=False,
                verbose=False,
            )
            assert made is not None
            proto = made.model_proto
            for key, value in about.items():
                proto.metadata_props.add(
                    key=f"h2hgcn.{key}", value=value if isinstance(value, str) else json.dumps(value)
                )
            return proto.SerializeToString()
    except Exception as error:
        raise DataError(
            f"--model {run.config['model']['name']} cannot be written as ONNX opset {opset}: "
            f"{first_line(error)}; use --format torch"
        ) from error


def _run_onnx(data: bytes, inputs: Tensors, outputs: list[str]) -> Tensors | None:
    """What ONNX Runtime makes of the inputs; None if it is not installed."""
    try:
        import onnxruntime
    except ImportError:
        return None
    try:
        session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
        found = session.run(outputs, {name: value.numpy() for name, value in inputs.items()})
    except Exception as error:  # of a class of its own for each kind
        raise DataError(f"ONNX Runtime cannot run the model: {first_line(error)}; use --format torch") from error
    return {name: torch.from_numpy(np.asarray(value)) for name, value in zip(outputs, found, strict=True)}


def _difference(found: Tensors, expected: Tensors) -> float:
    differences = [
        ((found[name].double() - value.double()).abs() / value.double().abs().clamp_min(1)).max()
        for name, value in expected.items()
        if value.numel()
    ]
    return float(torch.stack(differences).max()) if differences else 0.0


def _about(run: "Run", model: FixedModel) -> dict[str, Any]:
    """What a program says about itself."""
    classes = {} if run.classes is None else {"classes": run.classes}
    name, space = run.config["model"]["name"], str(model.encoder.space)
    return {"version": version("h2hgcn"), "model": name, "task": run.task.name, "space": space, **classes}


@contextmanager
def _hushed() -> Iterator[None]:
    """Without notes of the exporters on which nobody can act."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "torch.export", "onnxscript", "onnx_ir")]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
