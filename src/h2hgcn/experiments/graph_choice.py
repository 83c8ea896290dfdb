"""Which graph is meant, and which tasks it is for."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from h2hgcn.datasets import DATASETS, load_dataset
from h2hgcn.datasets.graph_file import fingerprint, is_graph
from h2hgcn.datasets.own.by_text import has_split, load_graph_by_text
from h2hgcn.datasets.own.graphs import load_graphs_by_text
from h2hgcn.datasets.splits.nodes import brings_split
from h2hgcn.errors import DataError, DataWarning
from h2hgcn.experiments.sections import Layer
from h2hgcn.options import suggestion

DEFAULT_DATASET = "disease"

_OPTIONS: dict[str, Any] = {
    "dataset": str, "edges": str, "graphs": str, "features": str, "labels": str, "weights": str, "directed": bool,
    "source": str, "target": str, "header": bool, "unlinked": str, "without_feature": int,
    "fingerprint": str, "memory": bool,
}  # fmt: skip
_RECORDS = ("fingerprint", "memory")
# What names the data; a layer that has one of these starts anew.
_PLACES = ("dataset", "edges", "graphs")
# What a collection of graphs in files has no use for.
_ONE_GRAPH = ("unlinked", "without_feature")


@dataclass(frozen=True)
class GraphChoice:
    """``options`` is what ``config.toml`` keeps; ``fingerprint`` is that of the data of the run that it comes from.

    ``loaded`` is a graph or a collection from memory, which no options can describe.
    """

    options: dict[str, Any]
    fingerprint: str | None = None
    loaded: Any = field(default=None, compare=False, repr=False)

    @property
    def dataset(self) -> str | None:
        """The name of a named dataset."""
        return self.options.get("dataset")

    @property
    def name(self) -> str:
        """A short name, for folders and titles."""
        if self.loaded is not None:
            return str(getattr(self.loaded, "name", None) or "graph")
        if "graphs" in self.options:
            return Path(self.options["graphs"]).name or "graphs"
        return self.dataset or Path(self.options["edges"]).name.split(".")[0] or "graph"

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that it is for, the default first."""
        if "graphs" in self.options or (self.loaded is not None and not is_graph(self.loaded)):
            return ("gc",)
        tasks = ("lp", "nc") if self.dataset is None else DATASETS[self.dataset].tasks
        tasks = tasks if "gc" in tasks else (*tasks, "embed")
        return tuple(sorted(tasks, key=lambda task: task != "lp"))

    def with_direction(self) -> "GraphChoice":
        """The same graph, whose edges have a direction unless it was said that they have none."""
        return (
            self
            if self.dataset or self.loaded is not None
            else replace(self, options={"directed": True, **self.options})
        )

    def protocol(self, task: str) -> str | None:
        """The split that goes with the graph, if it is not the task's own default: the published one of a named
        dataset, or one of nodes that a graph of your own brings along.
        """
        if self.dataset is not None:
            return DATASETS[self.dataset].protocols.get(task)
        return "given" if task == "nc" and self._brings_split() else None

    def _brings_split(self) -> bool:
        if self.loaded is not None:
            return brings_split(self.loaded)
        return has_split(self.options.get("edges"), self.options.get("labels"))


def open_graph(choice: GraphChoice, root: Path | None = None) -> Any:
    """The graph or collection; a warning says if it is not what the configuration was written for."""
    if choice.loaded is not None:
        return choice.loaded
    options = {name: value for name, value in choice.options.items() if name != "without_feature"}
    if choice.dataset is not None:
        data = load_dataset(choice.dataset, root)
    else:
        data = load_graphs_by_text(**options) if "graphs" in options else load_graph_by_text(**options)
    if "without_feature" in choice.options:
        _leave_out(data, choice.options["without_feature"])
    if choice.fingerprint not in (None, fingerprint(data)):
        note = f"{choice.name} is not what the configuration was written for: its data differ, and so will the result"
        warnings.warn(note, DataWarning, stacklevel=2)
    return data


def _leave_out(data: Any, number: int) -> None:
    """Drops one column of the features, counted from 1."""
    width = data.x.shape[1]
    if not 1 <= number <= width:
        raise DataError(f"without_feature={number}: the features are numbered from 1 to {width}")
    kept = [column for column in range(width) if column != number - 1]
    data.x = data.x[:, kept]
    if getattr(data, "feature_names", None) is not None:
        data.feature_names = [data.feature_names[column] for column in kept]


def choose_graph(layers: Sequence[Layer]) -> GraphChoice:
    """The graph of the last layer that names one, with what that and later layers say of it."""
    chosen: dict[str, Any] = {}
    for layer in layers:
        given = layer.options("data", _OPTIONS)
        places = [name for name in _PLACES if name in given]
        if len(places) > 1:
            named = " and ".join(f"the {name} {given[name]!r}" for name in places[:2])
            raise DataError(f"{layer.origin}: {named} are both given; choose one")
        if given.get("memory"):
            raise DataError(
                f"{layer.origin}: the data of that run came from memory, not from files; run it again from Python"
            )
        if "dataset" in given:
            given["dataset"] = _known(given["dataset"], layer.origin)
        chosen = given if places else {**chosen, **given}
        _check_own(chosen, layer.origin)
    chosen = chosen or {"dataset": DEFAULT_DATASET}
    options = {name: value for name, value in chosen.items() if name not in _RECORDS}
    return GraphChoice(options, chosen.get("fingerprint"))


def _known(name: str, origin: str) -> str:
    if name.lower() not in DATASETS:
        raise DataError(f"{origin}: {name!r} is not a named dataset; {suggestion(name.lower(), DATASETS)}")
    return name.lower()


def _check_own(chosen: dict[str, Any], origin: str) -> None:
    """Files and columns belong to a graph of one's own."""
    if "graphs" in chosen and any(name in chosen for name in _ONE_GRAPH):
        raise DataError(f"{origin}: {', '.join(_ONE_GRAPH)}: only for one graph, not for {chosen['graphs']}")
    others = [name for name in chosen if name not in (*_PLACES, "without_feature", *_RECORDS)]
    if others and "edges" not in chosen and "graphs" not in chosen:
        named = f"{chosen['dataset']} is a named dataset" if "dataset" in chosen else "name its edges, too"
        raise DataError(f"{origin}: {', '.join(others)}: only for a graph of your own; {named}")
