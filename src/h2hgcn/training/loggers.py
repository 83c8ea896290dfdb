"""Where curves go besides the folder of a run: TensorBoard, Weights & Biases, MLflow, or a logger of your own."""

import json
import os
import re
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from h2hgcn.errors import DataError, DataWarning, first_line
from h2hgcn.files import atomic_write
from h2hgcn.lazy import import_extra
from h2hgcn.options import suggestion
from h2hgcn.training.folder import RunFolder

# The project (Weights & Biases) or experiment (MLflow) of runs, unless an environment variable names another.
_PROJECT = "h2hgcn"


class Logger:
    """Receives what a run logs. Subclass it to log anywhere else: ``train(..., loggers=[MyLogger()])``.

    A logger that raises one of its ``failures`` is left out from then on with a ``DataWarning``, and training
    continues; any other exception ends training.
    """

    title: ClassVar[str] = "the logger"
    failures: ClassVar[tuple[type[Exception], ...]] = ()

    def start(self, config: Mapping[str, Any], folder: Path | None, epoch: int) -> None:
        """Called once before training, with what ``config.toml`` holds and the number of epochs done already."""

    def log(self, epoch: int, values: Mapping[str, float]) -> None:
        """Called after every epoch: ``train/loss``, ``train/lr``, and after validation ``val/auc`` and others."""

    def finish(self, result: Mapping[str, Any] | None) -> None:
        """Called when training ends, with what ``result.json`` holds, or None if the run is not finished."""


class TensorBoard(Logger):
    """Curves for TensorBoard, in ``tensorboard/`` of the run's folder."""

    title = "TensorBoard"

    def __init__(self) -> None:
        self._writer_of = import_extra("torch.utils.tensorboard", self.title, "tensorboard").SummaryWriter
        self._writer: Any = None

    def start(self, config: Mapping[str, Any], folder: Path | None, epoch: int) -> None:
        assert folder is not None
        # what a killed run drew beyond its last checkpoint is drawn again
        self._writer = self._writer_of(str(RunFolder(folder).tensorboard), purge_step=epoch + 1)

    def log(self, epoch: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, epoch)

    def finish(self, result: Mapping[str, Any] | None) -> None:
        self._writer.close()


class WandB(Logger):
    """Weights & Biases. ``WANDB_PROJECT``, ``WANDB_MODE=offline`` and its other variables apply; its files go to
    ``wandb/`` of the run's folder. A ``wandb.init`` of your own, as in a sweep, is used and not finished.
    """

    title = "Weights & Biases"
    failures = (Exception,)

    def __init__(self) -> None:
        self._wandb = import_extra("wandb", self.title, "wandb")
        self._run: Any = None
        self._own = False

    def start(self, config: Mapping[str, Any], folder: Path | None, epoch: int) -> None:
        self._own = self._wandb.run is None
        if not self._own:
            self._run = self._wandb.run
            self._run.config.update(dict(config), allow_val_change=True)
            return
        place = {} if folder is None else {"dir": str(folder.resolve()), "name": folder.resolve().name}
        self._run = self._wandb.init(
            project=os.environ.get("WANDB_PROJECT", _PROJECT), config=dict(config), id=_known_id(folder, "wandb"),
            resume="allow", settings=self._wandb.Settings(console="off", silent=True), **place,
        )  # fmt: skip
        _keep_id(folder, "wandb", self._run.id)

    def log(self, epoch: int, values: Mapping[str, float]) -> None:
        if not self._own:  # whose steps are not ours
            self._run.log({"epoch": epoch, **values})
        elif epoch >= self._run.step:  # an epoch that is run again after a crash has the same values
            self._run.log(dict(values), step=epoch)

    def finish(self, result: Mapping[str, Any] | None) -> None:
        if result is not None:
            self._run.summary.update(_scores(result))
        if self._own:
            self._run.finish(exit_code=int(result is None))


