"""Records of the runs of tables: those that can be used, each run once."""

from collections.abc import Iterable
from typing import Any

from h2hgcn.experiments.records import Record

_NEEDED: dict[str, Any] = {"hash": str, "seed": int, "column": str, "protocol": str, "status": str}
_NEEDED_OF_RESULTS: dict[str, Any] = {"metrics": dict, "seconds": int | float}


def usable(records: Iterable[Record]) -> list[Record]:
    """Lines that lack something are left out, and of two processes that carried out the same run the first counts."""
    first: dict[tuple[str, int], Record] = {}
    for record in records:
        if _is_whole(record):
            first.setdefault((record["hash"], record["seed"]), record)
    return list(first.values())


def _is_whole(record: Record) -> bool:
    finished = record.get("status") == "finished"
    needed = _NEEDED | (_NEEDED_OF_RESULTS if finished else {})
    if not all(isinstance(record.get(name), kind) for name, kind in needed.items()):
        return False
    return not finished or isinstance(record["metrics"].get("test"), dict)
