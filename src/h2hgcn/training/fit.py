"""From a task and data to a trained model, without ever losing work."""

import os
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import nn

from h2hgcn.datasets.collection import as_collection
from h2hgcn.datasets.on_disk import is_graph, keep_graph
from h2hgcn.datasets.splits import check_seed
from h2hgcn.embeddings.coordinates import check_points
from h2hgcn.errors import DataError
from h2hgcn.layers.inputs import node_vectors_of
from h2hgcn.tasks.base import Model, Problem, Task
from h2hgcn.training.artifacts import coordinates_of
from h2hgcn.training.batching import plan_batches
from h2hgcn.training.building import EncoderFactory, build_model, describe
from h2hgcn.training.checkpoint import TrainingState, load_checkpoint, save_checkpoint
from h2hgcn.training.distributed import Ranks, joined_ranks
from h2hgcn.training.final import origin_of, result_of_origin, take_over
from h2hgcn.training.folder import SETTINGS, RunFolder, difference, metrics_line
from h2hgcn.training.loading import load_run
from h2hgcn.training.loop import EpochReport, TensorBoardCurves, check_tensorboard, evaluate, is_over, train
from h2hgcn.training.names import NodeNames
from h2hgcn.training.optimizers import build_optimizer_of
from h2hgcn.training.result_warnings import warnings_about
from h2hgcn.training.run import Run
from h2hgcn.training.settings import TrainingSettings, limited_threads, one_at_a_time, torch_seeded


