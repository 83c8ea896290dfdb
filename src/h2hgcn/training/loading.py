"""A finished run from its folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import nn

from h2hgcn.datasets.collection import as_collection
from h2hgcn.datasets.on_disk import fingerprint, load_saved_graph
from h2hgcn.errors import DataError
from h2hgcn.files import Weights, load_weights, read_tensors
from h2hgcn.tasks.base import Model
from h2hgcn.training.building import encoder_factory, make_encoder, settings_from, task_from
from h2hgcn.training.folder import SETTINGS, RunFolder, completed, difference
from h2hgcn.training.run import Run
from h2hgcn.training.settings import torch_seeded


def load_run(
    path: str | Path, data: Any = None, model: Callable[[int], nn.Module] | None = None, device: str = "cpu"
) -> Run:
    """A finished run from its folder.

    Args:
        data: The data of the run. A single graph is in the folder; a collection is not, and only needed to evaluate.
        model: Makes the encoder from a number of features, if it has something of your own.
        device: Where the model goes.
    """
    data = as_collection(data)
    folder = RunFolder(path)
    config = folder.read_config()
    result = folder.read_result()
    if result is None:
        raise DataError(f"{path} holds a run that is not finished; run its command again to resume")
    weights, about = read_tensors(folder.model, folder.made_anew(folder.model))
    _check_one_run(folder, config, about)
    data = _checked_data(folder, config, data)
    task = task_from(completed(config)["task"], f"{folder.config} [task]")
    built = _placed(_build_model(folder, config, task, model, weights), device)
    return Run(built, task, config, result, folder.read_history(result["epochs"]), data, folder=folder.path)


def _check_one_run(folder: RunFolder, config: dict[str, Any], about: Any) -> None:
    """Raises unless the weights are those of the run that ``config.toml`` tells of."""
    own = about.get("config") if isinstance(about, dict) else None
    differing = difference(config, own, (*SETTINGS, "facts")) if isinstance(own, dict) else ("config", config, own)
    if differing is not None:
        raise DataError(
            f"{folder.model} is of another run than {folder.config}: {differing[0]} differs; restore the one that was "
            "replaced or changed, or train again with --force"
        )


def _checked_data(folder: RunFolder, config: dict[str, Any], data: Any) -> Any:
    """The data that were given, or else the graph in the folder, known to be those of the run; None without either."""
    known = config["data"].get("fingerprint")
    if data is not None:
        if fingerprint(data) != known:
            raise DataError(
                f"{folder.path} was trained on other data than these; use run.predict(..., data=) for new ones"
            )
    elif folder.graph.exists():
        data = load_saved_graph(folder.graph, _WRITTEN_ANEW)
        if fingerprint(data) != known:
            raise DataError(f"{folder.graph} is of another run than {folder.config}; {_WRITTEN_ANEW}")
    return data


_WRITTEN_ANEW = "run the same command again, which writes it again"


def _placed(model: Model, device: str) -> Model:
    try:
        return model.to(device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise DataError(f"the model cannot go to the device {device!r} ({error}); use 'cpu'") from error


def _build_model(folder: RunFolder, config: dict[str, Any], task: Any, model: Any, weights: Weights) -> Model:
    make = model or encoder_factory(config["model"], f"{folder.config} [model]")
    in_features, num_nodes, num_classes = (
        config["facts"].get(name) for name in ("in_features", "num_nodes", "num_classes")
    )
    with torch_seeded(0):  # what is drawn here is replaced, and must not cost the caller's generator anything
        built: Model = task.assemble(make_encoder(make, in_features, num_nodes), in_features, num_classes)
    built.to(dtype=settings_from(config["training"], f"{folder.config} [training]").torch_dtype())
    load_weights(built, weights, str(folder.model))
    return built
