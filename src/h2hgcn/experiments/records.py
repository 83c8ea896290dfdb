"""Results of runs, one line of JSON each, in files that only grow."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from filelock import FileLock

Record = dict[str, Any]


class Records:
    """A file of results. Processes may add to it at the same time: no line is lost, and none is mixed with another."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __iter__(self) -> Iterator[Record]:
        """All whole lines. One that was cut short counts as not written: its run is done again."""
        return (record for _, record in self.numbered() if record is not None)

    def numbered(self) -> Iterator[tuple[int, Record | None]]:
        """All lines with their numbers, the first being 1; None stands for one that is no record."""
        if not self.path.exists():
            return
        for number, line in enumerate(self.path.read_bytes().splitlines(), start=1):
            try:
                record = json.loads(line)
            except ValueError:
                record = None
            yield number, record if isinstance(record, dict) else None

    def add(self, record: Record) -> None:
        """Writes a line, through to the disk; what a killed writer left of a line is ended first."""
        line = json.dumps(record, sort_keys=True, allow_nan=False).encode() + b"\n"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(self.path.with_name(f".{self.path.name}.lock")):
            try:
                self._append(line)
            except OSError as error:
                error.filename = error.filename or str(self.path)
                raise

    def _append(self, line: bytes) -> None:
        with self.path.open("a+b") as file:
            file.seek(0, os.SEEK_END)
            if file.tell() and not self._ends_a_line(file):
                file.write(b"\n")
            file.write(line)
            file.flush()
            os.fsync(file.fileno())

    @staticmethod
    def _ends_a_line(file: Any) -> bool:
        file.seek(-1, os.SEEK_END)
        return bool(file.read(1) == b"\n")
