"""What is written of a run for people and other programs: the embedding and the report."""

import hashlib
import tempfile
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from h2hgcn.datasets.annotated import is_annotated, read_h5ad
from h2hgcn.datasets.arrays import UNLABELLED
from h2hgcn.datasets.on_disk import is_graph
from h2hgcn.datasets.splits import node_labels
from h2hgcn.datasets.tables import shown
from h2hgcn.embeddings import layout_in_disk, project_to_disk, write_embeddings, write_report
from h2hgcn.embeddings.coordinates import Coordinates, Points, check_coordinates, convert
from h2hgcn.embeddings.disk import DiskProjection
from h2hgcn.embeddings.files import stream_embeddings
from h2hgcn.errors import DamagedRunError, DataError, DataWarning
from h2hgcn.files import read_tensors, write_tensors
from h2hgcn.layers.spaces import check_space
from h2hgcn.lazy import import_extra
from h2hgcn.models.row_blocks import Progress, can_go_by_blocks, point_blocks
from h2hgcn.tasks.model import all_points, encoder_inputs
from h2hgcn.training.building import class_names
from h2hgcn.training.names import ids_of

if TYPE_CHECKING:
    from h2hgcn.training.run import Run


def coordinates_of(encoder: nn.Module) -> Coordinates:
    """The space of an encoder's points, as ``h2hgcn.embeddings`` calls it."""
    return check_coordinates(check_space(encoder.space))  # type: ignore[arg-type]


def write_points(run: "Run", points: Tensor, data: Any, path: Path, coordinates: str | None = None) -> None:
    """Points with the ids and labels of their nodes, or the names and classes of their graphs."""
    ids, labels, space = ids_of(data), labels_of(data), coordinates_of(run.model.encoder)
    write_embeddings(path, points.numpy(), ids, labels, coordinates, space=space, overwrite=True)


def annotated(
    run: "Run", points: Tensor, data: Any, adata: Any = None, coordinates: str | None = None, key: str = "X_h2hgcn"
) -> Any:
    """Points in ``obsm`` of an ``AnnData`` object, which is made if there is none; see ``Run.to_anndata``."""
    names, space = ids_of(data).astype(np.str_), coordinates_of(run.model.encoder)
    wanted = space if coordinates is None else coordinates
    rows = convert(points, wanted, space)
    if adata is None:
        anndata, pandas = (import_extra(name, "what writes .h5ad files", "anndata") for name in ("anndata", "pandas"))
        adata = anndata.AnnData(obs=pandas.DataFrame(index=names.tolist()))
        labels = labels_of(data)
        if labels is not None:
            adata.obs["label"] = pandas.Categorical(labels)
    if not is_annotated(adata):
        raise DataError(f"adata is a {type(adata).__name__}; pass an AnnData object, or None for a new one")
    order = np.argsort(names, kind="stable")
    observed = np.asarray(adata.obs_names, dtype=np.str_)
    found = order[np.searchsorted(names[order], observed).clip(max=len(names) - 1)]
    known = names[found] == observed
    if not known.any():
        raise DataError(f"no observation of adata is a node of the run ({shown(observed[0])} is not); check obs_names")
    if not known.all():
        note = f"{int((~known).sum())} of {len(known)} observations are no nodes of the run; their points are NaN"
        warnings.warn(note, DataWarning, stacklevel=3)
    adata.obsm[key] = np.where(known[:, None], rows[found], np.nan).astype(rows.dtype)
    about = {"coordinates": wanted, "model": run.config["model"]["name"], "task": run.task.name}
    adata.uns[key] = about | {"version": run.config["versions"]["h2hgcn"]}
    return adata


def write_h5ad(run: "Run", points: Tensor, data: Any, source: Path | None, path: Path, coordinates: str | None) -> None:
    """Writes a .h5ad file: that of ``source`` with the points added, or a new one."""
    adata = annotated(run, points, data, None if source is None else read_h5ad(source), coordinates)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:  # whole, or not at all
        for frame in (adata.obs, adata.var):
            make_texts_plain(frame)
        adata.write_h5ad(Path(scratch) / path.name, convert_strings_to_categoricals=False)
        (Path(scratch) / path.name).replace(path)


def make_texts_plain(frame: Any) -> None:
    """Gives a DataFrame texts as Python objects: anndata cannot write those of pandas 3."""
    frame.index = frame.index.astype(object)
    for name, dtype in frame.dtypes.items():
        if str(dtype) in ("str", "string"):
            frame[name] = frame[name].astype(object)
        elif str(dtype) == "category":
            kept = frame[name].cat.categories
            frame[name] = frame[name].cat.rename_categories(kept.astype(object) if len(kept) else kept)


def write_layout(run: "Run", path: Path) -> None:
    """Where the embedding has one that is better than its projection, its layout for pictures."""
    points, edges = run.embeddings.numpy(), run.data.edge_index.numpy() if is_graph(run.data) else None
    layout = layout_in_disk(points, edges, coordinates_of(run.model.encoder))
    if layout.method == "projection":
        path.unlink(missing_ok=True)
        return
    about = {"method": layout.method, "keeps": layout.keeps, "embedding": _digest(points)}
    write_tensors(path, {"points": torch.from_numpy(layout.points)}, about)


