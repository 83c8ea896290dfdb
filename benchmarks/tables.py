"""Untidy tables through both readers: `load_graph` and `convert_graph` must give equal graphs or the same error.

Every table is converted twice, the second time in batches of a few bytes. An exception that is not a `DataError`
counts as a traceback.
"""

import argparse
import gzip
import re
import shutil
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from rich.progress import track
from torch_geometric.data import Data

from h2hgcn.datasets import DataError, convert_graph, load_graph, table_files, tables

_DELIMITERS = (",", ",", ",", ";", "\t", "|", " ")
_IDS: tuple[tuple[Any, ...], ...] = (
    tuple(range(8)),
    (-5, 7, 12, 300, 2**40),
    ("007", "7", "+7", "8"),
    ("ann", "bob", "eve", "New York", "Zürich", "dan"),
    ("#python", "#ml", "java", "c"),
    ("a,b", "c;d", 'say "hi"', "two\nlines", " edge ", "x|y"),
    ("user|1", "item|2", "user|3"),
    ("1.0", "1", "TRUE", "NA", "1e5"),
    (1, 2, "three", 4),
    ("P12345", "Q99999", "A1", "B2", "C3"),
)
_LABELS: tuple[tuple[Any, ...], ...] = ((10, 9, -1), ("left", "right", ""), (0, 1, " "), ("01", 1, "x", ""), ("1.5", 2))
_WEIGHTS: tuple[tuple[Any, ...], ...] = (
    (1, 2.5, "1e-3"), (0, 1), ("1_000", "+1", " .5"), ("TRUE", "false", 1), (1, ""), (1, "heavy"), (1, -2), (1, "1e39"),
    ("0,5", "1,5"), (1, "nan"),
)  # fmt: skip
_HEADERS = (
    ("source", "target"), ("from", "to"), ("u", "v"), ("mother", "daughter"), ("Source ", " TARGET"), ("a", "a"),
    ("target", "source"), ("1", "2"), ("package", "depends"),
)  # fmt: skip


def write_tables(random: Random, folder: Path) -> dict[str, Any]:
    """Files of edges, features and labels in a folder, and options: the arguments of ``load_graph``."""
    pool = random.choice(_IDS)
    count = random.choice((1, 2, 3, 6, 12, 40))
    pairs = [[random.choice(pool), random.choice(pool)] for _ in range(count)]
    if random.random() < 0.2:  # a column of another type
        pairs = [[a, str(b)] for a, b in pairs]
    weights = random.choice(_WEIGHTS) if random.random() < 0.4 else None
    header = list(random.choice(_HEADERS)) if random.random() < 0.6 else None
    if weights is not None:
        pairs = [[*pair, random.choice(weights)] for pair in pairs]
        header = None if header is None else [*header, random.choice(("weight", "w", "amount"))]
    style = _Style(random)
    given: dict[str, Any] = {"edges": style.write(folder / "edges", header, pairs)}
    nodes = list(dict.fromkeys(node for pair in pairs for node in pair[:2]))
    random.shuffle(nodes)
    if random.random() < 0.05:
        nodes.append("stranger")
    if random.random() < 0.05 and len(nodes) > 1:
        nodes.pop()
    if random.random() < 0.5:
        names = random.choice((["id", "f0", "f1"], ["node", "height", "old"], ["who", "x", "y"]))
        values = random.choice(((1, 0.5, -2), ("true", "false"), (1, ""), (1, "blue"), ("1e39", 1), (0.25,)))
        rows = [[node, random.choice(values), random.randrange(9)] for node in nodes]
        given["features"] = style.write(folder / "features", names if random.random() < 0.8 else None, rows)
    if random.random() < 0.5:
        classes = random.choice(_LABELS)
        names = random.choice((["id", "label"], ["name", "y"], ["company", "risk"]))
        rows = [[node, random.choice(classes)] for node in nodes]
        if random.random() < 0.2:
            names = [*names, "split"]
            rows = [[*row, random.choice(("train", "val", "test", "", "Valid"))] for row in rows]
        given["labels"] = style.write(folder / "labels", names if random.random() < 0.8 else None, rows)
    given["directed"] = random.random() < 0.3
    if random.random() < 0.3:
        given["header"] = header is not None
    if random.random() < 0.3 and style.delimiter is not None:
        given["delimiter"] = style.delimiter
    if random.random() < 0.2:
        given["comment"] = random.choice(("none", "#", "%"))
    if random.random() < 0.2:
        given["weights"] = random.choice((False, True, "weight"))
    if random.random() < 0.3:
        given["unlinked"] = random.choice(("keep", "drop"))
    if random.random() < 0.1 and header is not None:
        given["columns"] = (header[0].strip(), header[1].strip())
    return given


