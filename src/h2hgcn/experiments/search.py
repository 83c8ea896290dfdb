"""Settings chosen on validation data: candidates are raced, before the winner is trained in full."""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order, connected_components
from torch_geometric.utils import subgraph

from h2hgcn.datasets.on_disk import fingerprint, is_graph
from h2hgcn.errors import DataError
from h2hgcn.experiments.config import Experiment, Layer
from h2hgcn.options import plain_options
from h2hgcn.training.distributed import Ranks
from h2hgcn.training.folder import RunFolder
from h2hgcn.training.race import FAILURES, Candidate, Standing, race

# Edges up to which candidates are trained on the whole graph. For a larger one they are trained on a part of this size.
LARGE = 1 << 15

# Epochs at which half of the candidates are dropped, by the largest number of edges that they are for.
_RUNGS: dict[int, tuple[int, ...]] = {1 << 14: (80, 160), LARGE: (40, 80, 160)}

# The same for a collection of graphs, where an epoch has many steps.
_RUNGS_OF_COLLECTIONS: tuple[int, ...] = (10, 20, 40)

# Called with epochs done, epochs in all, and the name of a candidate.
OnSearch = Callable[[int, int, str], None]


class SearchStopped(Exception):  # noqa: N818  # not an error
    """A search was asked to stop; the same command resumes it."""


@dataclass(frozen=True)
class Search:
    """The result of a search, as ``config.toml`` keeps it."""

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
        """The choice in one line."""
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
    """The best of the experiment's candidates on validation data, and the search that found it.

    An experiment with fewer than two candidates is returned as it is. An interrupted search resumes from its
    checkpoints in ``folder``, also if that holds an older run, which ``force`` was given to replace. Without one, a run
    in ``folder`` keeps its settings. Of several processes, the first one searches.
    """
    ranks = Ranks() if ranks is None else ranks
    names = list(experiment.candidates)
    ranks.check_same(names, lambda first, other: None if first == other else ("candidates", first, other))
    if len(experiment.candidates) < 2:
        return experiment, None
    experiment.task.bind(data)  # raises errors of the data, which are not the candidates' fault
    found = ranks.from_first(lambda: _search(experiment, data, folder, force, on_search, should_stop))
    if found is None:
        raise SearchStopped
    chosen, section = found
    search = None
    if section is not None:
        standings = tuple(Standing(**row) for row in section["candidates"])
        search = Search(section["mode"], chosen, section["key"], standings, section["sampled"])
    return experiment.candidates.get(chosen, experiment), search


