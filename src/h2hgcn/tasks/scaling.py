"""Features as an encoder likes them: raw, with rows of sum 1, or standardised."""

from typing import Any, Literal, get_args

import scipy.sparse as sp
import torch
from torch import Tensor, nn

from h2hgcn.datasets import DataError

Scaling = Literal["raw", "row", "standard", "auto"]

# Narrower or fuller features than these are as fast when dense (benchmarks/sparse_products.py has the products).
_WIDE = 128
_SPARSE_SHARE = 0.15

# What "auto" takes for sparse, so that it leaves it raw. Not a matter of speed: a model depends on it.
_MOSTLY_ZERO = 0.1


# Numbers from which on features are neither copied nor scaled as a whole, and rows that are measured at once.
_LARGE, _BLOCK = 1 << 27, 1 << 16


class FeatureScaling(nn.Module):
    """``"raw"`` leaves features alone, ``"row"`` divides each row by its sum, as HGCN does, and ``"standard"`` gives
    every column mean 0 and each row a length of about ``length``.

    ``"auto"`` is ``"raw"`` for sparse features and ``"standard"`` for others.

    Mean and deviation are those of the data that the module was made with, and are saved with a model, so that new
    nodes are measured by the same rule. Sparse features stay sparse: only ``"raw"`` and ``"row"`` serve them.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, scaling: Scaling, x: Any, length: float = 1.0) -> None:
        """``x`` is the features to measure, or their number, if what was measured is to be loaded."""
        super().__init__()
        if scaling not in get_args(Scaling):
            raise DataError(f"feature scaling {scaling!r} is not known; use one of {', '.join(get_args(Scaling))}")
        self.scaling = scaling
        width = x if isinstance(x, int) else x.shape[1]
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))
        if isinstance(x, int) or (scaling == "auto" and _is_sparse(compact(x, _MOSTLY_ZERO))):
            return
        if scaling in ("standard", "auto"):
            _refuse_sparse(x)
            mean, scale = _measured(x, length)
            self.mean.copy_(mean)
            self.scale.copy_(scale)

    def forward(self, x: Any) -> Any:
        if self.scaling == "raw" or (self.scaling == "auto" and not self.needs_dense()):
            return x
        if self.scaling in ("standard", "auto"):
            _refuse_sparse(x)
            return (x - self.mean.to(x.dtype)) * self.scale.to(x.dtype)
        if _is_sparse(x):
            coo = x.to_sparse_coo().coalesce()
            rows = coo.indices()[0]
            sums = torch.zeros(len(x), dtype=coo.dtype, device=coo.device).index_add(0, rows, coo.values())
            values = coo.values() * _inverse(sums)[rows]
            return torch.sparse_coo_tensor(coo.indices(), values, coo.shape, is_coalesced=True, check_invariants=False)
        return x * _inverse(x.sum(1, keepdim=True))

    def needs_dense(self) -> bool:
        """Whether features are standardised, after which few of them are 0."""
        if self.scaling == "auto":
            return bool((self.mean != 0).any() or (self.scale != 1).any())
        return self.scaling == "standard"

    def shaped(self, x: Any) -> Any:
        """Features in the form, dense or sparse, that is faster."""
        return x if self.needs_dense() else compact(x)

    def extra_repr(self) -> str:
        return repr(self.scaling)


def compact(x: Tensor, share: float = _SPARSE_SHARE) -> Tensor:
    """Wide features that are mostly 0 as a sparse tensor, which encoders multiply in a fraction of the time."""
    if _is_sparse(x) or x.shape[1] < _WIDE or x.count_nonzero() > share * x.numel():
        return x
    return x.to_sparse_coo()


class ScaledFeatures:
    """Features and what a model's scaling makes of them, worked out once, since scaling is not learnt."""

    def __init__(self, x: Any) -> None:
        self.x = x
        self._scaled: tuple[FeatureScaling, Any] | None = None
        self._by_row: sp.csr_array | None = None

    def to(self, device: torch.device | str) -> "ScaledFeatures":
        return ScaledFeatures(self.x.to(device))

    def of(self, scaling: FeatureScaling) -> Any:
        """What ``scaling`` makes of them."""
        if self._scaled is None or self._scaled[0] is not scaling:
            self._scaled = (scaling, scaling(scaling.shaped(self.x)))
            self._by_row = None
        return self._scaled[1]

    def rows(self, scaling: FeatureScaling, nodes: Tensor | slice) -> Any:
        """Those of some nodes; sparse ones as a SciPy matrix."""
        if not _is_sparse(self.x) and self.x.numel() > _LARGE and not _is_sparse(scaling.shaped(self.x[:_BLOCK])):
            return scaling(
                self.x[nodes] if isinstance(nodes, slice) else self.x.index_select(0, nodes.to(self.x.device))
            )
        whole = self.of(scaling)
        if not _is_sparse(whole):
            return whole[nodes] if isinstance(nodes, slice) else whole.index_select(0, nodes.to(whole.device))
        if self._by_row is None:
            coo = whole.to_sparse_coo().coalesce().cpu()
            self._by_row = sp.csr_array((coo.values().numpy(), tuple(coo.indices().numpy())), shape=tuple(coo.shape))
        return self._by_row[nodes if isinstance(nodes, slice) else nodes.numpy()]


def _measured(x: Tensor, length: float) -> tuple[Tensor, Tensor]:
    """Mean and scale of columns, in double precision; large features block by block."""
    if x.numel() <= _LARGE:
        whole = x.double()
        return whole.mean(0), _standard_scale(whole.std(0, correction=0), whole.abs().amax(0), length)
    blocks = x.split(_BLOCK)
    mean = sum(block.double().sum(0) for block in blocks) / len(x)
    square = sum((block.double() - mean).square().sum(0) for block in blocks) / len(x)
    largest = torch.stack([block.abs().amax(0) for block in blocks]).amax(0).double()
    assert isinstance(mean, Tensor)
    assert isinstance(square, Tensor)
    return mean, _standard_scale(square.sqrt(), largest, length)


def _standard_scale(deviation: Tensor, largest: Tensor, length: float) -> Tensor:
    """What columns are multiplied with: 0 for one that is constant as far as single precision can tell, whatever its
    unit.
    """
    single = torch.finfo(torch.float32)
    scale = length / (deviation * len(deviation) ** 0.5)
    return torch.where((deviation > single.eps * largest) & (scale < single.max), scale, 0.0)


def _refuse_sparse(x: Any) -> None:
    if _is_sparse(x):
        raise DataError("standardised features are not sparse any more; use raw or row scaling for sparse ones")


def _inverse(sums: Tensor) -> Tensor:
    return torch.where(sums == 0, 0.0, 1 / sums)


def _is_sparse(x: Any) -> bool:
    return isinstance(x, Tensor) and x.layout != torch.strided