class _Style:
    """How the files of one graph are written: well or badly."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.delimiter = None if random.random() < 0.15 else random.choice(_DELIMITERS)
        self._line_end = random.choice(("\n", "\n", "\r\n", "\r"))
        self._mark = "\ufeff" if random.random() < 0.1 else ""
        self._packed = random.random() < 0.1
        self._untidy = random.choice((0.0, 0.05, 0.3))
        self._quotes = random.choice((0.0, 0.0, 0.5, 1.0))
        self._comments = random.choice((0.0, 0.0, 0.2))
        self._broken = random.random() < 0.1

    def write(self, path: Path, header: list[str] | None, rows: list[list[Any]]) -> Path:
        if self.delimiter is None:
            return self._write_parquet(path.with_suffix(".parquet"), header, rows)
        lines = [] if header is None else [self._line(header)]
        for row in rows:
            if self._random.random() < self._comments:
                lines.append(self._random.choice(("# made by hand", '# 5" wide', "#", "  # a,b", "#a,b")))
            if self._random.random() < self._untidy:
                lines.append(self._random.choice(("", "   ", "\t")))
            lines.append(self._line(row))
        if self._comments:
            lines.insert(0, "# Nodes: 5 Edges: 7")
        if self._broken:
            place = self._random.randrange(len(lines))
            lines[place] = self._random.choice(
                (lines[place] + f"{self.delimiter}more", '"open', lines[place][:2], "\0")
            )
        text = self._mark + self._line_end.join(lines) + self._random.choice((self._line_end, ""))
        path = path.with_suffix(".csv.gz" if self._packed else ".csv")
        content = text.encode()
        if self._random.random() < 0.02:
            content = content.replace(b"a", b"\xff")
        path.write_bytes(gzip.compress(content) if self._packed else content)
        return path

    def _line(self, fields: list[Any]) -> str:
        delimiter = self.delimiter or ","
        if delimiter == " ":
            delimiter = self._random.choice((" ", "  ", " \t"))
        written = []
        for field in map(str, fields):
            needed = any(mark in field for mark in (delimiter, '"', "\n", " ")) and self._random.random() < 0.95
            if needed or self._random.random() < self._quotes:
                field = '"' + field.replace('"', '""') + '"'
                if delimiter.strip() and self._random.random() < self._untidy:
                    field = f" {field} "
            elif self._random.random() < self._untidy:
                field = f"{field} "
            written.append(field)
        return delimiter.join(written)

    def _write_parquet(self, path: Path, header: list[str] | None, rows: list[list[Any]]) -> Path:
        columns = []
        for values in zip(*rows, strict=True):
            plain = [None if value == "" else value for value in values]
            if all(isinstance(value, int) for value in plain):
                column = pa.array(plain, self._random.choice((pa.int64(), pa.float64(), pa.int64())))
                small = _fits_32_bits(plain)
                column = column.cast(pa.int32()) if small and self._random.random() < 0.3 else column
            elif all(isinstance(value, int | float | None) for value in plain):
                column = pa.array(plain, pa.float64())
            else:
                column = pa.array([None if value is None else str(value) for value in plain])
                column = column.dictionary_encode() if self._random.random() < 0.3 else column
            columns.append(column)
        names = header or [f"c{k}" for k in range(len(columns))]
        pq.write_table(pa.Table.from_arrays(columns, names), path)
        return path


def _fits_32_bits(values: list[Any]) -> bool:
    return all(abs(value) < 2**31 for value in values)


Outcome = tuple[Data | None, str | None]


def outcome(read: Any) -> Outcome:
    """A graph, or the message of the error that stands for it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return read(), None
    except DataError as error:
        return None, str(error)


def compare(given: dict[str, Any], folder: Path, random: Random) -> str | None:
    """Reads the tables every way; returns the error that all agree on, None for a graph. Raises if they disagree."""
    loaded, message = outcome(lambda: load_graph(**given))
    converted = outcome(lambda: load_graph(convert_graph(**given, out=folder / "whole")))
    if converted[1] != message:
        raise AssertionError(f"load_graph says {message!r}, convert_graph {converted[1]!r}")
    with (
        patch.object(table_files, "BLOCK_BYTES", random.randrange(10, 200)),
        patch.object(table_files, "BLOCK_ROWS", random.randrange(1, 9)),
        patch.object(tables, "BLOCK", random.randrange(1, 9)),
    ):
        batches = outcome(lambda: load_graph(convert_graph(**given, out=folder / "batches")))
    if (batches[1] is None) != (message is None):
        raise AssertionError(f"whole: {message!r}, in batches: {batches[1]!r}")
    if loaded is not None and converted[0] is not None and batches[0] is not None:
        _check_equal(loaded, converted[0])
        _check_equal(loaded, batches[0])
    return message


def _check_equal(one: Data, other: Data) -> None:
    for name in {*one.keys(), *other.keys()} - {"folder"}:
        mine, its = one.get(name), other.get(name)
        if name == "node_ids":
            mine, its = mine.tolist(), its.tolist()
        same = (
            torch.equal(mine, its) if isinstance(mine, torch.Tensor) and isinstance(its, torch.Tensor) else mine == its
        )
        if not same:
            raise AssertionError(f"{name} differs: {mine} and {its}")


def _kind_of(message: str) -> str:
    """A message without names and numbers."""
    return re.sub(r"\d+", "0", re.sub(r"'[^']*'|\"[^\"]*\"|/\S+", "...", message))[:70]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--tables", type=int, default=10_000, help="how many graphs (default: %(default)s)")
    options.add_argument("--seed", type=int, default=0, help="the seed of the first (default: %(default)s)")
    arguments = options.parse_args()
    errors: Counter[str] = Counter()
    failures = graphs = 0
    for number in track(range(arguments.seed, arguments.seed + arguments.tables), "reading tables"):
        folder = Path(tempfile.mkdtemp())
        random = Random(number)
        try:
            message = compare(write_tables(random, folder), folder, random)
            graphs += message is None
            if message is not None:
                errors[_kind_of(message.replace(str(folder), ""))] += 1
        except Exception as error:
            failures += 1
            print(f"seed {number}: {type(error).__name__}: {error}".replace(str(folder), ""))
        shutil.rmtree(folder)
    for kind, count in errors.most_common():
        print(f"{count:6,} {kind}")
    print(f"{graphs:,} graphs alike, {sum(errors.values()):,} errors alike, {failures} failures")


if __name__ == "__main__":
    main()
