"""The paper's tables as data: TOML files of rows, columns and reported numbers."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any

from h2hgcn.errors import DataError
from h2hgcn.experiments.config import Chosen, Sections, chosen_from, find_preset, merged
from h2hgcn.options import suggestion

TABLES = ("table1", "table2", "table3", "table4", "ablations")


@dataclass(frozen=True)
class Column:
    """A graph and a task. ``protocols`` are the splits that stand for the paper's (legacy) and a clean protocol.

    ``tried`` is a remark on what was tried to reach the paper's number. With ``other_task`` the data are not those of
    the paper.
    """

    id: str
    title: str
    metric: str
    protocols: Mapping[str, str]
    settings: Sections
    folds: int = 0
    highest: float | None = None
    note: str = ""
    tried: str = ""
    other_task: bool = False


@dataclass(frozen=True)
class Row:
    """A model, and what the paper (or ``source``) reports of it in each column, in per cent.

    ``settings`` make it a variant of the model, which needs an ``id`` of its own; ``columns`` and ``protocols`` are
    those that it is for, all if there are none. ``by_column`` has the settings of single columns, where the model was
    tuned for each, and ``chosen`` how they were chosen. ``choices`` has other settings for columns with folds: each
    fold chooses one of them, or those without, on its own validation part.
    """

    model: str
    title: str
    id: str = ""
    settings: Sections = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ()
    by_column: Mapping[str, Sections] = field(default_factory=dict)
    chosen: tuple[Chosen, ...] = ()
    choices: Mapping[str, Sequence[Sections]] = field(default_factory=dict)
    paper: Mapping[str, float] = field(default_factory=dict)
    source: str = "Dai et al. 2021"

    @property
    def name(self) -> str:
        return self.id or self.model

    def settings_for(self, column: Column) -> list[Sections]:
        """The settings that a run may have, all but one of which are ``choices``."""
        own = merged(self.settings, self.by_column.get(column.id, {}))
        return [own, *(merged(own, choice) for choice in self.choices.get(column.id, ()))]

    def chosen_for(self, column: Column, protocol: str) -> tuple[Chosen, ...]:
        """How the settings of a cell were chosen; nothing for a variant of a model, which has those of the model."""
        if self.settings:
            return ()
        if column.id in self.by_column:
            return self.chosen
        data, task = column.settings["data"], column.settings["task"]
        return find_preset(data["dataset"], task["name"], self.model, protocol).chosen

    def has(self, column: Column) -> bool:
        return not self.columns or column.id in self.columns

    def is_for(self, protocol: str) -> bool:
        return not self.protocols or protocol in self.protocols


@dataclass(frozen=True)
class PaperTable:
    """Rows and columns; ``notes`` are what a reader has to know before comparing its rows, for each protocol."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: Mapping[str, str] = field(default_factory=dict)

    @property
    def protocols(self) -> tuple[str, ...]:
        """The protocols that some column has."""
        known = [name for column in self.columns for name in column.protocols]
        return tuple(dict.fromkeys(known))

    def column(self, name: str) -> Column:
        return _named(name, {column.id: column for column in self.columns}, f"{self.name} has no column")

    def row(self, name: str) -> Row:
        return _named(name, {row.name: row for row in self.rows}, f"{self.name} has no row")

    def part(self, columns: Sequence[str] = (), rows: Sequence[str] = ()) -> "PaperTable":
        """The table with these columns and rows alone; all, if none are named. Rows that are named are for all
        protocols.
        """
        chosen = tuple(self.column(name) for name in dict.fromkeys(columns)) or self.columns
        named = tuple(replace(self.row(name), protocols=()) for name in dict.fromkeys(rows))
        return replace(self, columns=chosen, rows=named or self.rows)


def paper_table(name: str) -> PaperTable:
    """A table by its name."""
    if name not in TABLES:
        raise DataError(f"there is no {name!r}; there are: {', '.join(TABLES)}")
    text = (files(__name__) / f"{name}.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    return PaperTable(
        name,
        table["title"],
        tuple(Column(**column) for column in table["columns"]),
        tuple(Row(**{**row, "chosen": chosen_from(row.get("chosen", []))}) for row in table["rows"]),
        table.get("notes", {}),
    )


def _named(name: str, known: Mapping[str, Any], problem: str) -> Any:
    if name not in known:
        raise DataError(f"{problem} {name!r}; {suggestion(name, known)}")
    return known[name]
