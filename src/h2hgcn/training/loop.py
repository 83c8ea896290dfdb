"""The training loop: epochs, validation, the choice of the best epoch, non-finite numbers, checkpoints."""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import get_total_norm

from h2hgcn.errors import DamagedRunError, NonFiniteError
from h2hgcn.files import Weights, check_weights, part_of, read_tensors, write_tensors
from h2hgcn.tasks.base import Problem
from h2hgcn.tasks.metrics import Metrics
from h2hgcn.tasks.model import Model
from h2hgcn.training.distributed import ALONE, Ranks
from h2hgcn.training.optimizers import StiefelOptimizer
from h2hgcn.training.settings import TrainingSettings, epoch_random, torch_seeded


class NonFiniteLossError(NonFiniteError):
    """Training met NaN or infinity; the message says where, and checkpoints are as they were before."""


@dataclass
class TrainingState:
    """How far training has come: epochs done, and the best of them by the validation metric."""

    epoch: int = 0
    best_epoch: int = 0
    best: dict[str, float] = field(default_factory=dict)
    best_weights: Weights = field(default_factory=dict)
    seconds: float = 0.0
    stopped_early: bool = False

    def is_over(self, settings: TrainingSettings) -> bool:
        return self.stopped_early or self.epoch >= settings.last_epoch


def weights_of(model: nn.Module) -> Weights:
    """A copy of a model's state, on the CPU."""
    return {name: value.detach().cpu().clone() for name, value in model.state_dict().items()}


@dataclass(frozen=True)
class EpochReport:
    """The result of an epoch. ``val`` are the metrics on the ``part`` that selects, None where they were not due;
    ``selection`` is the metric that selects.
    """

    epoch: int
    loss: float
    val: Metrics | None
    lr: float
    seconds: float
    selection: str
    part: str = "val"

    def to_dict(self) -> dict[str, Any]:
        row = {"epoch": self.epoch, "loss": self.loss, "lr": self.lr, "seconds": round(self.seconds, 4)}
        return row if self.val is None else row | {self.part: self.val}


def train(
    problem: Problem,
    model: Model,
    optimizer: StiefelOptimizer,
    settings: TrainingSettings,
    seed: int,
    state: TrainingState,
    after_epoch: Callable[[EpochReport], None],
    should_stop: Callable[[], bool] = lambda: False,
    ranks: Ranks = ALONE,
) -> None:
    """Trains from ``state`` on, which is kept up to date; ``after_epoch`` is called when an epoch is over and counted.

    An epoch depends only on the seed, its number, the weights and the state of the optimizers.
    """
    part = next(iter(problem.task.parts), None)
    rates = [group["lr"] for group in optimizer.param_groups]
    device = next(model.parameters()).device
    while not state.is_over(settings) and not ranks.any(should_stop):
        start = time.perf_counter()
        factor = settings.rate_factor(state.epoch)
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * factor
        with _explained(model, state.epoch + 1):
            with torch_seeded(seed, state.epoch, device):
                batches = problem.batches(epoch_random(seed, state.epoch))
                loss = run_epoch(problem, model, optimizer, settings, batches, ranks)
            due = (state.epoch + 1) % settings.eval_every == 0 or state.epoch + 1 == settings.last_epoch
            val = None
            if part is not None and due:
                val = ranks.from_first(partial(evaluate, problem, model, part))
        state.epoch += 1
        if part is None:
            state.best_epoch = state.epoch
        if val is not None:
            metric = problem.selection_metric
            if not state.best or val[metric] > state.best[metric]:  # the first of equals stays
                state.best_epoch, state.best, state.best_weights = state.epoch, dict(val), weights_of(model)
            waited = state.epoch - state.best_epoch
            state.stopped_early = settings.patience is not None and waited >= settings.patience
        seconds = time.perf_counter() - start
        state.seconds += seconds
        rate = settings.lr * factor
        after_epoch(EpochReport(state.epoch, loss, val, rate, seconds, problem.selection_metric, part or "val"))
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        group["lr"] = rate


def evaluate(problem: Problem, model: Model, part: str) -> Metrics:
    """The metrics on a part; the model is left as it was."""
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            return problem.evaluate(model, part)
    finally:
        model.train(training)


def run_epoch(
    problem: Problem,
    model: Model,
    optimizer: StiefelOptimizer,
    settings: TrainingSettings,
    batches: Iterable[Any],
    ranks: Ranks = ALONE,
) -> float:
    """The mean loss of an epoch."""
    if not model.training:
        model.train()
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    statistics = _running_statistics(model)
    losses: list[float] = []
    for batch in batches:
        optimizer.zero_grad()
        loss = problem.loss(model, batch)
        loss.backward()
        loss = loss.detach()
        if ranks.size > 1:
            loss = ranks.add_up(parameters, loss, getattr(batch, "share", 1.0))
            ranks.average(statistics)
        gradients = _gradients(parameters)
        norm = get_total_norm(gradients)
        numbers = torch.stack([loss.double(), norm.double()]).tolist()  # at once: a device is waited for
        if not math.isfinite(numbers[0]):
            optimizer.zero_grad()  # its gradients are not to blame
            raise NonFiniteError(f"the loss is {numbers[0]}")
        if not math.isfinite(numbers[1]):
            raise NonFiniteError(f"the norm of the gradient is {numbers[1]}")
        losses.append(numbers[0])
        if settings.clip_norm is not None:
            shrink = (settings.clip_norm / norm.clamp_min(settings.clip_norm)).to(norm.dtype)
            for gradient in gradients:
                gradient.mul_(shrink)
        optimizer.step()
        del batch, loss  # before the next is made: a large one, and all that hangs on its loss
    return sum(losses) / len(losses)


