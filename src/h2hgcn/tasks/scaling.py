"""Features as an encoder likes them: raw, with rows of sum 1, or standardised."""

from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from h2hgcn.datasets import DataError

Scaling = Literal["raw", "row", "standard"]


class FeatureScaling(nn.Module):
    """``"raw"`` leaves features alone, ``"row"`` divides each row by its sum, as HGCN does, and ``"standard"`` gives
    every column mean 0 and each row a length of about ``length``.

    Mean and deviation are those of the data that the module was made with, and are saved with a model, so that new
    nodes are measured by the same rule. Sparse features stay sparse: only ``"raw"`` and ``"row"`` serve them.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, scaling: Scaling, x: Any, length: float = 1.0) -> None:
        super().__init__()
        if scaling not in get_args(Scaling):
            raise DataError(f"feature scaling {scaling!r} is not known; use one of {', '.join(get_args(Scaling))}")
        self.scaling = scaling
        width = x.shape[1]
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))
        if scaling == "standard":
            if _is_sparse(x):
                raise DataError("standardised features are not sparse any more; use raw or row scaling for sparse ones")
            deviation = x.double().std(0, correction=0)
            usable = deviation > torch.finfo(torch.float32).eps * x.double().abs().amax(0).clamp_min(1)
            self.mean.copy_(x.double().mean(0))
            self.scale.copy_(torch.where(usable, length / (deviation * width**0.5), 0.0))

    def forward(self, x: Any) -> Any:
        if self.scaling == "raw":
            return x
        if self.scaling == "standard":
            return (x - self.mean.to(x.dtype)) * self.scale.to(x.dtype)
        if _is_sparse(x):
            coo = x.to_sparse_coo().coalesce()
            rows = coo.indices()[0]
            sums = torch.zeros(len(x), dtype=coo.dtype, device=coo.device).index_add(0, rows, coo.values())
            values = coo.values() * _inverse(sums)[rows]
            return torch.sparse_coo_tensor(coo.indices(), values, coo.shape, is_coalesced=True, check_invariants=False)
        return x * _inverse(x.sum(1, keepdim=True))

    def extra_repr(self) -> str:
        return repr(self.scaling)


def _inverse(sums: Tensor) -> Tensor:
    return torch.where(sums == 0, 0.0, 1 / sums)


def _is_sparse(x: Any) -> bool:
    return isinstance(x, Tensor) and x.layout != torch.strided
