"""Records of the runs of tables: those that can be used, each run once."""

import math
from collections.abc import Iterable
from typing import Any

from h2hgcn.experiments.records import Record, Records

_NEEDED: dict[str, Any] = {
    "hash": str, "seed": int, "column": str, "protocol": str, "fold": int | None, "status": str,
}  # fmt: skip

# Nobody runs as many, and all seeds up to the largest are looked for.
_MOST_SEEDS = 10_000


def usable(records: Iterable[Record]) -> list[Record]:
    """Lines that lack something are left out, and of two processes that carried out the same run the first counts."""
    first: dict[tuple[str, int], Record] = {}
    for record in records:
        if _is_whole(record):
            first.setdefault((record["hash"], record["seed"]), record)
    return list(first.values())


def unusable_lines(records: Records) -> list[int]:
    """The numbers of the lines that are no records, or lack something."""
    return [number for number, record in records.numbered() if record is None or not _is_whole(record)]


def _is_whole(record: Record) -> bool:
    if not all(name in record and isinstance(record[name], kind) for name, kind in _NEEDED.items()):
        return False
    if not 0 <= record["seed"] < _MOST_SEEDS:
        return False
    return record["status"] != "finished" or _has_results(record)


def _has_results(record: Record) -> bool:
    metrics, peak = record.get("metrics"), record.get("peak_megabytes")
    return (
        _is_number(record.get("seconds"))
        and isinstance(metrics, dict)
        and _holds_numbers(metrics.get("test"))
        and _holds_numbers(metrics.get("val"))
        and all(record.get("selection") in list(metrics[part]) for part in ("val", "test"))
        and (record.get("trivial") is None or _holds_numbers(record["trivial"]))
        and (peak is None or _is_number(peak))
    )


def _holds_numbers(named: Any) -> bool:
    return isinstance(named, dict) and all(_is_number(value) for value in named.values())


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
