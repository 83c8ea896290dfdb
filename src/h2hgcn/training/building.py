"""From whatever a caller calls a model to one that can be trained."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from h2hgcn.errors import DataError
from h2hgcn.layers.node_vectors import node_vectors_of
from h2hgcn.layers.spaces import check_space
from h2hgcn.models import H2HGCN
from h2hgcn.tasks.problem import Model, Problem
from h2hgcn.training.seeds import torch_seeded
from h2hgcn.training.settings import TrainingSettings

# Called with the number of features and, if it has such an argument, of nodes: `num_nodes`.
EncoderFactory = Callable[..., nn.Module]

DEFAULT_DIM = 64


def build_model(
    model: EncoderFactory | nn.Module | None, problem: Problem, settings: TrainingSettings, seed: int
) -> Model:
    """The model of a problem, its weights drawn from the seed; the problem goes to the same device."""
    device = settings.torch_device()
    with torch_seeded(seed), _default_dtype(settings.torch_dtype()):
        try:
            built = problem.build(_encoder(model, problem))
        except (ValueError, TypeError) as error:
            raise DataError(f"the model cannot be made: {error}") from error
    if node_vectors_of(built.encoder) is not None and problem.task.items == "graphs":
        raise DataError("node vectors belong to the nodes of one graph; leave node_vectors out for a collection")
    problem.to(device)
    return built.to(device, settings.torch_dtype())


def make_encoder(factory: EncoderFactory, in_features: int, num_nodes: int | None) -> nn.Module:
    """An encoder for so many features and, if the factory asks for that, nodes."""
    try:
        asks = "num_nodes" in inspect.signature(factory).parameters
    except (ValueError, TypeError):  # no Python function
        asks = False
    return factory(in_features, num_nodes=num_nodes) if asks else factory(in_features)


def _encoder(model: Any, problem: Problem) -> nn.Module:
    if model is None and hasattr(problem.task, "default_encoder"):
        model = problem.task.default_encoder
    if model is None:
        return H2HGCN(problem.in_features, DEFAULT_DIM)
    if not isinstance(model, nn.Module) and not callable(model):
        raise DataError(f"model is {model!r}; pass an encoder, or what makes one, such as partial(H2HGCN, dim=16)")
    built = isinstance(model, nn.Module)
    encoder = model if built else make_encoder(model, problem.in_features, problem.num_nodes)
    if not isinstance(encoder, nn.Module) or not all(hasattr(encoder, name) for name in ("space", "dim")):
        raise DataError(
            f"the encoder is a {type(encoder).__name__}; it has to be a module that says in which `space` its points "
            "lie ('lorentz', 'ball' or 'euclidean') and of which dimension (`dim`)"
        )
    check_space(encoder.space)  # type: ignore[arg-type]
    return encoder


@contextmanager
def _default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """Weights are born in their precision: orthonormal ones do not become so by conversion."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
