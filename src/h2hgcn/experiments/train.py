"""From a graph and settings to a run: ``h2hgcn.train``, and what it shares with the command line."""

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from os import PathLike, fspath
from os.path import expanduser
from pathlib import Path
from typing import Any

from torch_geometric.data import Data, Dataset
from torch_geometric.utils import is_undirected

from h2hgcn.datasets import load_graph, load_graphs
from h2hgcn.datasets.collection import GraphList, as_collection
from h2hgcn.datasets.edges import num_nodes_of
from h2hgcn.datasets.nodes import add_structural_features
from h2hgcn.errors import DataError, DataWarning
from h2hgcn.experiments.config import Experiment, GraphChoice, open_graph, place_of, read_experiment, sections_of
from h2hgcn.experiments.presets import Sections
from h2hgcn.experiments.search import OnSearch, Search, choose_settings, has_searched
from h2hgcn.tasks.checks import check_edges
from h2hgcn.training import Run, fit
from h2hgcn.training.distributed import joined_ranks
from h2hgcn.training.loggers import Logger, Loggers
from h2hgcn.training.loop import EpochReport, TrainingState

# Seconds from one line of progress to the next.
_QUIET_SECONDS = 2.0


def train(
    data: Any = None,
    task: str | None = None,
    *,
    features: Any = None,
    labels: Any = None,
    weights: Any = None,
    directed: bool | None = None,
    columns: tuple[str, str] | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    comment: str | None = None,
    unlinked: str | None = None,
    root: str | PathLike[str] | None = None,
    model: str | None = None,
    dim: int | None = None,
    layers: int | None = None,
    epochs: int | None = None,
    lr: float | None = None,
    batch_size: int | str | None = None,
    fanout: str | Sequence[int] | None = None,
    workers: int | None = None,
    closure: bool | None = None,
    protocol: str | None = None,
    seed: int | None = None,
    device: str | None = None,
    search: str = "auto",
    settings: Mapping[str, Any] | None = None,
    config: str | PathLike[str] | None = None,
    out: str | PathLike[str] | None = None,
    final: bool = False,
    force: bool = False,
    tensorboard: bool = False,
    loggers: str | Logger | Sequence[str | Logger] = (),
    verbose: bool = False,
) -> Run:
    """Trains a model on a graph, as ``h2hgcn train`` does with the same options.

    >>> run = h2hgcn.train("my.csv")
    >>> run.recommend("ann", k=10).to_pandas()

    Args:
        data: A file of edges, a folder of graphs, the name of a dataset, or anything that ``load_graph`` takes: a
            DataFrame, a networkx graph, a SciPy matrix, a list of pairs, an ``edge_index``. A PyG ``Data`` is used as
            it is; a copy gets structural features if it has no ``x``, and ``directed`` if its edges go one way. A list
            of ``Data`` or a PyG dataset is a collection. None: the graph of ``config``, or the built-in tree.
        task: ``"lp"`` (links), ``"nc"`` (classes of nodes), ``"gc"`` (classes of graphs) or ``"embed"`` (distances
            that reconstruct all links). Default: ``"lp"``, or ``"gc"`` for a collection.
        closure: With ``task="embed"``, whether to embed the transitive closure of a hierarchy.
        features, labels, weights, directed, columns, header, delimiter, comment, unlinked: As for ``load_graph``.
        root: The folder of named datasets.
        model, dim, layers, epochs, lr, batch_size, fanout, workers, protocol, seed, device: As the flags of
            ``h2hgcn train``. None takes the tuned settings of a named dataset, or else the defaults for any graph.
        search: How settings are chosen on validation data: ``"fast"`` (a race of candidates, about a minute),
            ``"thorough"`` (each is trained in full), or ``"none"``. ``"auto"`` is ``"none"`` for graphs with tuned
            settings and where ``config`` gives settings, else ``"fast"``.
        settings: Any other setting by name, such as ``{"model.dropout": 0.5}``; the same as ``--set``.
        config: A TOML file of settings, such as the ``config.toml`` of a run.
        out: The folder of the run, which is resumed or loaded if it is there. None writes nothing.
        final: Whether to train the same settings again on all data; ``run.final`` is the result, see ``Run.finalize``.
        force: Whether a run in ``out`` may be replaced.
        tensorboard: Whether curves for TensorBoard are written to ``out``.
        loggers: Where else curves go: ``"tensorboard"``, ``"wandb"``, ``"mlflow"``, a ``Logger`` of your own, or
            several of these. They get the run itself, not the candidates of a search.
        verbose: Whether to print progress.

    Notes on the data and on the result, which the command line prints, are ``DataWarning``.
    """
    text = {"directed": directed, "header": header, "delimiter": delimiter, "comment": comment}
    attributes = {"features": features, "labels": labels, "weights": weights}
    graph, loaded = _described(data, attributes, columns, unlinked, text)
    flags = sections_of(
        graph, settings, seed, search, task=task, closure=closure, protocol=protocol, model=model, dim=dim,
        layers=layers, epochs=epochs, lr=lr, device=device, batch_size=batch_size, fanout=_joined(fanout, int),
        workers=workers,
    )  # fmt: skip
    choice = None if loaded is None else GraphChoice({"memory": True}, loaded=loaded)
    experiment = read_experiment(flags, _path(config), choice, "train()")
    if final:
        experiment.check_final()
    opened = open_graph(experiment.graph, _path(root))
    note = experiment.task.warning(opened) if hasattr(experiment.task, "warning") else None
    if note is not None:
        warnings.warn(note, DataWarning, stacklevel=2)
    progress = _Progress(experiment) if verbose else None

    def on_chosen(search: Search) -> None:
        if verbose:
            print(search.summary)
        for note in search.notes:
            warnings.warn(note, DataWarning, stacklevel=2)

    run = run_experiment(
        experiment, opened, _path(out), force=force, tensorboard=tensorboard, loggers=loggers,
        on_plan=print if verbose else None, on_epoch=progress, on_chosen=on_chosen,
    )  # fmt: skip
    if final and run.finished:
        run.finalize(None if out is None else Path(expanduser(out)) / "final", force=force)
    if verbose:
        print(run)
    for doubt in run.result.get("doubts", ()):
        warnings.warn(doubt, DataWarning, stacklevel=2)
    return run