def _gradients(parameters: Iterable[nn.Parameter]) -> list[Tensor]:
    """The numbers of all gradients, those of sparse ones without repeated rows; writing to them changes gradients."""
    values = []
    for parameter in parameters:
        if parameter.grad is not None and parameter.grad.is_sparse:
            parameter.grad = parameter.grad.coalesce()
        if parameter.grad is not None:
            values.append(parameter.grad._values() if parameter.grad.is_sparse else parameter.grad)
    return values


def _running_statistics(model: nn.Module) -> list[Tensor]:
    """Means and variances that batch normalizations keep."""
    norms = [module for module in model.modules() if isinstance(module, nn.modules.batchnorm._NormBase)]
    kept = [buffer for norm in norms for buffer in (norm.running_mean, norm.running_var)]
    return [buffer for buffer in kept if buffer is not None]


@contextmanager
def _explained(model: nn.Module, epoch: int) -> Iterator[None]:
    """Adds to an error about NaN or infinity where it occurred and what to try."""
    try:
        yield
    except NonFiniteError as error:
        advice = "try a lower lr, clip_norm=1, scaling='standard' for the features, or dtype='float64'"
        raise NonFiniteLossError(f"epoch {epoch}: {error}: {_culprit(model)}; {advice}") from error


def _culprit(model: nn.Module) -> str:
    named = list(model.named_parameters())
    for name, parameter in named:
        if not bool(parameter.isfinite().all()):
            return f"the parameter {name} holds NaN or infinity"
    for name, parameter in named:
        if not all(bool(values.isfinite().all()) for values in _gradients([parameter])):
            return f"the gradient of {name} holds NaN or infinity"
    largest, name = max((float(parameter.detach().abs().max()), name) for name, parameter in named if parameter.numel())
    return (
        f"all parameters are finite (the largest number, in {name}, is {largest:.3g}), so they or the features overflow"
    )


# What optimizers with a state keep of a parameter; the moments are of its shape.
_ENTRIES = {"step", "exp_avg", "exp_avg_sq"}


def save_checkpoint(path: Path, state: TrainingState, model: nn.Module, optimizer: StiefelOptimizer) -> None:
    """Writes one file, whole or not at all: of two files, one could be of another epoch after a crash.

    Learning rates and the like are not in it; they follow from the settings.
    """
    tensors = {f"model.{name}": value for name, value in weights_of(model).items()}
    tensors |= {f"best.{name}": value for name, value in state.best_weights.items()}
    numbers = {}
    for part, saved in enumerate(optimizer.state_dict()["parts"]):
        for parameter, entries in saved["state"].items():
            for key, value in entries.items():
                if isinstance(value, Tensor):
                    tensors[f"optimizer.{part}.{parameter}.{key}"] = value
                else:
                    numbers[f"{part}.{parameter}.{key}"] = value
    write_tensors(path, tensors, {"state": asdict(replace(state, best_weights={})), "numbers": numbers})


def load_checkpoint(path: Path, model: nn.Module, optimizer: StiefelOptimizer) -> TrainingState:
    """Brings model and optimizers to the state of a checkpoint, once all of it is known to fit them."""
    advice = "train to another folder, or restart with --force"
    tensors, about = read_tensors(path, advice)
    try:
        state = TrainingState(**about["state"])
        numbers = (state.epoch, state.best_epoch, state.seconds, *state.best.values())
        if not all(isinstance(number, int | float) for number in numbers) or not 0 <= state.best_epoch <= state.epoch:
            raise ValueError("its counts of epochs")
        weights, state.best_weights = part_of(tensors, "model."), part_of(tensors, "best.")
        check_weights(weights, model.state_dict(), "it")
        if state.best:
            check_weights(state.best_weights, model.state_dict(), "it")
        entries = part_of(tensors, "optimizer.") | about["numbers"]
        optimizer_state = optimizer.state_dict()
        for part, found in zip(optimizer_state["parts"], _checked_states(optimizer, entries), strict=True):
            part["state"] = found
        model.load_state_dict(weights)
        optimizer.load_state_dict(optimizer_state)
    except (RuntimeError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise DamagedRunError(f"{path} is of another model or other settings ({error}); {advice}") from error
    return state


def _checked_states(optimizer: StiefelOptimizer, entries: dict[str, Any]) -> list[dict[int, dict[str, Any]]]:
    """The state of each part, by parameter. Raises unless it is of these optimizers: some write to memory unchecked."""
    states: list[dict[int, dict[str, Any]]] = [{} for _ in optimizer.parts]
    for name, value in entries.items():
        part, number, key = name.split(".", 2)
        parameters = [each for group in optimizer.parts[int(part)].param_groups for each in group["params"]]
        parameter, tensor = parameters[int(number)], torch.as_tensor(value)
        wanted = () if key == "step" else tuple(parameter.shape)
        if tuple(tensor.shape) != wanted or (key != "step" and tensor.dtype != parameter.dtype):
            raise ValueError(f"the optimizer's {name} is {tensor.dtype} of shape {tuple(tensor.shape)}, not {wanted}")
        if not bool(tensor.isfinite().all()) or (key == "step" and tensor < 1):
            raise ValueError(f"the optimizer's {name} holds NaN, infinity or no step")
        states[int(part)].setdefault(int(number), {})[key] = value
    for place, state in enumerate(states):
        for row, found in state.items():
            if found.keys() != _ENTRIES:
                raise ValueError(f"the optimizer's {place}.{row} has {', '.join(sorted(found))}")
    return states
