"""Settings that choose themselves: a race of candidates on validation data, before the winner is trained in full."""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order
from torch_geometric.utils import subgraph

from h2hgcn.datasets.graph_file import fingerprint, is_graph
from h2hgcn.experiments.config import Experiment
from h2hgcn.experiments.sections import Layer
from h2hgcn.options import plain_options
from h2hgcn.training.folder import RunFolder
from h2hgcn.training.race import Candidate, Standing, race
from h2hgcn.training.ranks import Ranks

# Edges up to which candidates are trained on the whole graph; of a larger one they see a connected part of this size.
LARGE = 1 << 15

# Epochs that candidates have, by the number of edges that they are trained on; half of them go from one to the next.
_RUNGS: dict[int, tuple[int, ...]] = {1 << 14: (80, 160), LARGE: (40, 80)}

# The same for a collection of graphs, of which an epoch has many steps.
_RUNGS_OF_COLLECTIONS: tuple[int, ...] = (10, 20, 40)

# Nodes at most from which a part of a graph is grown.
_STARTS = 100

# Called with epochs done, epochs in all, and the name of a candidate.
OnSearch = Callable[[int, int, str], None]


class SearchStopped(Exception):  # noqa: N818  # not an error
    """A search was asked to stop; the same command resumes it."""


@dataclass(frozen=True)
class Search:
    """What a search has led to, as ``config.toml`` keeps it."""

    mode: str
    chosen: str
    key: str
    standings: tuple[Standing, ...]
    sampled: bool = False

    def to_dict(self) -> dict[str, Any]:
        rows = [{k: v for k, v in asdict(standing).items() if v is not None} for standing in self.standings]
        return {"mode": self.mode, "chosen": self.chosen, "key": self.key, "sampled": self.sampled, "candidates": rows}

    @property
    def summary(self) -> str:
        """The choice in a line."""
        first, *others = self.standings
        second = next((f", next {one.name} {one.score:.4f}" for one in others if one.score is not None), "")
        where = " on a part of the graph" if self.sampled else ""
        count = len(self.standings)
        return f"settings: {self.chosen}, best of {count} on validation data{where} ({first.score:.4f}{second})"

    @property
    def notes(self) -> list[str]:
        """One sentence for each candidate that failed."""
        failed = [standing for standing in self.standings if standing.failed is not None]
        return [f"the settings {standing.name!r} were skipped: {standing.failed}" for standing in failed]


