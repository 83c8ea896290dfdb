"""``h2hgcn explore``: a run, or points from a file, in the browser."""

import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from h2hgcn.cli import console
from h2hgcn.cli import options as flags
from h2hgcn.cli.runs import open_run
from h2hgcn.errors import DataError, DataWarning

if TYPE_CHECKING:
    from h2hgcn.explorer import Scene


def explore(
    run: Annotated[Path, typer.Argument(help="The folder of a run, or embeddings: .parquet, .npz or .csv.")],
    port: Annotated[
        int | None, typer.Option(help="Port of this machine; 0 for any.", min=0, max=65535, show_default="8710")
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Open no browser; print the address only.")] = False,
    export: Annotated[Path | None, typer.Option(help="Write one HTML file instead, which needs no server.")] = None,
    edges: flags.Edges = None,
    coordinates: Annotated[
        Literal["lorentz", "poincare", "klein", "tangent", "euclidean"] | None,
        typer.Option(help="Coordinates of a file that does not name them."),
    ] = None,
    force: flags.Force = False,
    no_final: flags.NoFinal = False,
) -> None:
    """Explore an embedding on the Poincaré disk in the browser: drag, zoom, search, neighbors, likely links, depth.

    The page is served to this machine only, until Ctrl-C; with --export it is one file that needs no server.

    Example: h2hgcn explore runs/disease-lp-h2h-gcn-seed0 --export disease.html
    """
    if export is not None:
        console.check_free(export, force)
    elif missing := [name for name in ("fastapi", "uvicorn") if find_spec(name) is None]:
        raise DataError(
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed; "
            "pip install 'h2hgcn[explorer]', or write a file with --export"
        )
    with console.starting():
        scene = open_scene(run, edges, coordinates, final=not no_final)
    if export is not None:
        from h2hgcn.explorer import write_page

        write_page(export, scene)
        console.tell(f"{console.counted(len(scene.points), 'point')}: {export}")
        return
    from h2hgcn.explorer.server import address_of, open_port, serve

    opened = open_port(port)
    console.stdout.print(f"{address_of(opened)}   (Ctrl-C ends it)", soft_wrap=True)
    serve(scene, opened, browser=not no_browser)


def open_scene(path: Path, edges: str | None = None, coordinates: str | None = None, final: bool = False) -> "Scene":
    """The scene of a run folder, or with ``final`` of the run's final fit if there is one; or of a file of embeddings
    with the edges of another file.
    """
    if path.is_dir():
        given = [name for name, value in (("--edges", edges), ("--coordinates", coordinates)) if value is not None]
        if given:
            raise DataError(f"{', '.join(given)}: only for a file of embeddings; {path} is a run and knows its own")
        return _scene_of_run(path, final)
    return _scene_of_file(path, edges, coordinates)


def _scene_of_run(path: Path, final: bool) -> "Scene":
    import numpy as np

    from h2hgcn.embeddings import read_embeddings
    from h2hgcn.explorer import make_scene
    from h2hgcn.training.artifacts import read_layout
    from h2hgcn.training.folder import RunFolder
    from h2hgcn.training.names import ids_of

    run = open_run(path, with_data=False, final=final)
    folder = RunFolder(run.folder or path)
    folder.read_result()  # which has the checksum of the points
    points = folder.embeddings
    if not points.is_file():
        raise DataError(f"{points} is missing; give the run's command again, which writes it again")
    folder.warn_of_changes(points)
    read = read_embeddings(points)
    source = run.config["data"]
    data = source.get("dataset") or getattr(run.data, "name", None) or Path(source.get("graphs", path)).name
    title = f"{data} by {run.config['model']['name']}" + ("" if run.task.parts else ", final fit")
    shown = (read.points, read.ids, read.labels, read.coordinates)
    layout = read_layout(points.with_name("layout.safetensors"), read.points)
    scale = run.model.scale
    if run.data is None and not run.task.of_collections:
        console.note(f"{folder.graph} is missing, so there are no edges; the run's command writes it again")
    if run.task.of_collections or run.data is None:
        return make_scene(*shown, None, read.extra, title=title, distance_scale=scale, layout=layout)
    # edges and predictions are by row, so the points have to be those of the graph, in its order
    if not np.array_equal(read.ids.astype(np.str_), ids_of(run.data).astype(np.str_)):
        raise DataError(
            f"{points} has other nodes than the run's graph, or another order of them; delete it and give the run's "
            "command again, which writes it again, or explore the file by itself"
        )
    extra = dict(read.extra)
    if run.classes is not None:  # the likeliest class of each node, and how sure the model is of it
        sure, number = run.predict().max(1)
        extra |= {"prediction": np.array(run.classes)[number.numpy()], "confidence": sure.numpy()}
    direction, rank = run.link_order()
    return make_scene(
        *shown, run.data.edge_index.numpy(), extra, title=title, probabilities=run.link_probabilities,
        distance_scale=scale, rank=rank, directed=direction == "out", layout=layout,
    )  # fmt: skip


def _scene_of_file(path: Path, edges: str | None, coordinates: str | None) -> "Scene":
    import numpy as np

    from h2hgcn.datasets.loading import load_graph_by_text
    from h2hgcn.embeddings import read_embeddings
    from h2hgcn.explorer import make_scene
    from h2hgcn.training.names import NodeNames

    if not path.exists():
        raise DataError(f"{path} does not exist; give the folder of a run, or a file of embeddings")
    read = read_embeddings(path, coordinates)
    links = None
    if edges is not None:
        with warnings.catch_warnings():  # features are not used
            warnings.filterwarnings("ignore", ".*no features were given", DataWarning)
            graph = load_graph_by_text(edges)
    try:
        if edges is not None:  # by the rows of its nodes in the file
            wanted = NodeNames(graph).ids.astype(np.str_)
            order = np.argsort(read.ids.astype(np.str_), kind="stable")
            ordered = read.ids.astype(np.str_)[order]
            places = np.searchsorted(ordered, wanted).clip(max=len(ordered) - 1)
            unknown = ordered[places] != wanted
            if unknown.any():
                raise DataError(f"--edges names the node {wanted[unknown][0]}, which has no point; leave its edges out")
            links = order[places][graph.edge_index.numpy()]
        return make_scene(read.points, read.ids, read.labels, read.coordinates, links, read.extra, title=path.stem)
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
