"""A finished run from its folder, and its final fit."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import nn

from h2hgcn.datasets.collection import as_collection
from h2hgcn.datasets.on_disk import fingerprint, load_saved_graph
from h2hgcn.errors import DataError
from h2hgcn.files import checksum_of, load_weights, read_tensors
from h2hgcn.options import default_options
from h2hgcn.tasks.model import Model
from h2hgcn.training.building import encoder_factory, make_encoder, settings_from, task_from
from h2hgcn.training.folder import SETTINGS, RunFolder, difference
from h2hgcn.training.loop import weights_of
from h2hgcn.training.run import Run
from h2hgcn.training.settings import TrainingSettings, torch_seeded


def load_run(
    path: str | Path, data: Any = None, model: Callable[[int], nn.Module] | None = None, device: str = "cpu"
) -> Run:
    """A finished run from its folder.

    Args:
        data: The data of the run. A single graph is in the folder; a collection is not, and only needed to evaluate.
        model: Makes the encoder from a number of features, if it has something of your own.
        device: Where the model goes.
    """
    data, folder = as_collection(data), RunFolder(path)
    config, result = folder.read_config(), folder.read_result()
    if result is None:
        raise DataError(f"{path} holds a run that is not finished; run its command again to resume")
    weights, about = read_tensors(folder.model, folder.how_to_restore(folder.model))
    differing = difference(config, about.get("config", {}), (*SETTINGS, "facts"))
    if differing is not None:
        raise DataError(
            f"{folder.model} is of another run than {folder.config}: {differing[0]} differs; restore the one that was "
            "replaced or changed, or train again with --force"
        )
    known, advice = config["data"].get("fingerprint"), "run the same command again, which writes it again"
    if data is not None and fingerprint(data) != known:
        raise DataError(f"{folder.path} was trained on other data than these; use run.predict(..., data=) for new ones")
    if data is None and folder.graph.exists():
        data = load_saved_graph(folder.graph, advice)
        if fingerprint(data) != known:
            raise DataError(f"{folder.graph} is of another run than {folder.config}; {advice}")
    task = task_from(config["task"], f"{folder.config} [task]")
    for section, options in (("task", type(task)), ("training", TrainingSettings)):
        missing = [name for name in default_options(options) if name not in config[section]]
        if missing:
            raise DataError(
                f"{folder.config} [{section}] lacks {', '.join(missing)}: it is of an earlier version of h2hgcn; train "
                "again"
            )
    make = model or encoder_factory(config["model"], f"{folder.config} [model]")
    in_features, num_nodes, num_classes = map(config["facts"].get, ("in_features", "num_nodes", "num_classes"))
    with torch_seeded(0):  # what is drawn here is replaced, and must not cost the caller's generator anything
        built: Model = task.assemble(make_encoder(make, in_features, num_nodes), in_features, num_classes)
    built.to(dtype=settings_from(config["training"], f"{folder.config} [training]").torch_dtype())
    load_weights(built, weights, str(folder.model))
    try:
        built = built.to(device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise DataError(f"the model cannot go to the device {device!r} ({error}); use 'cpu'") from error
    folder.warn_of_changes(folder.config, folder.metrics)
    return Run(built, task, config, result, folder.read_history(result["epochs"]), data, folder=folder.path)


def load_final(run: Run) -> tuple[Run | None, str | None]:
    """The final fit in the folder of a run, or why one that is there cannot be used."""
    place = run.final_folder
    if place is None or not RunFolder(place).config.exists():
        return None, None
    if is_outdated(place, run):
        return None, f"the final fit in {place} is of other weights than the run; h2hgcn finalize fits it again"
    if RunFolder(place).read_result() is None:
        return None, f"the final fit in {place} is not finished; h2hgcn finalize resumes it"
    return load_run(place, run.data, device=str(run.device)), None


def is_outdated(place: Path | None, run: Run) -> bool:
    """Whether a folder is that of a run's final fit, but made when the run had other weights."""
    if place is None or place != run.final_folder or not RunFolder(place).config.exists():
        return False
    origin = RunFolder(place).read_config().get("final", {})
    return bool(origin) and origin.get("weights") != checksum_of(weights_of(run.model))
