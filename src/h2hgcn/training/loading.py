"""A finished run from its folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import nn

from h2hgcn.datasets.graph_file import fingerprint, load_saved_graph
from h2hgcn.datasets.graph_list import as_collection
from h2hgcn.errors import DataError
from h2hgcn.tasks.problem import Model
from h2hgcn.tensor_files import load_weights, read_tensors
from h2hgcn.training.building import make_encoder
from h2hgcn.training.description import encoder_factory, settings_from, task_from
from h2hgcn.training.folder import RunFolder
from h2hgcn.training.run import Run
from h2hgcn.training.seeds import torch_seeded


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
        raise DataError(f"{path} holds a run that is not finished; run its command again to go on")
    if data is None and folder.graph.exists():
        data = load_saved_graph(folder.graph)
    elif data is not None and fingerprint(data) != config["data"].get("fingerprint"):
        raise DataError(f"{path} was trained on other data than these; use run.predict(..., data=) for new ones")
    task = task_from(config["task"], f"{folder.config} [task]")
    built = _load_model(folder, config, task, model)
    return Run(built.to(device), task, config, result, folder.read_history(), data, folder=folder.path)


def _load_model(folder: RunFolder, config: dict[str, Any], task: Any, model: Any) -> Model:
    weights, _ = read_tensors(folder.model, folder.made_anew(folder.model))
    make = model or encoder_factory(config["model"], f"{folder.config} [model]")
    in_features, num_nodes, num_classes = (
        config["facts"].get(name) for name in ("in_features", "num_nodes", "num_classes")
    )
    with torch_seeded(0):  # what is drawn here is replaced, and must not cost the caller's generator anything
        built: Model = task.assemble(make_encoder(make, in_features, num_nodes), in_features, num_classes)
    built.to(dtype=settings_from(config["training"], f"{folder.config} [training]").torch_dtype())
    load_weights(built, weights, str(folder.model))
    return built
