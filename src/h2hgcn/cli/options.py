"""The flags that commands share, each defined once."""

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

_GRAPH, _TRAINING = "Graph", "Model and training"


def _flag(*names: str, panel: str | None = None, **options: Any) -> Any:
    return typer.Option(*names, rich_help_panel=panel, **options)


GRAPH_FLAGS: dict[str, Any] = {
    "dataset": Annotated[str | None, _flag(help="A named dataset; see h2hgcn datasets.", panel=_GRAPH)],
    "edges": Annotated[
        str | None,
        _flag(
            help="Edges of your graph: CSV, Parquet, NPZ, GraphML, GEXF, MatrixMarket, or a folder of h2hgcn convert.",
            panel=_GRAPH,
        ),
    ],
    "graphs": Annotated[
        str | None,
        _flag(
            help="Folder of graphs to classify: one file per graph (any format of --edges), or a TU dataset.",
            panel=_GRAPH,
        ),
    ],
    "features": Annotated[
        str | None,
        _flag(
            help="Features: a file with a node id and numbers, or with the columns id, feature, value; .npy/.npz; or "
            "node attributes a,b,c.",
            panel=_GRAPH,
        ),
    ],
    "labels": Annotated[
        str | None,
        _flag(
            help="Labels: a file with an id (of a node or graph), a label and an optional column split (train, val, "
            "test); .npy/.npz; or a node attribute.",
            panel=_GRAPH,
        ),
    ],
    "weights": Annotated[str | None, _flag(help="Column of edge weights; 'none' for no weights.", panel=_GRAPH)],
    "directed": Annotated[
        bool | None,
        _flag("--directed/--undirected", help="Whether edges are directed. Default: as the file says.", panel=_GRAPH),
    ],
    "source": Annotated[str | None, _flag(help="Column of edge sources.", panel=_GRAPH)],
    "target": Annotated[str | None, _flag(help="Column of edge targets.", panel=_GRAPH)],
    "header": Annotated[
        bool | None,
        _flag("--header/--no-header", help="Whether the edges file has a header. Default: detected.", panel=_GRAPH),
    ],
    "delimiter": Annotated[
        str | None,
        _flag(help="Delimiter of text files: a character, tab or space. Default: detected.", panel=_GRAPH),
    ],
    "comment": Annotated[
        str | None,
        _flag(help="How comment lines of text files start; 'none' for no comments.", show_default="#", panel=_GRAPH),
    ],
    "unlinked": Annotated[
        Literal["error", "keep", "drop"] | None,
        _flag(help="Nodes that have features or labels but no edge.", show_default="error", panel=_GRAPH),
    ],
}  # fmt: skip

# How the file of a graph is read, whatever names it.
READING = (
    "features",
    "labels",
    "weights",
    "directed",
    "source",
    "target",
    "header",
    "delimiter",
    "comment",
    "unlinked",
)


def with_graph(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Adds flags of ``GRAPH_FLAGS`` (all by default) to a command; those that were given are its argument ``graph``."""
    flags = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=GRAPH_FLAGS[name])
        for name in names or GRAPH_FLAGS
    ]

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        own = [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for name, parameter in inspect.signature(command).parameters.items()
            if name != "graph"
        ]

        @wraps(command)
        def with_flags(**values: Any) -> None:
            given = {flag.name: values.pop(flag.name, None) for flag in flags}
            command(graph={name: value for name, value in given.items() if value is not None}, **values)

        parameters = [*own, *flags]
        with_flags.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        with_flags.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return with_flags

    return decorated


Given = dict[str, Any]
Edges = GRAPH_FLAGS["edges"]
DataFolder = Annotated[
    Path | None,
    _flag("--data", help="Folder of the named datasets. Default: $H2HGCN_DATA, or the cache.", panel=_GRAPH),
]
OtherGraphs = Annotated[
    str | None,
    _flag("--graphs", help="Folder of other graphs with the same features, without labels.", panel=_GRAPH),
]
NewEdges = Annotated[
    str | None,
    _flag("--new-edges", help="Edges of new nodes, which join the run's graph; read as its edges were.", panel=_GRAPH),
]
NewFeatures = Annotated[str | None, _flag("--new-features", help="Features of the new nodes.", panel=_GRAPH)]

Task = Annotated[
    Literal["lp", "nc", "gc", "embed"] | None,
    _flag(
        help="Link prediction, node or graph classification, or embedding of distances. Default: lp, or gc for a "
        "collection of graphs."
    ),
]
Model = Annotated[str | None, _flag(help="The encoder; see h2hgcn models.", show_default="h2h-gcn")]
Dim = Annotated[int | None, _flag(help="Dimension of the embedding space.", panel=_TRAINING)]
Layers = Annotated[int | None, _flag(help="Number of convolutions.", panel=_TRAINING)]
Epochs = Annotated[int | None, _flag(help="Largest number of epochs.", panel=_TRAINING)]
Lr = Annotated[float | None, _flag(help="Learning rate.", panel=_TRAINING)]
BatchSize = Annotated[
    str | None, _flag(help="Links or nodes per step, auto or full.", show_default="auto", panel=_TRAINING)
]
Fanout = Annotated[
    str | None,
    _flag(help="Neighbors sampled at each hop, such as 15,10.", show_default="15,10,5,...", panel=_TRAINING),
]
Workers = Annotated[int | None, _flag(help="Threads that prepare batches.", show_default="0", panel=_TRAINING)]
Closure = Annotated[
    bool | None,
    _flag("--closure", help="With --task embed: embed the transitive closure of a hierarchy.", panel=_TRAINING),
]
Device = Annotated[str | None, _flag(help="cpu, cuda, or auto: CUDA if there.", show_default="auto", panel=_TRAINING)]
Protocol = Annotated[
    str | None, _flag(help="How data are split: clean, legacy, planetoid, given, ...", panel=_TRAINING)
]
Search = Annotated[
    Literal["auto", "fast", "thorough", "none"],
    _flag(
        help="How settings are chosen on validation data: fast (a race of candidates), thorough (each trained in "
        "full), none, or auto: fast for a graph without tuned settings.",
        panel=_TRAINING,
    ),
]
Settings = Annotated[
    list[str] | None, _flag("--set", help="Any other setting, as section.option=value; repeatable.", panel=_TRAINING)
]

RunPath = Annotated[Path, typer.Argument(help="The folder of a finished run.")]
NoFinal = Annotated[bool, _flag("--no-final", help="Use the run itself, even if it has a final fit.")]
Table = Annotated[Path | None, _flag(help="File to write: .csv or .parquet.")]
Force = Annotated[bool, _flag("--force", help="Replace the file if it exists.")]
Retrain = Annotated[bool, _flag("--force", help="Train again what is in the folder.")]
Jobs = Annotated[int | None, _flag(min=1, help="Processes, of one thread each. Default: one per core.")]
Json = Annotated[bool, _flag("--json", help="Print JSON.")]
