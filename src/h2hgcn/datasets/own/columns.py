"""One column of a file: as node ids or as numbers, and which row is to blame if it is neither."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from h2hgcn.errors import DataError

_MAX_WHOLE_FLOAT = 2.0**53  # beyond, neighbouring integers are the same floating-point number


@dataclass(frozen=True)
class Column:
    """Values, what a person would call them, and a function that says where a row is.

    Texts of a file are trimmed; with ``exact`` they are ids as they are.
    """

    values: pa.ChunkedArray
    called: str
    where: Callable[[int], str]
    exact: bool = False

    def ids(self, what: str = "node id") -> pa.ChunkedArray:
        """Integers or texts, none of them missing; ``what`` is what messages call them."""
        values, missing = self._plain(), (f"no {what}", "give every row one")
        if pa.types.is_floating(values.type):
            values = self._whole(values)
        if pa.types.is_integer(values.type) and values.type != pa.uint64():
            self._refuse(pc.is_null(values), *missing)
            return values.cast(pa.int64())
        texts = self._texts(values)
        self._refuse(_is_gap(texts), *missing)
        return texts

    def numbers(self, remedy: str = "") -> NDArray[np.float64]:
        """Finite numbers; ``remedy`` says what to do if there are others."""
        values = self._plain()
        if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
            values = self._parsed(pc.utf8_trim_whitespace(values), remedy)
        elif not (pa.types.is_boolean(values.type) or _is_numeric(values.type)):
            raise DataError(f"{self.where(0)}: {self.called} is of type {values.type}, not a number; leave it out")
        numbers = values.cast(pa.float64(), safe=False).to_numpy()
        self._refuse_gaps(~np.isfinite(numbers), remedy)
        return numbers

    def is_empty(self) -> bool:
        """Whether there is nothing in it, as behind a delimiter at the end of each line."""
        if pa.types.is_string(self.values.type):
            return bool(pc.all(_is_gap(self.values)).as_py())
        return bool(self.values.null_count == len(self.values))

    def _plain(self) -> pa.ChunkedArray:
        kind = self.values.type
        return self.values.cast(kind.value_type) if pa.types.is_dictionary(kind) else self.values

    def _whole(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """Numbers that are whole as integers: columns with gaps are often kept as floating-point numbers."""
        remedy = "node ids are integers or texts"
        broken = pc.fill_null(pc.not_equal(pc.floor(values), values), False)
        self._refuse(broken, f"{self.called} holds a number that is not whole", remedy)
        large = pc.fill_null(pc.greater_equal(pc.abs(values), _MAX_WHOLE_FLOAT), False)
        self._refuse(large, f"{self.called} holds a floating-point number too large to be exact", remedy)
        return values.cast(pa.int64())

    def _texts(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        try:
            texts = values.cast(pa.string())
            return texts if self.exact else pc.utf8_trim_whitespace(texts)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise DataError(
                f"{self.where(0)}: {self.called} is of type {values.type}; node ids are integers or texts"
            ) from None

    def _parsed(self, texts: pa.ChunkedArray, remedy: str) -> pa.ChunkedArray:
        """Numbers, or truth values, out of texts; Arrow does it fast, Python takes more and knows the row."""
        for kind in (pa.float64(), pa.bool_()):
            try:
                return texts.cast(kind)
            except pa.ArrowInvalid:
                continue
        self._refuse_gaps(_is_gap(texts), remedy)
        return pa.chunked_array([[self._number(row, text, remedy) for row, text in enumerate(texts.to_pylist())]])

    def _number(self, row: int, text: str, remedy: str) -> float:
        try:
            return float(text)
        except ValueError:
            advice = remedy or "fill the gap, leave the column out, or turn it into numbers (one column for each value)"
            raise DataError(
                f"{self.where(row)}: {self.called} holds {text!r}, which is not a number; {advice}"
            ) from None

    def _refuse_gaps(self, gaps: Any, remedy: str) -> None:
        remedy = remedy or "fill the gap, or leave the row or column out"
        self._refuse(gaps, f"no finite number in {self.called}", remedy)

    def _refuse(self, bad: Any, what: str, remedy: str) -> None:
        rows = np.flatnonzero(bad)
        if len(rows):
            more = f" (and in {len(rows) - 1} more rows)" if len(rows) > 1 else ""
            raise DataError(f"{self.where(int(rows[0]))}: {what}{more}; {remedy}")


def _is_gap(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.fill_null(pc.equal(texts, ""), True)


def _is_numeric(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
