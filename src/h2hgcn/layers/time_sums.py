"""Sums of one number for each neighbour: too little work for a sparse product, which would spend its time on set-up."""

from typing import Any

import torch
from torch import Tensor

from h2hgcn.compiled import compiled, run_on_rows
from h2hgcn.geometry.numerics import LONG_SUM, SUM_TOLERANCE
from h2hgcn.layers.sparse import csr_product


def sum_numbers(crow: Tensor, col: Tensor, values: Tensor, numbers: Tensor, sums: Tensor) -> bool:
    """Fills ``sums (n)`` with the product of a CSR matrix and ``numbers (n)``.

    Returns whether some of them may be too long for float32, being sums of times; see ``midpoint.long_sums``.
    """
    if not numbers.is_cpu:
        sums.copy_(csr_product(crow, col, values, numbers))
        return True
    arrays = [x.detach().numpy() for x in (crow, col, values, numbers.contiguous(), sums)]
    shape = (len(sums), len(col) // max(len(sums), 1))
    return run_on_rows(_sum, shape, *arrays, torch.finfo(sums.dtype).eps)


@compiled
def _sum(first: int, last: int, crow: Any, col: Any, values: Any, numbers: Any, sums: Any, eps: float) -> bool:
    long = False
    for i in range(first, last):
        total = 0.0
        for k in range(crow[i], crow[i + 1]):
            total += values[k] * numbers[col[k]]
        sums[i] = total
        length = crow[i + 1] - crow[i]
        long |= (length > LONG_SUM) & (length * total * total * eps > SUM_TOLERANCE)
    return long
