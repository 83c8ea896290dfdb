"""What points can be coloured by: a number or one of some names for each of them."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from h2hgcn.embeddings.coloring import natural_order

# Names beyond these are taken together: no legend shows more, and a page has to hold them.
MAX_CATEGORIES = 1_000
OTHER = "other values"

# The code of a point that has no value.
MISSING = 0xFFFF


@dataclass(frozen=True)
class Column:
    """``values`` are numbers (NaN where there is none), or, with ``categories``, places among these."""

    name: str
    values: NDArray[Any]
    categories: tuple[str, ...] | None = None

    def described(self) -> dict[str, Any]:
        """What a page has to know before it asks for the values."""
        if self.categories is not None:
            return {"name": self.name, "kind": "category", "categories": list(self.categories)}
        finite = self.values[np.isfinite(self.values)].astype(np.float64)
        low, middle, high = (float(x) for x in np.quantile(finite, [0, 0.5, 1])) if len(finite) else (0.0, 0.0, 0.0)
        whole = bool((finite == np.round(finite)).all())
        return {"name": self.name, "kind": "number", "low": low, "middle": middle, "high": high, "whole": whole}


def make_column(name: str, values: Any, known: tuple[str, ...] | None = None) -> Column:
    """A column of numbers, or of whatever else there is as names; None is no value.

    Names that all are among the ``known`` ones are places among these, so that each has the same color in both columns.
    """
    array = np.asarray(values)
    if array.dtype.kind in "iuf":
        return Column(name, _numbers(array))
    return _named(name, array, known)


def _numbers(array: NDArray[Any]) -> NDArray[Any]:
    """Float32 where that holds whole numbers exactly, and for fractions; else float64."""
    with np.errstate(over="ignore"):
        narrow = array.astype(np.float32)
    if array.dtype.kind in "iu":
        return narrow if np.abs(array.astype(np.float64)).max(initial=0) <= 2**24 else array.astype(np.float64)
    numbers = narrow if np.isfinite(narrow).sum() == np.isfinite(array).sum() else array.astype(np.float64)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _named(name: str, array: NDArray[Any], known: tuple[str, ...] | None) -> Column:
    texts = [None if value is None else _text(value) for value in array.tolist()]
    counts = Counter(text for text in texts if text is not None)
    if counts and known is not None and len(known) <= MAX_CATEGORIES and counts.keys() <= set(known):
        kept = list(known)
    else:
        kept = sorted((text for text, _ in counts.most_common(MAX_CATEGORIES)), key=natural_order)
    codes = {text: place for place, text in enumerate(kept)}
    categories = (*kept, OTHER) if len(counts) > len(kept) else tuple(kept)
    places = (MISSING if text is None else codes.get(text, len(kept)) for text in texts)
    return Column(name, np.fromiter(places, dtype=np.uint16, count=len(texts)), categories)


def _text(value: Any) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)
