"""From a task and data to a trained model, without ever losing work."""

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import nn

from h2hgcn.datasets.collection import as_collection
from h2hgcn.datasets.on_disk import is_graph, keep_graph
from h2hgcn.datasets.splits import check_seed
from h2hgcn.embeddings.coordinates import check_points
from h2hgcn.errors import DataError
from h2hgcn.files import checksum_of
from h2hgcn.layers.inputs import node_vectors_of
from h2hgcn.tasks.base import Problem, Task
from h2hgcn.tasks.model import Model
from h2hgcn.training.artifacts import coordinates_of
from h2hgcn.training.batching import plan_batches
from h2hgcn.training.building import EncoderFactory, build_model, describe, encoder_factory
from h2hgcn.training.distributed import Ranks, joined_ranks
from h2hgcn.training.folder import SETTINGS, RunFolder, difference, metrics_line
from h2hgcn.training.loading import is_outdated, load_run
from h2hgcn.training.loggers import Logger, Loggers
from h2hgcn.training.loop import (
    EpochReport,
    TrainingState,
    evaluate,
    load_checkpoint,
    save_checkpoint,
    train,
    weights_of,
)
from h2hgcn.training.names import NodeNames
from h2hgcn.training.optimizers import build_optimizer_of
from h2hgcn.training.result_warnings import serious_warnings, warnings_about
from h2hgcn.training.run import Run
from h2hgcn.training.settings import TrainingSettings, limited_threads, one_at_a_time, torch_seeded

