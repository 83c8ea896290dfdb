"""The state of training after an epoch, and its file."""

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from h2hgcn.errors import DamagedRunError
from h2hgcn.files import Weights, check_weights, part_of, read_tensors, write_tensors
from h2hgcn.training.optimizers import StiefelOptimizer


@dataclass
class TrainingState:
    """How far training has come: epochs done, and the best of them by the validation metric."""

    epoch: int = 0
    best_epoch: int = 0
    best: dict[str, float] = field(default_factory=dict)
    best_weights: Weights = field(default_factory=dict)
    seconds: float = 0.0
    stopped_early: bool = False

    def improve(self, metrics: dict[str, float], metric: str, model: nn.Module) -> None:
        """Keeps the weights, if they are the best so far; the first of equals stays."""
        if not self.best or metrics[metric] > self.best[metric]:
            self.best_epoch, self.best = self.epoch, dict(metrics)
            self.best_weights = weights_of(model)


def weights_of(model: nn.Module) -> Weights:
    """A copy of a model's state, on the CPU."""
    return {name: value.detach().cpu().clone() for name, value in model.state_dict().items()}


def save_checkpoint(path: Path, state: TrainingState, model: nn.Module, optimizer: StiefelOptimizer) -> None:
    """Writes the weights, the best weights, and the optimizers' state as one file, whole or not at all.

    One file, since the latest and the best of two files could be of different epochs after a crash.
    """
    tensors = {f"model.{name}": value for name, value in weights_of(model).items()}
    tensors |= {f"best.{name}": value for name, value in state.best_weights.items()}
    numbers = {}
    for key, value in _optimizer_entries(optimizer).items():
        if isinstance(value, Tensor):
            tensors[f"optimizer.{key}"] = value
        else:
            numbers[key] = value
    write_tensors(path, tensors, {"state": asdict(replace(state, best_weights={})), "numbers": numbers})


def load_checkpoint(path: Path, model: nn.Module, optimizer: StiefelOptimizer) -> TrainingState:
    """Brings model and optimizers to the state of a checkpoint, once all of it is known to fit them."""
    advice = "train to another folder, or restart with --force"
    tensors, about = read_tensors(path, advice)
    weights, entries = part_of(tensors, "model."), part_of(tensors, "optimizer.")
    try:
        state = _state_from(about["state"])
        state.best_weights = part_of(tensors, "best.")
        check_weights(weights, model.state_dict(), "it")
        if state.best:
            check_weights(state.best_weights, model.state_dict(), "it")
        entries |= about["numbers"]
        _check_entries(optimizer, entries)
        model.load_state_dict(weights)
        _restore(optimizer, entries)
    except (RuntimeError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise DamagedRunError(f"{path} is of another model or other settings ({error}); {advice}") from error
    return state


def _state_from(saved: dict[str, Any]) -> TrainingState:
    state = TrainingState(**{name: value for name, value in saved.items() if name != "metrics_bytes"})  # until 0.2
    numbers = (state.epoch, state.best_epoch, state.seconds, *state.best.values())
    if not all(isinstance(number, int | float) for number in numbers) or not 0 <= state.best_epoch <= state.epoch:
        raise ValueError("its counts of epochs")
    return state


# What optimizers with a state keep of a parameter; the moments are of its shape.
_ENTRIES = {"step", "exp_avg", "exp_avg_sq"}


def _check_entries(optimizer: StiefelOptimizer, entries: dict[str, Any]) -> None:
    """Raises unless a state is of these optimizers: some of them write to memory without checks."""
    found: dict[str, set[str]] = {}
    for name, value in entries.items():
        part, number, key = name.split(".", 2)
        parameters = [each for group in optimizer.parts[int(part)].param_groups for each in group["params"]]
        parameter, tensor = parameters[int(number)], torch.as_tensor(value)
        wanted = () if key == "step" else tuple(parameter.shape)
        if tuple(tensor.shape) != wanted or (key != "step" and tensor.dtype != parameter.dtype):
            raise ValueError(f"the optimizer's {name} is {tensor.dtype} of shape {tuple(tensor.shape)}, not {wanted}")
        if not bool(tensor.isfinite().all()) or (key == "step" and tensor < 1):
            raise ValueError(f"the optimizer's {name} holds NaN, infinity or no step")
        found.setdefault(f"{part}.{number}", set()).add(key)
    for name, keys in found.items():
        if keys != _ENTRIES:
            raise ValueError(f"the optimizer's {name} has {', '.join(sorted(keys))}")


def _optimizer_entries(optimizer: StiefelOptimizer) -> dict[str, Any]:
    """The state as ``part.parameter.key``; learning rates and the like follow from the settings."""
    return {
        f"{number}.{parameter}.{key}": value
        for number, part in enumerate(optimizer.state_dict()["parts"])
        for parameter, entries in part["state"].items()
        for key, value in entries.items()
    }


def _restore(optimizer: StiefelOptimizer, entries: dict[str, Any]) -> None:
    state = optimizer.state_dict()
    for part in state["parts"]:
        part["state"] = {}
    for name, value in entries.items():
        number, parameter, key = name.split(".", 2)
        state["parts"][int(number)]["state"].setdefault(int(parameter), {})[key] = value
    optimizer.load_state_dict(state)
