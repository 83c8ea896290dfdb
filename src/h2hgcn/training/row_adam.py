"""Adam for large tables of vectors of which a step needs a few rows."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.optim import Optimizer

from h2hgcn.compiled import compiled, run_on_rows


class RowAdam(Optimizer):
    """Adam (Kingma and Ba 2015) on the rows that have a gradient, which is sparse: "lazy" Adam, as PyTorch's
    ``SparseAdam``, with weight decay, and in one pass over these rows on the CPU.

    Moments of other rows stay as they are. If every row has a gradient at every step, this is Adam.
    """

    def __init__(
        self,
        params: Iterable[Parameter],
        lr: float = 0.01,
        weight_decay: float = 0.0,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, parameter.grad.coalesce(), group)
        return loss

    def _update(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if not state:
            state["step"] = torch.tensor(0.0)
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        state["step"] += 1
        step, (beta1, beta2) = float(state["step"]), group["betas"]
        numbers = (
            group["lr"] / (1 - beta1**step), 1 / (1 - beta2**step), beta1, beta2, group["eps"], group["weight_decay"]
        )  # fmt: skip
        rows, values = gradient.indices()[0], gradient.values()
        table = (parameter, state["exp_avg"], state["exp_avg_sq"])
        if parameter.is_cpu:
            arrays = (part.detach().numpy() for part in (rows, values, *table))
            run_on_rows(_update_rows, tuple(values.shape), *arrays, *numbers)
        else:
            update_rows(rows, values, *table, *numbers)


def update_rows(
    rows: Tensor, gradient: Tensor, weight: Tensor, mean: Tensor, square: Tensor,
    lr: float, correction: float, beta1: float, beta2: float, eps: float, weight_decay: float,
) -> None:  # fmt: skip
    """The update of the CPU's loop by tensor operations, for any device."""
    old = weight[rows]
    gradient = gradient + weight_decay * old
    mean[rows] = new_mean = mean[rows].lerp(gradient, 1 - beta1)
    square[rows] = new_square = square[rows] * beta2 + (1 - beta2) * gradient.square()
    weight[rows] = old - lr * new_mean / ((new_square * correction).sqrt() + eps)


@compiled
def _update_rows(
    first: int, last: int, rows: Any, gradient: Any, weight: Any, mean: Any, square: Any,
    lr: float, correction: float, beta1: float, beta2: float, eps: float, weight_decay: float,
) -> None:  # fmt: skip
    for k in range(first, last):
        row = rows[k]
        for j in range(weight.shape[1]):
            g = gradient[k, j] + weight_decay * weight[row, j]
            mean[row, j] = beta1 * mean[row, j] + (1 - beta1) * g
            square[row, j] = beta2 * square[row, j] + (1 - beta2) * g * g
            weight[row, j] -= lr * mean[row, j] / ((square[row, j] * correction) ** 0.5 + eps)