class MLflow(Logger):
    """MLflow. ``MLFLOW_TRACKING_URI`` and ``MLFLOW_EXPERIMENT_NAME`` say where; a ``mlflow.start_run`` of your own is
    used and not ended.
    """

    title = "MLflow"
    failures = (Exception,)

    def __init__(self) -> None:
        self._mlflow = import_extra("mlflow", self.title, "mlflow")
        self._client: Any = None
        self._id = ""
        self._own = False
        self._last = 0  # the last epoch that is logged already

    def start(self, config: Mapping[str, Any], folder: Path | None, epoch: int) -> None:
        self._client, active = self._mlflow.MlflowClient(), self._mlflow.active_run()
        self._own = active is None
        known = self._known_run(folder) if self._own else active.info.run_id
        if known is None:
            known = self._client.create_run(
                self._experiment(), run_name=None if folder is None else folder.resolve().name
            ).info.run_id
            _keep_id(folder, "mlflow", known)
        elif self._own:
            self._client.update_run(known, status="RUNNING")
            logged = self._client.get_metric_history(known, "train/loss")
            self._last = max((metric.step for metric in logged), default=0)
        self._id = known
        there = self._client.get_run(known).data.params  # which cannot change, but epochs may have become more
        new = [(name, value) for name, value in _flat(config) if name not in there]
        for first in range(0, len(new), 100):  # the most that a call may have
            params = [self._mlflow.entities.Param(name, value) for name, value in new[first : first + 100]]
            self._client.log_batch(known, params=params)

    def _experiment(self) -> str:
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", _PROJECT)
        found = self._client.get_experiment_by_name(name)
        return self._client.create_experiment(name) if found is None else found.experiment_id

    def _known_run(self, folder: Path | None) -> str | None:
        """The run of an earlier start, if this server has it."""
        known = _known_id(folder, "mlflow")
        try:
            return None if known is None else self._client.get_run(known).info.run_id
        except self._mlflow.exceptions.MlflowException:
            return None

    def log(self, epoch: int, values: Mapping[str, float]) -> None:
        if epoch > self._last:  # an epoch that is run again after a crash has the same values
            self._send(values, epoch)

    def finish(self, result: Mapping[str, Any] | None) -> None:
        if result is not None:
            self._send(_scores(result), int(result["epochs"]))
        if self._own:
            self._client.set_terminated(self._id, status="KILLED" if result is None else "FINISHED")

    def _send(self, values: Mapping[str, float], step: int) -> None:
        now = int(time.time() * 1000)
        metrics = [
            self._mlflow.entities.Metric(re.sub(r"[^\w\-. :/]", "_", name), float(value), now, step)
            for name, value in values.items()
        ]
        self._client.log_batch(self._id, metrics=metrics)


Given = str | Logger | Sequence[str | Logger]

LOGGERS: dict[str, type[Logger]] = {"tensorboard": TensorBoard, "wandb": WandB, "mlflow": MLflow}


class Loggers:
    """Several loggers as one.

    Args:
        given: Their names or themselves; a name that is given twice counts once.
        tensorboard: Whether TensorBoard is one of them.
        folder: The folder of the run, if it has one. Raises before anything is written there.
    """

    def __init__(self, given: Given, folder: Any, tensorboard: bool = False) -> None:
        several = [given] if isinstance(given, str | Logger) else list(given)
        several += ["tensorboard"] if tensorboard else []
        self._loggers: list[Logger] = []
        for one in dict.fromkeys(several):
            if not isinstance(one, str | Logger):
                raise DataError(f"loggers holds {one!r}; pass names ({', '.join(LOGGERS)}) or Logger objects")
            if isinstance(one, str) and one not in LOGGERS:
                raise DataError(f"{one!r} is not a logger; {suggestion(one, LOGGERS)}")
            self._loggers.append(LOGGERS[one]() if isinstance(one, str) else one)
        if folder is None and any(isinstance(one, TensorBoard) for one in self._loggers):
            raise DataError("TensorBoard's files go to the folder of the run; pass folder= (out= of train)")

    @contextmanager
    def logging(self, run: Any, folder: Path | None, epoch: int) -> Iterator[None]:
        """Within, a run is trained from after ``epoch`` on."""
        started = []
        try:
            for logger in self._loggers:
                try:
                    logger.start(run.config, folder, epoch)
                except logger.failures as error:
                    raise DataError(
                        f"{logger.title} cannot start: {first_line(error)}; fix it, or leave it out"
                    ) from error
                started.append(logger)
            yield
        finally:
            for logger in started:
                if logger in self._loggers:  # it has not failed
                    self._call(logger, "finish", dict(run.result) if run.finished else None)

    def log(self, epoch: int, values: Mapping[str, float]) -> None:
        for logger in list(self._loggers):
            self._call(logger, "log", epoch, values)

    def _call(self, logger: Logger, name: str, *arguments: Any) -> None:
        """Calls a logger, which must not cost the run what it cannot reach."""
        try:
            getattr(logger, name)(*arguments)
        except logger.failures as error:
            self._loggers.remove(logger)
            problem = f"{logger.title} failed ({first_line(error)})"
            note = f"{problem}; the run continues without it and keeps its metrics itself"
            warnings.warn(note, DataWarning, stacklevel=2)


def _scores(result: Mapping[str, Any]) -> dict[str, float]:
    """The metrics of a finished run, by part and name, and its number of parameters."""
    scores = {
        f"result/{part}/{name}": value for part, found in result["metrics"].items() for name, value in found.items()
    }
    return scores | {"result/best_epoch": result["best_epoch"], "result/parameters": result["parameters"]}


def _flat(config: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Settings by dotted names, as ``--set`` has them, without what is no setting."""
    for name, value in config.items():
        if isinstance(value, Mapping):
            if name not in ("search", "facts"):
                yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", str(value)[:500]


def _read_ids(folder: Path) -> dict[str, str]:
    try:
        found = json.loads(RunFolder(folder).loggers.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _known_id(folder: Path | None, service: str) -> str | None:
    """The id that a run had when it was logged before."""
    found = None if folder is None else _read_ids(folder).get(service)
    return found if isinstance(found, str) else None


def _keep_id(folder: Path | None, service: str, number: str) -> None:
    if folder is not None:
        with atomic_write(RunFolder(folder).loggers) as file:
            file.write(json.dumps(_read_ids(folder) | {service: number}).encode())