def read_layout(path: Path, points: Points) -> DiskProjection | None:
    """The layout of these points, if there is one."""
    if not path.exists():
        return None
    try:
        tensors, about = read_tensors(path, "delete it")
        if about["embedding"] != _digest(points):
            return None
        center = np.array([1.0, 0.0, 0.0])
        return DiskProjection(tensors["points"].numpy(), "poincare", center, about["keeps"], about["method"])
    except (DamagedRunError, KeyError) as error:
        warnings.warn(f"the layout is left out, the projection is shown: {error}", DataWarning, stacklevel=2)
        return None


def _digest(points: Points) -> str:
    return hashlib.sha256(np.ascontiguousarray(points, np.float64).data).hexdigest()


def labels_of(data: Any) -> list[str | None] | None:
    """The names of classes as they came, None where there is none. What is not one class a node is left out: it was
    not what was learned.
    """
    if getattr(data, "y", None) is None:
        return None
    try:
        numbers = node_labels(data).tolist() if is_graph(data) else [int(label) for label in data.y]
        names = class_names(data, max(numbers, default=0) + 1)
    except DataError:
        return None
    return [None if number == UNLABELLED else names[number] for number in numbers]


def write_report_of(run: "Run", path: Path) -> None:
    """The report, with the embedding drawn if it is one of nodes."""
    data, config, result = run.data, run.config, run.result
    space, selection = coordinates_of(run.model.encoder), result["selection"]
    scores, caption, notes = result, "Of the selected model", list(result.get("doubts", ()))
    if not run.task.parts:
        scores = result.get("of_run") or {"metrics": {}, "trivial": None}
        caption = "Of the run that this final fit comes from"
        notes.insert(0, "This is a final fit: it was trained on all data, and nothing was held out to measure it on.")
    name = config["data"].get("dataset") or getattr(data, "name", None) or "a graph"
    write_report(
        path,
        f"{config['model']['name']}: {run.task.title} on {name}",
        _settings(config),
        scores["metrics"],
        run.history,
        project_to_disk(run.embeddings.numpy(), space),
        labels_of(data),
        data.edge_index.numpy() if is_graph(data) else None,
        scores_of_baselines(scores, selection) or None,
        [*notes, *(getattr(data, "notes", None) or ())],
        layout=read_layout(path.parent / "layout.safetensors", run.embeddings.numpy()),
        ids=ids_of(data),
        selected_by=f"{run.task.parts[0]}_{selection}" if run.task.parts else None,
        best_epoch=result["best_epoch"] if run.task.parts else None,
        caption=caption,
        details=result.get("details"),
    )


def scores_of_baselines(result: dict[str, Any], selection: str) -> dict[str, dict[str, float]]:
    """What baselines reach by the metric that selects, and ``precision@K`` of those that rank all pairs, by metric and
    name.
    """
    found: dict[str, dict[str, float]] = {selection: result["trivial"]} if result["trivial"] else {}
    for name, metrics in result.get("baselines", {}).items():
        for metric, value in metrics.items():
            if metric.startswith("precision@"):
                found.setdefault(metric, {})[name] = value
    return found


def _settings(config: dict[str, Any]) -> dict[str, Any]:
    """What was set, without what was found out; of a search, how far each of its candidates came."""
    shown = {part: value for part, value in config.items() if part not in ("facts", "versions", "format")}
    if "search" in config:
        shown["search"] = {"chosen": config["search"]["chosen"]}
        for one in config["search"]["candidates"]:
            result = f"failed: {one['failed']}" if "failed" in one else f"{one['score']:.4f} ({one['epochs']} epochs)"
            shown["search"][one["name"]] = result
    return shown | {"data": {key: value for key, value in config["data"].items() if key != "fingerprint"}}


def stream_points(
    run: "Run", other: Any, path: Path, coordinates: str | None = None, progress: Progress = lambda done, total: None
) -> int:
    """Writes the points of the run's nodes, or of an ``other`` graph's, to a Parquet or NPY file; returns their number.

    Of memory it takes the edges and a block of rows; models whose layers cannot be taken apart take all points.
    """
    graph = run.data if other is None else other
    ids, labels, space = ids_of(graph), labels_of(graph), coordinates_of(run.model.encoder)
    stream_embeddings(path, _blocks(run, other, path.parent, progress), ids, labels, coordinates, space=space)
    return len(ids)


@torch.no_grad()
def _blocks(run: "Run", other: Any, folder: Path, progress: Progress) -> Iterator[Points]:
    model, nodes = run.model, None
    if other is None:
        problem: Any = run.problem
        features, adjacency = problem.features, problem.adjacency
    else:
        run.check_fits(other)
        nodes = run.known_nodes(other)
        features, adjacency = encoder_inputs(model, other, run.task.name, run.config["facts"]["in_features"])
    encoder: Any = model.encoder

    def in_files(rows: int, width: int) -> Tensor:
        """Room for a layer in a file without a name, which is gone with its array."""
        dtype = torch.empty(0, dtype=encoder.log_curvature.dtype).numpy().dtype
        with tempfile.TemporaryFile(dir=folder) as file:
            return torch.from_numpy(np.memmap(file, dtype, "w+", shape=(rows, width)))

    with run.threads(adjacency.num_nodes):
        if not can_go_by_blocks(encoder):
            yield all_points(model, features, adjacency, nodes).cpu().numpy()
            return
        rows_of, allocate = partial(features.rows, model.scaling), in_files if run.device.type == "cpu" else None
        found = point_blocks(encoder, rows_of, adjacency, nodes=nodes, allocate=allocate, progress=progress)
        yield from (part.cpu().numpy() for _, part in found)
