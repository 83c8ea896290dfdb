"""Riemannian SGD on the Stiefel manifold, all weights of a shape in one go."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from h2hgcn.geometry import stiefel
from h2hgcn.geometry.numerics import wide


class StiefelSGD(Optimizer):
    """``W ← qf(W - lr·P_W(∇L))`` with the orthogonal projection ``P`` and the QR retraction (Dai et al. 2021, Eq.
    16-18). It has no state.
    """

    def __init__(self, params: Iterable[nn.Parameter], lr: float) -> None:
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for alike in _by_shape(group["params"]):
                _move(alike, group["lr"])
        return loss


def _by_shape(weights: Iterable[Tensor]) -> Iterable[list[Tensor]]:
    """The weights that have gradients, those of one shape, dtype and device together."""
    kinds: dict[Any, list[Tensor]] = {}
    for weight in weights:
        if weight.grad is not None:
            kinds.setdefault((weight.shape, weight.dtype, weight.device), []).append(weight)
    return kinds.values()


def _move(weights: list[Tensor], lr: float) -> None:
    points = wide(torch.stack([weight.detach() for weight in weights]))
    gradients = wide(torch.stack([weight.grad for weight in weights if weight.grad is not None]))
    moved = stiefel.retract(points, stiefel.project_tangent(points, gradients).mul_(-lr))
    for weight, value in zip(weights, moved.unbind(), strict=True):
        weight.copy_(value)