OnEpoch = Callable[[EpochReport, TrainingState], None] | None


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
    loggers: str | Logger | Sequence[str | Logger] = (),
    on_plan: Callable[[str], None] | None = None,
    on_epoch: OnEpoch = None,
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
        tensorboard: Whether curves also go to ``folder/tensorboard``: the same as ``loggers="tensorboard"``.
        loggers: Where else curves go: ``"tensorboard"``, ``"wandb"``, ``"mlflow"``, or a ``Logger``.
        on_plan: Called once with what a step of training sees, in words: the whole graph, or batches of it.
        on_epoch: Called after every epoch.
        should_stop: Asked before every epoch; if it says so, the state is saved and the run returned as it is.
    """
    settings = TrainingSettings() if settings is None else settings
    if not isinstance(settings, TrainingSettings):
        raise DataError(f"settings is a {type(settings).__name__}; pass TrainingSettings(epochs=..., lr=..., ...)")
    check_seed(seed)
    seed = int(seed)
    curves = Loggers(loggers, folder, tensorboard)
    if isinstance(task, type) or not hasattr(task, "bind"):
        raise DataError(f"task is {task!r}; pass LinkPrediction(), NodeClassification(), ... of h2hgcn.tasks")
    data = as_collection(data)
    if is_graph(data) and getattr(data, "node_ids", None) is not None:
        NodeNames(data)  # the embedding is written with them in the end
    problem = task.bind(data)
    task = problem.task  # what depends on the data is decided
    built = build_model(model, problem, settings, seed)
    config = describe(task, built.encoder, settings, seed, problem, data, source or {"memory": True})
    config |= {} if search is None else {"search": search}
    config |= {} if origin is None else {"final": _origin_of(origin)}
    device = settings.torch_device()
    with limited_threads(settings.threads, problem.num_nodes * built.dim), joined_ranks(device) as ranks:
        sections = (*SETTINGS, "final", "kept", "versions")
        ranks.check_same(config | {"kept": folder is not None}, partial(difference, sections=sections))
        plan = plan_batches(settings, problem, built.encoder, built.dim, ranks)
        plan.arrange(problem, built.encoder)
        if on_plan is not None:
            on_plan(plan.reason)
        place = RunFolder(folder) if folder is not None and ranks.first else None
        with nullcontext() if place is None else place.locked():
            if place is not None:
                config = place.prepare(config, force)
                if is_graph(data):
                    keep_graph(place.graph, data)
            result = ranks.from_first(lambda: None if place is None else place.read_result())
            run = Run(built, task, config, result or {}, [], data, problem)
            if result is None:
                training = _Training(run, settings, place, ranks, curves, on_epoch)
                with training.logging():
                    training.train(seed, should_stop)
                    training.complete(origin)
            elif place is not None:
                run = load_run(place.path, data, lambda in_features: built.encoder, str(device))
                run.complete(place)
    return run


def finalize(
    run: Run,
    out: str | Path | None = None,
    *,
    model: EncoderFactory | None = None,
    force: bool = False,
    on_epoch: Callable[..., None] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Run:
    """``Run.finalize``, with callbacks of ``fit``."""
    if not run.task.parts:
        raise DataError(f"{run.folder or 'the run'} is a final fit already; finalize the run that it comes from")
    if len(run.task.parts) < 2:
        raise DataError(f"--task {run.task.name} holds nothing out: the run has learned everything already; use it")
    if not run.finished:
        raise DataError("the run is not finished, so its number of epochs is not chosen yet; run its command again")
    if run.data is None:
        raise DataError("the run does not hold its data; run its command again, or pass them: load_run(folder, data=)")
    if run.folder is not None:
        RunFolder(run.folder).check_links()
    if run.config["model"].get("own") and model is None:
        raise DataError(f"the model {run.config['model']['name']} is your own; pass what makes it as model=")
    place = run.final_folder if out is None else Path(out)
    settings = replace(run.settings, stop_after=run.result["best_epoch"])
    if settings.batch_size == "auto":  # more data must not turn it from the whole graph to samples of it
        sampling = plan_batches(settings, run.problem, run.model.encoder, run.model.dim).sampling
        settings = replace(settings, batch_size="full" if sampling is None else sampling.batch_size)
    return fit(
        replace(run.task, final=True), run.data, model or encoder_factory(run.config["model"]),
        seed=run.config["seed"], settings=settings, folder=place, force=force or is_outdated(place, run),
        source={name: value for name, value in run.config["data"].items() if name != "fingerprint"},
        origin=run, on_epoch=on_epoch, should_stop=should_stop,
    )  # fmt: skip


class _Training:
    """The loop of a run and the files beside it, from where ``place`` stands; only the first process has one."""

    def __init__(
        self,
        run: Run,
        settings: TrainingSettings,
        place: RunFolder | None,
        ranks: Ranks,
        curves: Loggers,
        on_epoch: OnEpoch,
    ) -> None:
        self.run, self.settings, self.place, self.ranks, self.on_epoch = run, settings, place, ranks, on_epoch
        self.curves = curves
        self.optimizer = build_optimizer_of(run.model, settings)
        self.state = self._resumed()
        self.metrics: BinaryIO | None = None
        self.last_checkpoint = time.monotonic()
        if place is not None:
            run.history = place.read_history(self.state.epoch)
            place.write_history(run.history)  # without epochs after the checkpoint

    def _resumed(self) -> TrainingState:
        """The state of training in the folder of the first process, whose model and optimizer all of them get."""
        path = self.place.checkpoint if self.place is not None and self.place.checkpoint.exists() else None
        sent = b""
        if self.ranks.size > 1:
            sent = self.ranks.bytes_from_first(lambda: b"" if path is None else path.read_bytes())
        if path is not None:
            return load_checkpoint(path, self.run.model, self.optimizer)
        if not sent:
            return TrainingState()
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "checkpoint.safetensors"
            path.write_bytes(sent)
            return load_checkpoint(path, self.run.model, self.optimizer)

    def logging(self) -> AbstractContextManager[None]:
        """Within, loggers get what the first process reports."""
        if not self.ranks.first:
            return nullcontext()
        return self.curves.logging(self.run, None if self.place is None else self.place.path, self.state.epoch)

    def train(self, seed: int, should_stop: Callable[[], bool]) -> None:
        run, problem, model = self.run, self.run.problem, self.run.model
        if run.config["model"].get("own") and not self.state.epoch:
            _check_points(run)
        try:
            with nullcontext() if self.place is None else self.place.metrics.open("ab") as self.metrics:
                train(
                    problem, model, self.optimizer, self.settings, seed, self.state, self._after_epoch, should_stop,
                    self.ranks,
                )  # fmt: skip
                self._save()
        finally:
            vectors = node_vectors_of(model.encoder)
            if vectors is not None:
                vectors.sparse_gradients = False  # the caller may train the encoder with another optimizer

    def _after_epoch(self, report: EpochReport) -> None:
        self.run.history.append(report.to_dict())
        if self.metrics is not None:
            self.metrics.write(metrics_line(report.to_dict()))
            self.metrics.flush()
        if self.ranks.first:
            validated = {f"{report.part}/{name}": value for name, value in (report.val or {}).items()}
            self.curves.log(report.epoch, {"train/loss": report.loss, "train/lr": report.lr, **validated})
        if time.monotonic() - self.last_checkpoint >= self.settings.checkpoint_seconds:
            self._save()
        if self.on_epoch is not None:
            self.on_epoch(report, self.state)

    def _save(self) -> None:
        if self.place is None or self.metrics is None:
            return
        self.place.check_there()
        os.fsync(self.metrics.fileno())
        save_checkpoint(self.place.checkpoint, self.state, self.run.model, self.optimizer)
        self.last_checkpoint = time.monotonic()

    def complete(self, origin: Run | None) -> None:
        """Gives the run its selected weights and its result; if training is over, also scores and files."""
        run, state, place = self.run, self.state, self.place
        problem, model, parts = run.problem, run.model, run.task.parts
        if state.best_weights:
            model.load_state_dict(state.best_weights)
        model.eval()
        run.folder = None if place is None else place.path
        run.result = {
            "finished": False,
            "selection": problem.selection_metric,
            "metrics": dict.fromkeys(parts[:1], state.best),
            "trivial": None,
            "best_epoch": state.best_epoch,
            "epochs": state.epoch,
            "stopped_early": state.stopped_early,
            "seconds": round(state.seconds, 2),
            "parameters": sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad),
            "doubts": [],
        }
        if state.is_over(self.settings):
            if origin is not None:
                _take_over(origin, model, problem)
                run.result |= _result_of_origin(origin)
            elif parts and hasattr(problem, "finish") and problem.finish(model):
                run.result["metrics"] = {parts[0]: evaluate(problem, model, parts[0])}
            if place is not None:
                run.write_model(place)  # before anything else, which may take long or fail
            run.result = self.ranks.from_first(lambda: _tested(run))
            if place is not None:
                run.write_result(place)
        else:
            run.result = self.ranks.from_first(lambda: run.result)


@torch.no_grad()
def _check_points(run: Run) -> None:
    """Raises unless an encoder of one's own gives points of its space; else that would be noticed after training."""
    with torch_seeded(0):
        points = run.problem.points(run.model.eval()).cpu()
    count = run.data.num_nodes if is_graph(run.data) else len(run.data)
    if points.dim() != 2 or len(points) != count:
        raise DataError(f"the encoder gives points of shape {tuple(points.shape)}; it has to give {count} rows")
    if bool(points.isfinite().all()):  # the loop tells where others come from
        check_points(points.numpy(), coordinates_of(run.model.encoder), "the encoder's points")


