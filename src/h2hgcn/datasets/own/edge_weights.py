"""Edge weights, as numbers that a graph can keep."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from h2hgcn.datasets.arrays import to_numpy
from h2hgcn.datasets.own.edge_list import EdgeList
from h2hgcn.datasets.own.single_precision import RANGE, lost_in_single, single
from h2hgcn.errors import DataError


def real_weights(weights: Any, origin: str) -> NDArray[np.float64]:
    """Weights as an array of numbers, one for each edge."""
    try:
        array = to_numpy(weights)
        array = array if array.dtype.kind == "c" else array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{origin}: the weights are not all numbers ({error})") from None
    if array.dtype.kind == "c":
        raise DataError(f"{origin}: the weights are complex; edge weights are real")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise DataError(f"{origin}: the weights have shape {array.shape}, but weights are one each")
    return array


def single_precision_weights(edges: EdgeList) -> NDArray[np.float32] | None:
    """The weights as the graph keeps them, each finite, not negative, and zero only if it was."""
    if edges.weights is None:
        return None
    if len(edges.weights) != len(edges.source):
        raise DataError(f"{edges.origin}: {len(edges.weights)} weights for {len(edges.source)} edges")
    _refuse(
        edges, ~np.isfinite(edges.weights) | (edges.weights < 0), "must be finite and not negative; fix or leave it out"
    )
    _refuse(edges, lost_in_single(edges.weights), f"is beyond {RANGE}; scale the weights")
    weights: NDArray[np.float32] = single(edges.weights)
    return weights


def _refuse(edges: EdgeList, bad: NDArray[np.bool_], why: str) -> None:
    rows = np.flatnonzero(bad)
    if len(rows):
        assert edges.weights is not None
        raise DataError(f"{edges.where(int(rows[0]))}: the weight {edges.weights[rows[0]]} {why}")
