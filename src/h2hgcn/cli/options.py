"""The flags that commands share, each defined once."""

import inspect
from collections.abc import Callable, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

Given = dict[str, Any]


def _flag(text: str, *names: str, kind: Any = str | None, panel: str | None = None, **options: Any) -> Any:
    return Annotated[kind, typer.Option(*names, help=text, rich_help_panel=panel, **options)]


_graph = partial(_flag, panel="Graph")
_training = partial(_flag, panel="Model and training")

# How the file of a graph is read, whatever names it.
_READING: Given = {
    "features": _graph(
        "Features: a file with a node id and numbers, or with the columns id, feature, value; .npy/.npz; or node "
        "attributes a,b,c."
    ),
    "labels": _graph(
        "Labels: a file with an id (of a node or graph), a label and an optional column split (train, val, test); "
        ".npy/.npz; or a node attribute."
    ),
    "weights": _graph("Column of edge weights; 'none' for no weights."),
    "directed": _graph(
        "Whether edges are directed. Default: as the file says.", "--directed/--undirected", kind=bool | None
    ),
    "source": _graph("Column of edge sources."),
    "target": _graph("Column of edge targets."),
    "header": _graph(
        "Whether the edges file has a header. Default: detected.", "--header/--no-header", kind=bool | None
    ),
    "delimiter": _graph("Delimiter of text files: a character, tab or space. Default: detected."),
    "comment": _graph("How comment lines of text files start; 'none' for no comments.", show_default="#"),
    "unlinked": _graph(
        "Nodes that have features or labels but no edge.",
        kind=Literal["error", "keep", "drop"] | None,
        show_default="error",
    ),
}
_GRAPH: Given = {
    "dataset": _graph("A named dataset; see h2hgcn datasets."),
    "edges": _graph(
        "Edges of your graph: CSV, Parquet, NPZ, GraphML, GEXF, MatrixMarket, .h5ad, or a folder of h2hgcn convert."
    ),
    "graphs": _graph("Folder of graphs to classify: one file per graph (any format of --edges), or a TU dataset."),
    **_READING,
}
_SETTINGS: Given = {
    "task": _flag(
        "Link prediction, node or graph classification, or embedding of distances. Default: lp, or gc for a "
        "collection of graphs.",
        kind=Literal["lp", "nc", "gc", "embed"] | None,
    ),
    "model": _flag("The encoder; see h2hgcn models.", show_default="h2h-gcn"),
    "dim": _training("Dimension of the embedding space.", kind=int | None),
    "layers": _training("Number of convolutions.", kind=int | None),
    "epochs": _training("Largest number of epochs.", kind=int | None),
    "lr": _training("Learning rate.", kind=float | None),
    "batch_size": _training("Links or nodes per step, auto or full.", show_default="auto"),
    "fanout": _training("Neighbors sampled at each hop, such as 15,10.", show_default="15,10,5,..."),
    "workers": _training("Threads that prepare batches.", kind=int | None, show_default="0"),
    "closure": _training(
        "With --task embed: embed the transitive closure of a hierarchy.", "--closure", kind=bool | None
    ),
    "protocol": _training("How data are split: clean, legacy, planetoid, given, ..."),
    "device": _training("cpu, cuda, or auto: CUDA if there.", show_default="auto"),
}
_NEW_NODES: Given = {
    "new_edges": _graph("Edges of new nodes, which join the run's graph; read as its edges were."),
    "new_features": _graph("Features of the new nodes."),
}
_FLAGS = {**_GRAPH, **_SETTINGS, **_NEW_NODES}
GRAPH, READING, SETTINGS, NEW_NODES = map(tuple, (_GRAPH, _READING, _SETTINGS, _NEW_NODES))


def with_flags(**groups: Sequence[str]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Adds shared flags to a command. Each group of names is one argument of it: a dictionary of those that were
    given.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def call(**values: Any) -> None:
            for group, names in groups.items():
                given = {name: values.pop(name, None) for name in names}
                values[group] = {name: value for name, value in given.items() if value is not None}
            command(**values)

        keyword = inspect.Parameter.KEYWORD_ONLY
        parameters = [
            inspect.Parameter(name, keyword, default=None, annotation=_FLAGS[name])
            for names in groups.values()
            for name in names
        ]
        own = inspect.signature(command).parameters
        parameters += [own[name].replace(kind=keyword) for name in own if name not in groups]
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return call

    return decorate


def split_names(text: str | None) -> list[str]:
    """Names joined by commas."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


Edges = _GRAPH["edges"]
DataFolder = _graph("Folder of the named datasets. Default: $H2HGCN_DATA, or the cache.", "--data", kind=Path | None)
OtherGraphs = _graph("Folder of other graphs with the same features, without labels.", "--graphs")
Search = _training(
    "How settings are chosen on validation data: fast (a race of candidates), thorough (each trained in full), none, "
    "or auto: fast for a graph without tuned settings.",
    kind=Literal["auto", "fast", "thorough", "none"],
)
Settings = _training("Any other setting, as section.option=value; repeatable.", "--set", kind=list[str] | None)
RunPath = Annotated[Path, typer.Argument(help="The folder of a finished run.")]
NoFinal = _flag("Use the run itself, even if it has a final fit.", "--no-final", kind=bool)
Table = _flag("File to write: .csv or .parquet.", kind=Path | None)
SafeCsv = _flag("In a CSV file, put ' before texts that spreadsheets run as formulas.", "--safe-csv", kind=bool)
Force = _flag("Replace the file if it exists.", "--force", kind=bool)
Retrain = _flag("Train again what is in the folder.", "--force", kind=bool)
Jobs = _flag("Processes, of one thread each. Default: one per core.", kind=int | None, min=1)
Json = _flag("Print JSON.", "--json", kind=bool)
