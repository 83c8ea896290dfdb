"""Tensors in safetensors files, with something said about them as JSON in the header."""

import json
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from h2hgcn.atomic import atomic_write
from h2hgcn.errors import DamagedRunError, DataError

Weights = dict[str, Tensor]


def write_tensors(path: Path, tensors: Weights, about: dict[str, Any]) -> None:
    """Writes a file, whole or not at all."""
    # copies, since tensors that share memory are refused
    own = {name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format) for name, tensor in tensors.items()}
    data = safetensors.torch.save(own, {"h2hgcn": json.dumps(about)})
    with atomic_write(path) as file:
        file.write(data)


def read_tensors(path: Path, advice: str = "restore it from a copy") -> tuple[Weights, dict[str, Any]]:
    """What ``write_tensors`` wrote. ``advice`` is what to do if the file is damaged or not there."""
    try:
        with safetensors.safe_open(path, "pt") as file:
            about = json.loads((file.metadata() or {})["h2hgcn"])
            # copies in PyTorch's own memory: products depend to the last bit on where their numbers begin
            return {name: file.get_tensor(name).clone() for name in file.keys()}, about  # noqa: SIM118  # no mapping
    except FileNotFoundError:
        raise DamagedRunError(f"{path} is not there; {advice}") from None
    except (safetensors.SafetensorError, OSError, KeyError, ValueError) as error:
        raise DamagedRunError(f"{path} is damaged or was not written by h2hgcn ({error}); {advice}") from error


def load_weights(module: nn.Module, weights: Weights, where: str) -> None:
    """Gives a module its weights, if they are of such a one; ``where`` they came from is named in errors."""
    wanted = {name: tuple(value.shape) for name, value in module.state_dict().items()}
    given = {name: tuple(value.shape) for name, value in weights.items()}
    for name in (*wanted, *given):
        if wanted.get(name) != given.get(name):
            raise DataError(
                f"{where} does not fit the model: {name} has the shape {given.get(name)} there and {wanted.get(name)} "
                "in the model (None is for a part that it does not have)"
            )
    module.load_state_dict(weights)


def part_of(tensors: Weights, prefix: str) -> Weights:
    """The tensors whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
