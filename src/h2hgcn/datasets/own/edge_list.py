"""Edges as every source gives them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from h2hgcn.datasets.own.tables import Codes, Ids

MASKS = ("train_mask", "val_mask", "test_mask")


@dataclass
class EdgeList:
    """Edges between ``ids[source]`` and ``ids[target]``, the ids being distinct.

    ``all_nodes`` says that the ids are all that there are, nodes without edges included. A graph may bring features,
    labels and masks along, in the order of the ids, or attributes by name.
    """

    ids: Ids
    source: Codes
    target: Codes
    where: Callable[[int], str]
    origin: str
    weights: NDArray[np.float64] | None = None
    directed: bool | None = None
    all_nodes: bool = False
    features: Any = None
    labels: Any = None
    masks: dict[str, NDArray[np.bool_]] = field(default_factory=dict)
    attributes: Callable[[str], dict[Any, Any]] | None = None
    attribute_names: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