def _search(
    experiment: Experiment,
    data: Any,
    folder: Path | None,
    force: bool,
    on_search: OnSearch,
    should_stop: Callable[[], bool],
) -> tuple[str, dict[str, Any] | None] | None:
    """The name of the winner and the search as a dictionary; None if it was stopped.

    A run in the folder keeps its candidate, with its search if that had the same candidates and data.
    """
    candidates = experiment.candidates
    whole = not is_graph(data) or _num_edges(data) <= LARGE
    part = data if whole else connected_part(data, LARGE, experiment.seed)
    rungs = _rungs(experiment, part)
    digests = [(name, one.digest, one.seed) for name, one in candidates.items()]
    key = hashlib.sha256(json.dumps([digests, fingerprint(data), rungs]).encode()).hexdigest()[:16]
    if folder is not None and not (force or has_searched(folder, key)) and (folder / "config.toml").exists():
        section = RunFolder(folder).read_config().get("search", {})
        return section.get("chosen", ""), section if section.get("key") == key else None
    total, done, before, alive = 0, 0, 0, len(candidates)
    for epochs in rungs:  # if all candidates live as long as they may
        total += alive * (epochs - before)
        before, alive = epochs, -(-alive // 2)

    def on_epoch(name: str) -> None:
        nonlocal done
        done += 1
        on_search(done, total, name)

    # batch sizes are meant for the whole graph; a part of it is small
    batches: dict[str, Any] = {} if whole else {"batch_size": "auto", "fanout": None}
    racing = [
        Candidate(name, one.task, one.encoder, replace(one.settings, **batches)) for name, one in candidates.items()
    ]
    with _checkpoints(folder, force, key) as place:
        standings = race(racing, part, experiment.seed, place, rungs, on_epoch, should_stop)
        if standings is None:
            return None
        if standings[0].failed is not None:
            shutil.rmtree(place)  # the same command tries them again
            raise _all_failed(standings, "" if whole else f" on a part of {part.num_nodes:,} nodes")
        for checkpoint in place.glob("*.safetensors"):  # the records tell the result
            checkpoint.unlink()
    chosen = standings[0].name
    return chosen, Search(experiment.search, chosen, key, tuple(standings), not whole).to_dict()


def _all_failed(standings: Sequence[Standing], where: str) -> Exception:
    """The error of candidates that all failed: of their own kind, if that is NaN or memory for all of them."""
    names_of: dict[str, list[str]] = {}
    for standing in standings:
        names_of.setdefault(str(standing.failed), []).append(standing.name)
    reasons = "".join(f"\n  {', '.join(names)}: {reason}" for reason, names in names_of.items())
    errors = {standing.error for standing in standings}
    kind = next((kind for kind in FAILURES if kind is not ValueError and errors == {kind.__name__}), DataError)
    return kind(f"all {len(standings)} candidate settings failed{where}:{reasons}")


def _rungs(experiment: Experiment, data: Any) -> tuple[int, ...]:
    longest = max(one.settings.epochs for one in experiment.candidates.values())
    if experiment.search == "thorough":
        return (longest,)
    rungs = _RUNGS_OF_COLLECTIONS
    if is_graph(data):
        size = _num_edges(data)
        rungs = next((rungs for edges, rungs in _RUNGS.items() if size <= edges), _RUNGS[max(_RUNGS)])
    return tuple(min(epochs, longest) for epochs in rungs)


@contextmanager
def _checkpoints(folder: Path | None, force: bool, key: str) -> Iterator[Path]:
    """The folder of a search's checkpoints and records: in the run's folder, or a temporary one without that."""
    if folder is None:
        with tempfile.TemporaryDirectory() as scratch:
            yield Path(scratch)
        return
    run = RunFolder(folder)
    with run.locked():
        place = run.search / key
        if force or not place.exists():
            shutil.rmtree(run.search, ignore_errors=True)
        place.mkdir(parents=True, exist_ok=True)
        yield place


def has_searched(folder: Path | None, key: str) -> bool:
    """Whether a folder holds a search that was started there and has not become a run yet."""
    return folder is not None and (RunFolder(folder).search / key).exists()


def settings_layer(experiment: Experiment, origin: str) -> Layer:
    """All settings of an experiment, as if a file had given them."""
    return Layer(origin, {name: plain_options(options) for name, options in experiment.sections.items()})


def connected_part(data: Any, num_edges: int, seed: int) -> Any:
    """A subgraph with at most about ``num_edges`` edges: the components of random nodes, the last one cut off.

    Nodes drawn at random would have hardly any edges between them. The last component is cut off breadth first.
    """
    count, ends = int(data.num_nodes), data.edge_index.numpy()
    graph = coo_array((np.ones(ends.shape[1], np.int8), tuple(ends)), shape=(count, count)).tocsr()
    wanted = num_edges * _entries_per_edge(data)
    component = connected_components(graph, directed=False)[1]
    starts = np.random.RandomState(seed).permutation(np.unique(ends))
    first = np.sort(np.unique(component[starts], return_index=True)[1])  # one start in each component
    found = component[starts[first]]
    entries = np.bincount(component[ends[0]], minlength=count)[found].cumsum()
    whole = int(np.searchsorted(entries, wanted, side="right"))
    chosen = np.isin(component, found[:whole])
    left = wanted - int(entries[whole - 1] if whole else 0)
    if left and whole < len(found):
        order = breadth_first_order(graph, starts[first[whole]], directed=False, return_predecessors=False)
        place = np.full(count, count)
        place[order] = np.arange(len(order))
        # an edge is in the part once the later of its ends is
        known = np.bincount(place[ends].max(axis=0), minlength=count + 1)[: len(order)].cumsum()
        chosen[order[: max(int(np.searchsorted(known, left, side="right")), 2)]] = True
    return _induced(data, torch.from_numpy(np.flatnonzero(chosen)))


def _num_edges(data: Any) -> int:
    return int(data.edge_index.shape[1]) // _entries_per_edge(data)


def _entries_per_edge(data: Any) -> int:
    """How often ``edge_index`` holds an edge: an undirected one in both directions."""
    return 1 if getattr(data, "directed", False) else 2


def _induced(data: Any, nodes: torch.Tensor) -> Any:
    count, part = int(data.num_nodes), copy(data)
    weight = getattr(data, "edge_weight", None)
    part.edge_index, weight = subgraph(nodes, data.edge_index, weight, relabel_nodes=True, num_nodes=count)
    if weight is not None:
        part.edge_weight = weight
    for name, value in data.to_dict().items():
        of_nodes = isinstance(value, torch.Tensor) and value.shape[:1] == (count,)
        if of_nodes and name not in ("edge_index", "edge_weight"):
            sparse = value.layout != torch.strided  # not all sparse layouts can be indexed
            part[name] = value.to_sparse_coo().index_select(0, nodes) if sparse else value[nodes]
    part.num_nodes = len(nodes)
    if getattr(data, "node_ids", None) is not None:
        part.node_ids = np.asarray(data.node_ids)[nodes.numpy()]
    return part