def _tested(run: Run) -> dict[str, Any]:
    """The result of a finished run, with the test part, the baselines and warnings."""
    run.result["finished"] = True
    if not run.task.parts:
        return {"of_run": None} | run.result | {"doubts": [*run.result["doubts"], *warnings_about(run)]}
    selecting, reported = run.task.parts[0], run.task.parts[-1]
    metrics, skipped = run.problem.baselines(reported)
    if reported != selecting:
        run.result["metrics"] = run.metrics | {reported: evaluate(run.problem, run.model, reported)}
    run.result["trivial"] = {name: values[run.result["selection"]] for name, values in metrics.items()}
    run.result |= {"baselines": metrics, "details": run.details()}
    notes = [f"the baseline {name} was skipped: {reason}" for name, reason in skipped.items()]
    return run.result | {"doubts": warnings_about(run) + notes}


def _origin_of(run: Run) -> dict[str, Any]:
    """What the ``config.toml`` of a final fit says about the run that it comes from."""
    settings = json.dumps({name: run.config[name] for name in SETTINGS}, sort_keys=True)
    return {
        "run": "memory" if run.folder is None else str(Path(run.folder).resolve()),
        "epochs": run.result["best_epoch"],
        "config": hashlib.sha256(settings.encode()).hexdigest(),
        "weights": checksum_of(weights_of(run.model)),
    }


def _result_of_origin(run: Run) -> dict[str, Any]:
    """What the ``result.json`` of a final fit has of the run that it comes from, as the final fit has no scores."""
    warnings = [f"of the run that this final fit comes from: {text}" for text in serious_warnings(run.result)]
    scores = {name: run.result[name] for name in ("metrics", "trivial", "baselines") if name in run.result}
    return {"of_run": scores, "doubts": warnings}


@torch.no_grad()
def _take_over(origin: Run, model: Model, problem: Problem) -> None:
    """Gives a model what was fitted on the validation data of a run after training: the buffers of its head. Those of
    batch normalizations are left out, which training itself has filled.
    """
    fitted = dict(origin.model.head.named_buffers())
    for path, module in model.head.named_modules():
        if not isinstance(module, nn.modules.batchnorm._NormBase):
            for name, buffer in module.named_buffers(recurse=False):
                buffer.copy_(fitted[f"{path}.{name}" if path else name])
    if hasattr(problem, "refit"):
        problem.refit(model, origin.problem.split)
