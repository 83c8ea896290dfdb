"""What the explorer shows: a run with all it knows, or points from a file."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from h2hgcn.cli.options import open_own_graph, open_run
from h2hgcn.embeddings import read_embeddings
from h2hgcn.errors import DataError, DataWarning
from h2hgcn.explorer import Scene, make_scene
from h2hgcn.training.artifacts import read_layout
from h2hgcn.training.names import NodeNames

if TYPE_CHECKING:
    from h2hgcn.training import Run


def open_scene(path: Path, edges: str | None = None, coordinates: str | None = None, final: bool = False) -> Scene:
    """The scene of a run folder, or with ``final`` of the run's final fit if there is one; or of a file of embeddings
    with the edges of another file.
    """
    if path.is_dir():
        given = [name for name, value in (("--edges", edges), ("--coordinates", coordinates)) if value is not None]
        if given:
            raise DataError(f"{', '.join(given)}: only for a file of embeddings; {path} is a run and knows its own")
        return _scene_of_run(path, final)
    return _scene_of_file(path, edges, coordinates)


def _scene_of_run(path: Path, final: bool) -> Scene:
    run = open_run(path, with_data=False, final=final)
    points = (run.folder or path) / "embeddings.parquet"
    if not points.is_file():
        raise DataError(f"{points} is not there; give the run's command again, which writes it again")
    read = read_embeddings(points)
    source = run.config["data"]
    data = source.get("dataset") or getattr(run.data, "name", None) or Path(source.get("graphs", path)).name
    whole = not run.task.of_collections and run.data is not None
    if whole:
        _check_ids(points, read.ids, NodeNames(run.data).ids)
    return make_scene(
        read.points,
        read.ids,
        read.labels,
        read.coordinates,
        run.data.edge_index.numpy() if whole else None,
        {**read.extra, **(_predictions(run) if whole and run.classes is not None else {})},
        title=f"{data} by {run.config['model']['name']}" + ("" if run.task.parts else ", final fit"),
        probabilities=run.link_probabilities if whole else None,
        distance_scale=run.model.scale,
        rank=run.link_order()[1] if whole else None,
        directed=whole and run.link_order()[0] == "out",
        layout=read_layout(points.with_name("layout.safetensors"), read.points),
    )


def _check_ids(path: Path, ids: NDArray[Any], of_graph: NDArray[Any]) -> None:
    """Edges and predictions are by row, so the points have to be those of the graph, in its order."""
    if not np.array_equal(ids.astype(np.str_), of_graph.astype(np.str_)):
        raise DataError(
            f"{path} has other nodes than the run's graph, or another order of them; delete it and give the run's "
            "command again, which writes it again, or explore the file by itself"
        )


def _predictions(run: "Run") -> dict[str, Any]:
    """The likeliest class of each node, and how sure the model is of it."""
    sure, number = run.predict().max(1)
    classes = np.array(run.classes)
    return {"prediction": classes[number.numpy()], "confidence": sure.numpy()}


def _scene_of_file(path: Path, edges: str | None, coordinates: str | None) -> Scene:
    if not path.exists():
        raise DataError(f"{path} does not exist; give the folder of a run, or a file of embeddings")
    read = read_embeddings(path, coordinates)
    graph = None if edges is None else _open_edges(edges)
    try:
        links = None if graph is None else _edges_among(read.ids, graph)
        return make_scene(read.points, read.ids, read.labels, read.coordinates, links, read.extra, title=path.stem)
    except DataError as error:
        raise DataError(f"{path}: {error}") from error


def _open_edges(edges: str) -> Any:
    with warnings.catch_warnings():  # what is made in the place of features is not looked at
        warnings.filterwarnings("ignore", ".*no features were given", DataWarning)
        return open_own_graph(edges)


def _edges_among(ids: NDArray[Any], graph: Any) -> NDArray[np.int64]:
    """The edges of a graph by the rows of its nodes in a file."""
    order = np.argsort(ids.astype(np.str_), kind="stable")
    ordered, wanted = ids.astype(np.str_)[order], NodeNames(graph).ids.astype(np.str_)
    places = np.searchsorted(ordered, wanted).clip(max=len(ordered) - 1)
    unknown = ordered[places] != wanted
    if unknown.any():
        raise DataError(f"--edges names the node {wanted[unknown][0]}, which has no point; leave its edges out")
    rows: NDArray[np.int64] = order[places]
    return rows[graph.edge_index.numpy()]
