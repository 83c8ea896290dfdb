"""Riemannian optimisation of the Stiefel weights together with Adam for the rest (Dai et al. 2021, Eq. 15-18)."""

from collections.abc import Callable
from typing import Any

import geoopt
import torch
from torch import nn
from torch.optim import Adam, Optimizer

from h2hgcn.layers.node_vectors import NodeVectors
from h2hgcn.training.row_adam import RowAdam
from h2hgcn.training.settings import TrainingSettings
from h2hgcn.training.stiefel_sgd import StiefelSGD


class StiefelOptimizer(Optimizer):
    """Optimisers that step as one: ``stiefel`` for parameters on the Stiefel manifold, ``other`` for those on manifolds
    of another kind, ``euclidean`` for all that are on none, ``by_row`` for tables with sparse gradients.

    Learning-rate schedulers work on it: they see the parameter groups of all (those that cycle the momentum need
    ``cycle_momentum=False``). The state is kept by ``parts``, the optimisers.
    """

    def __init__(
        self,
        euclidean: Optimizer | None,
        stiefel: Optimizer | None,
        other: Optimizer | None = None,
        by_row: Optimizer | None = None,
    ) -> None:
        parts = [part for part in (euclidean, stiefel, other, by_row) if part is not None]
        if not parts:
            raise ValueError("there is no parameter to optimise")
        super().__init__([group for part in parts for group in part.param_groups], {})
        # the very same group objects, so that a learning rate set here is the one used there
        self.param_groups = [group for part in parts for group in part.param_groups]
        self.parts = parts

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for part in self.parts:
            part.step()
        return loss

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        if hasattr(self, "parts"):
            raise ValueError("parameters cannot be added later; build the optimiser with all modules")
        super().add_param_group(param_group)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "parts": self.parts}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.param_groups = [group for part in self.parts for group in part.param_groups]

    def state_dict(self) -> dict[str, Any]:
        return {"parts": [part.state_dict() for part in self.parts]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        if len(state_dict.get("parts", ())) != len(self.parts):
            raise ValueError("the state is of an optimiser with other kinds of parameters; was it of another model?")
        for part, state in zip(self.parts, state_dict["parts"], strict=True):
            part.load_state_dict(state)
            if isinstance(part, geoopt.optim.RiemannianAdam):
                _count_in_integers(part)
        self.param_groups = [group for part in self.parts for group in part.param_groups]


def _count_in_integers(optimizer: Optimizer) -> None:
    """Loading turns geoopt's step counts into float32, in which the bias correction is not the same to the last bit."""
    for state in optimizer.state.values():
        state["step"] = int(state["step"])


def build_optimizer(
    module: nn.Module,
    lr: float = 0.01,
    stiefel_lr: float | None = None,
    weight_decay: float = 0.0,
    stiefel_method: str = "rsgd",
    vector_lr: float | None = None,
    vector_weight_decay: float | None = None,
) -> StiefelOptimizer:
    """Adam for the Euclidean parameters of ``module``, and for its Stiefel weights

    ``stiefel_method="rsgd"``: Riemannian SGD with the orthogonal projection and QR retraction of the paper, or
    ``"radam"``: Riemannian Adam. ``stiefel_lr`` defaults to ``lr``. Weight decay has no meaning on the Stiefel
    manifold, where every matrix has the same norm, and is not applied there. Points of other manifolds go with the
    Stiefel weights, but decay: those of the Poincaré ball are drawn to the origin. ``NodeVectors`` have a rate and a
    weight decay of their own, which default to ``lr`` and ``weight_decay``; with sparse gradients ``RowAdam`` updates
    the rows of a batch.
    """
    if not isinstance(module, nn.Module):
        raise ValueError(f"pass the module itself, not a {type(module).__name__}: its weights are told apart by kind")
    if stiefel_method not in ("rsgd", "radam"):
        raise ValueError(f"stiefel_method={stiefel_method!r} is not known; use one of ('rsgd', 'radam')")
    flat, on_stiefel, elsewhere = _by_manifold(module, apart=stiefel_method == "rsgd")
    parts = [part for part in module.modules() if isinstance(part, NodeVectors) and part.weight.requires_grad]
    vectors = {part.weight: part.sparse_gradients for part in parts}
    of_vectors: dict[str, Any] = {
        "lr": lr if vector_lr is None else vector_lr,
        "weight_decay": weight_decay if vector_weight_decay is None else vector_weight_decay,
    }
    groups: list[dict[str, Any]] = [
        {"params": [weight for weight in flat if weight not in vectors]},
        {"params": [weight for weight, sparse in vectors.items() if not sparse], **of_vectors},
    ]
    groups = [group for group in groups if group["params"]]
    by_row = [weight for weight, sparse in vectors.items() if sparse]
    manifold_lr = lr if stiefel_lr is None else stiefel_lr
    riemannian = geoopt.optim.RiemannianSGD if stiefel_method == "rsgd" else geoopt.optim.RiemannianAdam
    return StiefelOptimizer(
        Adam(groups, lr=lr, weight_decay=weight_decay, fused=_can_fuse(flat)) if groups else None,
        StiefelSGD(on_stiefel, manifold_lr) if on_stiefel else None,
        riemannian(_manifold_groups(elsewhere, weight_decay), lr=manifold_lr) if elsewhere else None,
        RowAdam(by_row, **of_vectors) if by_row else None,
    )


def build_optimizer_of(module: nn.Module, settings: TrainingSettings) -> StiefelOptimizer:
    """``build_optimizer`` with the rates and decays of some settings."""
    return build_optimizer(
        module,
        settings.lr,
        settings.stiefel_lr,
        settings.weight_decay,
        settings.stiefel_method,
        settings.vector_lr,
        settings.vector_weight_decay,
    )


def _by_manifold(module: nn.Module, apart: bool) -> tuple[list[Any], list[Any], list[Any]]:
    """The parameters to learn that lie on no manifold, on the Stiefel manifold if it is ``apart``, and on others."""
    flat, on_stiefel, elsewhere = [], [], []
    for parameter in module.parameters():
        if not parameter.requires_grad:
            continue
        if not isinstance(parameter, geoopt.ManifoldParameter):
            flat.append(parameter)
        elif apart and isinstance(parameter.manifold, geoopt.EuclideanStiefel):
            on_stiefel.append(parameter)
        else:
            elsewhere.append(parameter)
    return flat, on_stiefel, elsewhere


def _can_fuse(parameters: list[Any]) -> bool | None:
    """PyTorch's own choice is one operation after the other on the CPU, which takes three times as long."""
    return all(parameter.is_cpu and parameter.is_floating_point() for parameter in parameters) or None


def _manifold_groups(parameters: list[geoopt.ManifoldParameter], weight_decay: float) -> list[dict[str, Any]]:
    """Parameters by whether their norm can decay."""
    fixed = [parameter for parameter in parameters if isinstance(parameter.manifold, geoopt.Stiefel)]
    free = [parameter for parameter in parameters if not isinstance(parameter.manifold, geoopt.Stiefel)]
    groups = [{"params": fixed, "weight_decay": 0.0}, {"params": free, "weight_decay": weight_decay}]
    return [group for group in groups if group["params"]]