def run_experiment(
    experiment: Experiment,
    data: Any,
    folder: Path | None = None,
    *,
    force: bool = False,
    tensorboard: bool = False,
    loggers: str | Logger | Sequence[str | Logger] = (),
    on_plan: Callable[[str], None] | None = None,
    on_epoch: Callable[[EpochReport, TrainingState], None] | None = None,
    on_search: OnSearch = lambda done, total, name: None,
    on_chosen: Callable[[Search], None] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Run:
    """Trains what ``read_experiment`` has read on what ``open_graph`` has opened, as ``fit`` does.

    If the experiment has candidates, the best on validation data is found first: ``on_search`` is called after every
    epoch of that, ``on_chosen`` at its end, and ``SearchStopped`` is raised if it was stopped.
    """
    Loggers(loggers, folder, tensorboard)  # one that is missing should not be noticed after the search
    with joined_ranks(experiment.settings.torch_device()) as ranks:
        chosen, search = choose_settings(experiment, data, folder, force, ranks, on_search, should_stop)
        if search is not None and on_chosen is not None:
            on_chosen(search)
        # a search in the folder of an older run was started with force, even if this call only resumed it
        replaces = force or (search is not None and has_searched(folder, search.key))
        return fit(
            chosen.task, data, chosen.encoder, seed=chosen.seed, settings=chosen.settings, folder=folder,
            force=replaces, source=chosen.graph.options, search=None if search is None else search.to_dict(),
            tensorboard=tensorboard, loggers=loggers, on_plan=on_plan, on_epoch=on_epoch, should_stop=should_stop,
        )  # fmt: skip


def _described(
    data: Any, attributes: dict[str, Any], columns: tuple[str, str] | None, unlinked: Any, text: dict[str, Any]
) -> tuple[Sections, Any]:
    """A graph as the command line describes it, which ``config.toml`` can keep, or else loaded."""
    if columns is not None and (isinstance(columns, str) or len(columns) != 2):
        raise DataError(f"columns={columns!r}: name two, such as columns=('source', 'target')")
    ends = {} if columns is None else {"source": str(columns[0]), "target": str(columns[1])}
    texts = {**attributes, "features": _joined(attributes["features"], str)}
    texts |= {name: "none" for name in ("features", "weights") if attributes[name] is False}
    options = {**texts, **text, "unlinked": unlinked, **ends}
    options = {name: value for name, value in options.items() if value is not None}
    if isinstance(data, str | PathLike) or data is None:
        place = {} if data is None else place_of(data)
        if all(value is None or isinstance(value, str | PathLike) for value in texts.values()):
            described = {name: fspath(value) if name in texts else value for name, value in options.items()}
            return {**place, **described}, None
        if "edges" not in place and "graphs" not in place:
            named = "pass its edges, too" if data is None else f"{data} is a named dataset"
            raise DataError(f"{', '.join(options)}: only for a graph of your own; {named}")
        if "graphs" in place:
            if unlinked is not None:
                raise DataError(f"unlinked={unlinked!r}: only for one graph, not for {data}")
            return {}, load_graphs(place["graphs"], columns=columns, **attributes, **text)
        data = place["edges"]
    graphs = as_collection(data)
    if isinstance(graphs, Dataset) and len(graphs) == 1:
        graphs = graphs[0]
    if isinstance(graphs, Data | Dataset | GraphList) and not options:
        return {}, _completed(graphs) if isinstance(graphs, Data) else graphs
    if isinstance(graphs, Dataset | GraphList):
        raise DataError(f"{', '.join(options)}: not for a list of graphs; set what they have, such as y, on each Data")
    return {}, load_graph(graphs, columns=columns, **attributes, **text, unlinked=unlinked or "error")


def _completed(graph: Data) -> Data:
    """The graph itself; a copy with ``x`` if it has none, or ``directed`` if edges go one way and it is not set."""
    given, graph = graph, copy(graph)
    graph.num_nodes = num_nodes_of(graph)
    check_edges(graph, "the PyG graph")
    if getattr(graph, "directed", None) is None:
        graph.directed = not is_undirected(graph.edge_index, graph.edge_weight, graph.num_nodes)
    if graph.x is not None:
        return graph if graph.directed and getattr(given, "directed", None) is None else given
    note = add_structural_features(graph)
    graph.notes = [*(getattr(graph, "notes", None) or ()), note]
    warnings.warn(f"the PyG graph: {note}", DataWarning, stacklevel=4)
    return graph


def _joined(values: Any, kind: type) -> Any:
    """Several names or numbers as a command line has them: ``a,b``; anything else as it is."""
    several = isinstance(values, list | tuple) and all(isinstance(value, kind) for value in values)
    return ",".join(map(str, values)) if several else values


def _path(given: str | PathLike[str] | None) -> Path | None:
    return None if given is None else Path(expanduser(given))


class _Progress:
    """Prints an epoch every few seconds, and the last one."""

    def __init__(self, experiment: Experiment) -> None:
        print(f"{experiment.model_name} for {experiment.task.name} on {experiment.graph.name}")
        self._epochs = experiment.settings.epochs
        self._last = 0.0
        self._best = ""

    def __call__(self, report: EpochReport, state: TrainingState) -> None:
        if report.val is not None:
            self._best = f", best validation {report.selection} {state.best[report.selection]:.4f}"
        if report.epoch == self._epochs or time.monotonic() - self._last > _QUIET_SECONDS:
            print(f"epoch {report.epoch}/{self._epochs}: loss {report.loss:.4f}{self._best}")
            self._last = time.monotonic()
