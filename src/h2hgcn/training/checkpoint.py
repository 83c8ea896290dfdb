"""The state of training after an epoch, and its file."""

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from h2hgcn.errors import DamagedRunError
from h2hgcn.files import Weights, part_of, read_tensors, write_tensors
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
    metrics_bytes: int = 0

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
    """Brings model and optimizers to the state of a checkpoint."""
    tensors, about = read_tensors(path, "train to another folder, or restart with --force")
    try:
        model.load_state_dict(part_of(tensors, "model."))
        _restore(optimizer, part_of(tensors, "optimizer."), about["numbers"])
        state = TrainingState(**about["state"])
        state.best_weights = part_of(tensors, "best.")
        if state.best and state.best_weights.keys() != model.state_dict().keys():
            raise KeyError("best")
    except (RuntimeError, KeyError, TypeError, ValueError) as error:
        raise DamagedRunError(
            f"{path} is of another model or other settings; train to another folder, or restart with --force"
        ) from error
    return state


def _optimizer_entries(optimizer: StiefelOptimizer) -> dict[str, Any]:
    """The state as ``part.parameter.key``; learning rates and the like follow from the settings."""
    return {
        f"{number}.{parameter}.{key}": value
        for number, part in enumerate(optimizer.state_dict()["parts"])
        for parameter, entries in part["state"].items()
        for key, value in entries.items()
    }


def _restore(optimizer: StiefelOptimizer, tensors: Weights, numbers: dict[str, Any]) -> None:
    state = optimizer.state_dict()
    for part in state["parts"]:
        part["state"] = {}
    for name, value in (*tensors.items(), *numbers.items()):
        number, parameter, key = name.split(".", 2)
        state["parts"][int(number)]["state"].setdefault(int(parameter), {})[key] = value
    optimizer.load_state_dict(state)
