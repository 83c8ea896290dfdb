"""Riemannian SGD on the Stiefel manifold."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from h2hgcn.geometry import stiefel


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
            for weight in group["params"]:
                if weight.grad is not None:
                    weight.copy_(stiefel.descend(weight.detach(), weight.grad, group["lr"]))
        return loss
