"""Riemannian optimization of Stiefel weights with Adam for the rest (Dai et al. 2021, Eq. 15-18)."""

from collections.abc import Callable, Iterable
from typing import Any

import geoopt
import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer
from torch.optim.adam import adam

from h2hgcn.geometry import stiefel
from h2hgcn.layers.inputs import NodeVectors
from h2hgcn.training.settings import TrainingSettings


class _Stepper(Optimizer):
    """What our optimizers share: ``step`` calls the closure, if there is one, and then ``update``."""

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self.update()
        return loss

    def update(self) -> None:
        raise NotImplementedError


class StiefelSGD(_Stepper):
    """``W ← qf(W - lr·P_W(∇L))`` with the orthogonal projection ``P`` and the QR retraction (Dai et al. 2021, Eq.
    16-18). It has no state.
    """

    def __init__(self, params: Iterable[nn.Parameter], lr: float) -> None:
        super().__init__(params, {"lr": lr})

    def update(self) -> None:
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    weight.copy_(stiefel.descend(weight.detach(), weight.grad, group["lr"]))


class RowAdam(_Stepper):
    """Adam (Kingma and Ba 2015) on the rows that have a gradient, which is sparse: "lazy" Adam, as PyTorch's
    ``SparseAdam``, with weight decay.

    Moments of other rows stay as they are. If every row has a gradient at every step, this is Adam.
    """

    def __init__(
        self, params: Iterable[nn.Parameter], lr: float = 0.01, weight_decay: float = 0.0,
        betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
    ) -> None:  # fmt: skip
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "betas": betas, "eps": eps})

    def update(self) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update_table(parameter.detach(), parameter.grad.coalesce(), group, self.state[parameter])

    def _update_table(self, table: Tensor, gradient: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        if not state:
            state["step"] = torch.tensor(0.0)
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(table), torch.zeros_like(table)
        rows = gradient.indices()[0]
        tables = (table, state["exp_avg"], state["exp_avg_sq"])
        weight, mean, square = (part.index_select(0, rows) for part in tables)
        beta1, beta2 = group["betas"]
        adam(
            [weight], [gradient.values()], [mean], [square], [], [state["step"]], fused=table.is_cpu, amsgrad=False,
            beta1=beta1, beta2=beta2, lr=group["lr"], weight_decay=group["weight_decay"], eps=group["eps"],
            maximize=False,
        )  # fmt: skip
        for part, new in zip(tables, (weight, mean, square), strict=True):
            part.index_copy_(0, rows, new)


class StiefelOptimizer(_Stepper):
    """Optimizers that step as one: ``stiefel`` for parameters on the Stiefel manifold, ``other`` for those on manifolds
    of another kind, ``euclidean`` for all that are on none, ``by_row`` for tables with sparse gradients.

    Learning-rate schedulers work on it: they see the parameter groups of all (those that cycle the momentum need
    ``cycle_momentum=False``). The state is kept by ``parts``, the optimizers.
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
            raise ValueError("there is no parameter to optimize")
        super().__init__([group for part in parts for group in part.param_groups], {})
        # the very same group objects, so that a learning rate set here is the one used there
        self.param_groups = [group for part in parts for group in part.param_groups]
        self.parts = parts

    def update(self) -> None:
        for part in self.parts:
            part.step()

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        if hasattr(self, "parts"):
            raise ValueError("parameters cannot be added later; build the optimizer with all modules")
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
            raise ValueError("the state is of an optimizer with other kinds of parameters; was it of another model?")
        for part, state in zip(self.parts, state_dict["parts"], strict=True):
            part.load_state_dict(state)
            if isinstance(part, geoopt.optim.RiemannianAdam):
                # loading makes its step counts float32, in which the bias correction differs in the last bit
                for entries in part.state.values():
                    entries["step"] = int(entries["step"])
        self.param_groups = [group for part in self.parts for group in part.param_groups]


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
    flat, vectors, by_row, on_stiefel, fixed, free = (list[Any]() for _ in range(6))
    sparse = {part.weight: part.sparse_gradients for part in module.modules() if isinstance(part, NodeVectors)}
    for parameter in module.parameters():
        if not parameter.requires_grad:
            continue
        if parameter in sparse:
            (by_row if sparse[parameter] else vectors).append(parameter)
        elif not isinstance(parameter, geoopt.ManifoldParameter):
            flat.append(parameter)
        elif stiefel_method == "rsgd" and isinstance(parameter.manifold, geoopt.EuclideanStiefel):
            on_stiefel.append(parameter)
        else:
            (fixed if isinstance(parameter.manifold, geoopt.Stiefel) else free).append(parameter)
    of_vectors: dict[str, Any] = {
        "lr": lr if vector_lr is None else vector_lr,
        "weight_decay": weight_decay if vector_weight_decay is None else vector_weight_decay,
    }
    euclidean = _filled({"params": flat}, {"params": vectors, **of_vectors})
    curved = _filled({"params": fixed, "weight_decay": 0.0}, {"params": free, "weight_decay": weight_decay})
    # PyTorch's own choice is one operation after the other on the CPU, which takes three times as long
    fused = all(parameter.is_cpu and parameter.is_floating_point() for parameter in (*flat, *vectors)) or None
    manifold_lr = lr if stiefel_lr is None else stiefel_lr
    riemannian = geoopt.optim.RiemannianSGD if stiefel_method == "rsgd" else geoopt.optim.RiemannianAdam
    return StiefelOptimizer(
        Adam(euclidean, lr=lr, weight_decay=weight_decay, fused=fused) if euclidean else None,
        StiefelSGD(on_stiefel, manifold_lr) if on_stiefel else None,
        riemannian(curved, lr=manifold_lr) if curved else None,
        RowAdam(by_row, **of_vectors) if by_row else None,
    )


def _filled(*groups: dict[str, Any]) -> list[dict[str, Any]]:
    return [group for group in groups if group["params"]]


def build_optimizer_of(module: nn.Module, settings: TrainingSettings) -> StiefelOptimizer:
    """``build_optimizer`` with the rates and decays of some settings."""
    names = ("lr", "stiefel_lr", "weight_decay", "stiefel_method", "vector_lr", "vector_weight_decay")
    return build_optimizer(module, **{name: getattr(settings, name) for name in names})
