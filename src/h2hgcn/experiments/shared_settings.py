"""What all models of a comparison share, and which files of settings speak of one model alone."""

from collections.abc import Sequence
from typing import Any

from h2hgcn.errors import DataError
from h2hgcn.experiments.graph_choice import choose_graph
from h2hgcn.experiments.sections import COMMAND_LINE, Layer, Sections

# What decides on the split.
SPLIT = ("protocol", "val", "test", "split_seed", "num_folds", "fold")


def check_models(files: Sequence[Layer], models: Sequence[str]) -> None:
    """Raises if a file is about a model that is not compared."""
    for file in files:
        name = _model_of(file)
        if name is not None and name not in models:
            raise DataError(f"{file.origin} is for the model {name}, which is not among --models {','.join(models)}")


def files_for(model: str, files: Sequence[Layer]) -> tuple[Layer, ...]:
    """The files that hold for a model: those that name it, and those that name none."""
    return tuple(file for file in files if _model_of(file) in (None, model))


def shared_settings(flags: Sections, files: Sequence[Layer]) -> Sections:
    """The graph, the task and the split, as flags say it, or else files, which must agree."""
    graph = _graph(flags, files)
    task = {
        name: _agreed(name, [file for file in files if name in file.sections.get("task", {})])
        for name in ("name", *SPLIT)
        if name not in flags.get("task", {})
    }
    return {"data": graph, "task": {name: value for name, value in task.items() if value is not None}}


def _graph(flags: Sections, files: Sequence[Layer]) -> dict[str, Any]:
    said = Layer(COMMAND_LINE, flags)
    graph = choose_graph([*files, said])
    for file in files:
        if {"dataset", "edges"} & set(file.sections.get("data", {})):
            other = choose_graph([file, said])
            if other.options != graph.options:
                raise DataError(
                    f"{file.origin} is about the graph {other.name}, another file about {graph.name}; models are "
                    "compared on one graph: say which, with --dataset or --edges"
                )
    return graph.options if graph.fingerprint is None else {**graph.options, "fingerprint": graph.fingerprint}


def _agreed(name: str, files: Sequence[Layer]) -> Any:
    """What files say of an option of the task; None if none does."""
    values = [file.sections["task"][name] for file in files]
    for file, value in zip(files, values, strict=True):
        if value != values[0]:
            flag = {"name": "--task", "protocol": "--protocol"}.get(name, f"--set task.{name}=...")
            raise DataError(
                f"task.{name} is {values[0]} in {files[0].origin} and {value} in {file.origin}; models are compared on "
                f"one split: say which, with {flag}"
            )
    return values[0] if values else None


def _model_of(file: Layer) -> str | None:
    name = file.sections.get("model", {}).get("name")
    return None if name is None else str(name)