@one_at_a_time()
def fit(
    task: Task,
    data: Any,
    model: EncoderFactory | nn.Module | None = None,
    *,
    seed: int = 0,
    settings: TrainingSettings | None = None,
    folder: str | Path | None = None,
    force: bool = False,
    source: dict[str, Any] | None = None,
    search: dict[str, Any] | None = None,
    origin: Run | None = None,
    tensorboard: bool = False,
    on_plan: Callable[[str], None] | None = None,
    on_epoch: Callable[[EpochReport, TrainingState], None] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Run:
    """Trains a model for a task. Calls in several threads take turns, since a seed decides only if nobody else draws.

    Args:
        task, data: What to learn, and from what: a PyG ``Data``, or for graph classification a collection: a PyG
            dataset or a list of ``Data``.
        model: An encoder, or what makes one from a number of features, such as ``partial(H2HGCN, dim=16)``.
        seed: Decides on weights, batches, negatives and dropout; the split has a seed of its own in the task.
        folder: Where the run is kept. An unfinished run there is resumed, and ends as if it had never stopped; a
            finished one is loaded.
        force: Whether a run in ``folder`` may be replaced.
        source: Where the data came from, for the record.
        search: How the settings were found, for the record.
        origin: The run that a final fit comes from, see ``Run.finalize``.
        tensorboard: Whether curves also go to ``folder/tensorboard``.
        on_plan: Called once with what a step of training sees, in words: the whole graph, or batches of it.
        on_epoch: Called after every epoch.
        should_stop: Asked before every epoch; if it says so, the state is saved and the run returned as it is.
    """
    settings = TrainingSettings() if settings is None else settings
    if not isinstance(settings, TrainingSettings):
        raise DataError(f"settings is a {type(settings).__name__}; pass TrainingSettings(epochs=..., lr=..., ...)")
    check_seed(seed)
    seed = int(seed)
    if tensorboard:
        check_tensorboard(folder)
    if isinstance(task, type) or not hasattr(task, "bind"):
        raise DataError(f"task is {task!r}; pass LinkPrediction(), NodeClassification(), ... of h2hgcn.tasks")
    data = as_collection(data)
    if is_graph(data) and getattr(data, "node_ids", None) is not None:
        NodeNames(data)  # the embedding is written with them in the end
    problem = task.bind(data)
    task = problem.task  # what depends on the data is decided
    built = build_model(model, problem, settings, seed)
    config = describe(task, built.encoder, settings, seed, problem, data, source or {"memory": True})
    if search is not None:
        config["search"] = search
    if origin is not None:
        config["final"] = origin_of(origin)
    with (
        limited_threads(settings.threads, problem.num_nodes * built.dim),
        joined_ranks(settings.torch_device()) as ranks,
    ):
        _check_same_job(ranks, config | {"kept": folder is not None})
        plan = plan_batches(settings, problem, built.encoder, built.dim, ranks)
        plan.arrange(problem, built.encoder)
        if on_plan is not None:
            on_plan(plan.reason)
        training = _Training(problem, built, settings, seed, on_epoch, should_stop, ranks, origin)
        if folder is None:
            return training.run(task, data, config)
        if not ranks.first:
            return training.follow(task, data, config)
        place = RunFolder(folder)
        with place.locked():
            config = place.prepare(config, force)
            if is_graph(data):
                keep_graph(place.graph, data)
            result = ranks.from_first(place.read_result)
            if result is not None:
                run = load_run(folder, data, lambda in_features: built.encoder, str(settings.torch_device()))
                run.complete(place)
                return run
            training.keep_in(place, tensorboard)
            return training.run(task, data, config)


def _check_same_job(ranks: Ranks, config: dict[str, Any]) -> None:
    """Raises, in all processes, unless they have the same settings, data and versions."""
    first = ranks.from_first(lambda: config)
    differing = difference(first, config, (*SETTINGS, "final", "kept", "versions"))
    names = [name for name in ranks.from_all(None if differing is None else differing[0]) if name is not None]
    for name in names[:1]:
        section, _, option = name.partition(".")
        value = config.get(section)
        ranks.check_same(name, value.get(option) if isinstance(value, dict) else value)


class _Training:
    """One call of ``fit``, once everything is built: the loop and the files beside it."""

    def __init__(
        self,
        problem: Problem,
        model: Model,
        settings: TrainingSettings,
        seed: int,
        on_epoch: Callable[[EpochReport, TrainingState], None] | None,
        should_stop: Callable[[], bool],
        ranks: Ranks,
        origin: Run | None,
    ) -> None:
        self.ranks, self.origin = ranks, origin
        self.problem, self.model, self.settings, self.seed = problem, model, settings, seed
        self.on_epoch, self.should_stop = on_epoch, should_stop
        self.optimizer = build_optimizer_of(model, settings)
        self.state = TrainingState()
        self.history: list[dict[str, Any]] = []
        self.folder: RunFolder | None = None
        self.metrics: BinaryIO | None = None
        self.curves: TensorBoardCurves | None = None
        self.last_checkpoint = time.monotonic()

    def keep_in(self, folder: RunFolder, tensorboard: bool) -> None:
        """Goes on from what the folder holds, and writes there."""
        self.folder = folder
        if self.ranks.size > 1:
            self.ranks.bytes_from_first(lambda: folder.checkpoint.read_bytes() if folder.checkpoint.exists() else b"")
        if folder.checkpoint.exists():
            self.state = load_checkpoint(folder.checkpoint, self.model, self.optimizer)
        self.history = folder.read_history(self.state.epoch)
        folder.write_history(self.history)  # without epochs after the checkpoint
        if tensorboard:
            self.curves = TensorBoardCurves(folder.tensorboard, self.state.epoch + 1)

    def follow(self, task: Task, data: Any, config: dict[str, Any]) -> Run:
        """Trains beside the first process, which keeps the folder, from where that stands; writes nothing."""
        result: dict[str, Any] | None = self.ranks.from_first(lambda: None)
        if result is not None:
            return Run(self.model, task, config, result, [], data, self.problem)
        checkpoint = self.ranks.bytes_from_first(lambda: b"")
        if checkpoint:
            with tempfile.TemporaryDirectory() as scratch:
                path = Path(scratch) / "checkpoint.safetensors"
                path.write_bytes(checkpoint)
                self.state = load_checkpoint(path, self.model, self.optimizer)
        return self.run(task, data, config)

    def run(self, task: Task, data: Any, config: dict[str, Any]) -> Run:
        if config["model"].get("own") and not self.state.epoch:
            _check_points(self.problem, self.model, data)
        metrics = nullcontext() if self.folder is None else self.folder.metrics.open("ab")
        try:
            with metrics as self.metrics:
                train(
                    self.problem, self.model, self.optimizer, self.settings, self.seed, self.state, self._after_epoch,
                    self.should_stop, self.ranks,
                )  # fmt: skip
                self._save()
        finally:
            if self.curves is not None:
                self.curves.close()
            vectors = node_vectors_of(self.model.encoder)
            if vectors is not None:
                vectors.sparse_gradients = False  # the caller may train the encoder with another optimizer
        finished = is_over(self.state, self.settings)
        if self.state.best_weights:
            self.model.load_state_dict(self.state.best_weights)
        self.model.eval()
        folder = None if self.folder is None else self.folder.path
        result = _result_of(self.state, self.problem, self.model)
        if finished and self.origin is not None:
            take_over(self.origin, self.model, self.problem)
            result |= result_of_origin(self.origin)
        elif finished and task.parts and hasattr(self.problem, "finish") and self.problem.finish(self.model):
            result["metrics"] = {task.parts[0]: evaluate(self.problem, self.model, task.parts[0])}
        run = Run(self.model, task, config, result, self.history, data, self.problem, folder)
        if finished and self.folder is not None:
            run.write_model(self.folder)  # before anything else, which may take long or fail
        run.result = self.ranks.from_first(lambda: _tested(run) if finished else result)
        if finished and self.folder is not None:
            run.write_result(self.folder)
        return run

    def _after_epoch(self, report: EpochReport) -> None:
        self.history.append(report.to_dict())
        if self.metrics is not None:
            self.metrics.write(metrics_line(report.to_dict()))
            self.metrics.flush()
        if self.curves is not None:
            self.curves.add(report)
        if time.monotonic() - self.last_checkpoint >= self.settings.checkpoint_seconds:
            self._save()
        if self.on_epoch is not None:
            self.on_epoch(report, self.state)

    def _save(self) -> None:
        if self.folder is None or self.metrics is None:
            return
        self.folder.check_there()
        os.fsync(self.metrics.fileno())
        save_checkpoint(self.folder.checkpoint, self.state, self.model, self.optimizer)
        self.last_checkpoint = time.monotonic()


@torch.no_grad()
def _check_points(problem: Problem, model: Model, data: Any) -> None:
    """Raises unless an encoder of one's own gives points of its space; else that would be noticed after training."""
    with torch_seeded(0):
        points = problem.points(model.eval()).cpu()
    count = data.num_nodes if is_graph(data) else len(data)
    if points.dim() != 2 or len(points) != count:
        raise DataError(f"the encoder gives points of shape {tuple(points.shape)}; it has to give {count} rows")
    if bool(points.isfinite().all()):  # the loop tells where others come from
        check_points(points.numpy(), coordinates_of(model.encoder), "the encoder's points")


def _result_of(state: TrainingState, problem: Problem, model: Model) -> dict[str, Any]:
    """What ``result.json`` holds, as far as training knows it."""
    return {
        "finished": False,
        "selection": problem.selection_metric,
        "metrics": dict.fromkeys(problem.task.parts[:1], state.best),
        "trivial": None,
        "best_epoch": state.best_epoch,
        "epochs": state.epoch,
        "stopped_early": state.stopped_early,
        "seconds": round(state.seconds, 2),
        "parameters": sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad),
        "doubts": [],
    }


def _tested(run: Run) -> dict[str, Any]:
    """The result of a finished run, with the test part, the baselines and warnings."""
    if not run.task.parts:
        found = run.result | {"finished": True}
        return {"of_run": None} | found | {"doubts": [*found["doubts"], *warnings_about(run)]}
    selecting, reported = run.task.parts[0], run.task.parts[-1]
    metrics, skipped = run.problem.baselines(reported)
    tested = {} if reported == selecting else {reported: evaluate(run.problem, run.model, reported)}
    run.result |= {
        "finished": True,
        "metrics": run.metrics | tested,
        "trivial": {name: values[run.result["selection"]] for name, values in metrics.items()},
        "baselines": metrics,
        "details": run.details(),
    }
    notes = [f"the baseline {name} was skipped: {reason}" for name, reason in skipped.items()]
    return run.result | {"doubts": warnings_about(run) + notes}
