"""The file of a checkpoint: weights, best weights, and the state of training and of the optimizers."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from h2hgcn.errors import DamagedRunError
from h2hgcn.files import check_weights, part_of, read_tensors, write_tensors
from h2hgcn.training.loop import TrainingState, weights_of
from h2hgcn.training.optimizers import StiefelOptimizer

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
    for keys in (found.keys() for state in states for found in state.values()):
        if keys != _ENTRIES:
            raise ValueError(f"the optimizer has {', '.join(sorted(keys))} of a parameter")
    return states