def choose_settings(
    experiment: Experiment,
    data: Any,
    folder: Path | None = None,
    force: bool = False,
    ranks: Ranks | None = None,
    on_search: OnSearch = lambda done, total, name: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> tuple[Experiment, Search | None]:
    """The best of the experiment's candidates on validation data, and how it was found; without any, the experiment.

    A search that was interrupted resumes from its checkpoints in ``folder``; the choice of a run that has begun there
    stands. Of several processes the first one searches.
    """
    if len(experiment.candidates) < 2:
        return experiment, None
    ranks = Ranks() if ranks is None else ranks
    experiment.task.bind(data)  # what is wrong with the data is no fault of a candidate
    begun, search = ranks.from_first(lambda: _search(experiment, data, folder, force, on_search, should_stop))
    if search is not None:
        return experiment.candidates[search.chosen], search
    if begun is None:
        raise SearchStopped
    return experiment.candidates.get(begun, experiment), None


def _search(
    experiment: Experiment,
    data: Any,
    folder: Path | None,
    force: bool,
    on_search: OnSearch,
    should_stop: Callable[[], bool],
) -> tuple[str | None, Search | None]:
    """A search; or else the name of what to train without one, which is going to fail: all candidates did, or the
    folder has a run with other candidates, data or seed; or nothing, if the search was stopped.
    """
    candidates = experiment.candidates
    whole = not is_graph(data) or data.edge_index.shape[1] <= 2 * LARGE
    part = data if whole else connected_part(data, LARGE, experiment.seed)
    rungs = _rungs(experiment, part)
    key = _key(candidates, data, rungs)
    if folder is not None and not force and (folder / "config.toml").exists():
        section = RunFolder(folder).read_config().get("search", {})
        return section.get("chosen", ""), _known(section, key)
    total, done = _total(len(candidates), rungs), 0

    def on_epoch(name: str) -> None:
        nonlocal done
        done += 1
        on_search(done, total, name)

    # batches are for the whole graph; a part of it is small
    batches: dict[str, Any] = {} if whole else {"batch_size": "auto", "fanout": None}
    racing = [
        Candidate(name, one.task, one.encoder, replace(one.settings, **batches)) for name, one in candidates.items()
    ]
    with _workplace(folder, force, key) as place:
        standings = race(racing, part, experiment.seed, place, rungs, on_epoch, should_stop)
        if standings is None:
            return None, None
    if standings[0].failed is not None:  # training says why
        return standings[0].name, None
    return None, Search(experiment.search, standings[0].name, key, tuple(standings), not whole)


def _rungs(experiment: Experiment, data: Any) -> tuple[int, ...]:
    longest = max(one.settings.epochs for one in experiment.candidates.values())
    if experiment.search == "thorough":
        return (longest,)
    if is_graph(data):
        size = data.edge_index.shape[1] // 2
        rungs = next((rungs for edges, rungs in _RUNGS.items() if size <= edges), _RUNGS[max(_RUNGS)])
    else:
        rungs = _RUNGS_OF_COLLECTIONS
    return tuple(min(epochs, longest) for epochs in rungs)


def _total(count: int, rungs: tuple[int, ...]) -> int:
    """Epochs of a race in which all candidates live as long as they may."""
    total, before = 0, 0
    for epochs in rungs:
        total += count * (epochs - before)
        before, count = epochs, -(-count // 2)
    return total


def _key(candidates: dict[str, Experiment], data: Any, rungs: tuple[int, ...]) -> str:
    """A hash of everything that the choice depends on."""
    digests = [(name, one.digest, one.seed) for name, one in candidates.items()]
    return hashlib.sha256(json.dumps([digests, fingerprint(data), rungs]).encode()).hexdigest()[:16]


def _known(section: dict[str, Any], key: str) -> Search | None:
    """The search that ``config.toml`` tells of, if it had the same candidates and data."""
    if section.get("key") != key:
        return None
    standings = tuple(Standing(**row) for row in section["candidates"])
    return Search(section["mode"], section["chosen"], key, standings, section["sampled"])


@contextmanager
def _workplace(folder: Path | None, force: bool, key: str) -> Iterator[Path]:
    """A folder for checkpoints: within the run's, where an interrupted search is found again, or a temporary one."""
    if folder is None:
        with tempfile.TemporaryDirectory() as scratch:
            yield Path(scratch)
        return
    run = RunFolder(folder)
    with run.locked():
        place = folder / ".search" / key
        if force or not place.exists():
            shutil.rmtree(folder / ".search", ignore_errors=True)
        place.mkdir(parents=True, exist_ok=True)
        yield place


def forget_search(folder: Path) -> None:
    """Deletes the checkpoints of a search that is over."""
    shutil.rmtree(folder / ".search", ignore_errors=True)


def settings_layer(experiment: Experiment, origin: str) -> Layer:
    """All settings of an experiment, as if a file had given them."""
    sections = {
        "task": asdict(experiment.task),
        "model": experiment.model_options,
        "training": asdict(experiment.settings),
    }
    return Layer(origin, {name: plain_options(options) for name, options in sections.items()})


def connected_part(data: Any, num_edges: int, seed: int) -> Any:
    """The subgraph of nodes around random ones, breadth first, with about ``num_edges`` edges.

    Nodes drawn at random would have hardly any edges between them.
    """
    count, ends = int(data.num_nodes), data.edge_index.numpy()
    graph = coo_array((np.ones(ends.shape[1], np.int8), tuple(ends)), shape=(count, count)).tocsr()
    wanted = num_edges if getattr(data, "directed", False) else 2 * num_edges
    place, reached = np.full(count, count), 0
    starts = np.random.RandomState(seed).permutation(np.unique(ends))
    for start in starts[:_STARTS]:
        if place[start] < count:
            continue
        order = breadth_first_order(graph, start, directed=False, return_predecessors=False)
        order = order[place[order] == count]
        place[order] = reached + np.arange(len(order))
        reached += len(order)
        # an edge is there once the later of its ends is
        known = np.bincount(place[ends].max(axis=0), minlength=count + 1)[:reached].cumsum()
        if known[-1] >= wanted:
            break
    size = int(np.searchsorted(known, wanted, side="right"))
    return _induced(data, torch.from_numpy(np.flatnonzero(place < max(size, 2))))


def _induced(data: Any, nodes: torch.Tensor) -> Any:
    count = int(data.num_nodes)
    part = copy(data)
    weight = getattr(data, "edge_weight", None)
    part.edge_index, weight = subgraph(nodes, data.edge_index, weight, relabel_nodes=True, num_nodes=count)
    if weight is not None:
        part.edge_weight = weight
    for name, value in data.to_dict().items():
        if (
            name not in ("edge_index", "edge_weight")
            and isinstance(value, torch.Tensor)
            and value.shape[:1] == (count,)
        ):
            part[name] = value[nodes]
    part.num_nodes = len(nodes)
    if getattr(data, "node_ids", None) is not None:
        part.node_ids = np.asarray(data.node_ids)[nodes.numpy()]
    return part
