"""Training as the command line and Python share it: settings by name, a graph, and the run that comes out."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from h2hgcn.experiments.config import Experiment
from h2hgcn.experiments.sections import Sections, merged
from h2hgcn.training import Run, fit
from h2hgcn.training.loop import EpochReport
from h2hgcn.training.state import TrainingState

# Where the flags of ``h2hgcn train``, which are the keywords of ``train``, belong in a configuration.
_SETTINGS = {
    "task": "task.name", "protocol": "task.protocol",
    "model": "model.name", "dim": "model.dim", "layers": "model.num_layers",
    "epochs": "training.epochs", "lr": "training.lr", "device": "training.device",
    "batch_size": "training.batch_size", "fanout": "training.fanout", "workers": "training.workers",
}  # fmt: skip


def run_experiment(
    experiment: Experiment,
    data: Any,
    folder: Path | None = None,
    *,
    force: bool = False,
    tensorboard: bool = False,
    on_plan: Callable[[str], None] | None = None,
    on_epoch: Callable[[EpochReport, TrainingState], None] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Run:
    """Trains what ``read_experiment`` has read on what ``open_graph`` has opened, as ``fit`` does."""
    # A search for settings goes here: it has the data, and returns the experiment to train in full.
    return fit(
        experiment.task, data, experiment.encoder, seed=experiment.seed, settings=experiment.settings,
        folder=folder, force=force, source=experiment.graph.options, tensorboard=tensorboard,
        on_plan=on_plan, on_epoch=on_epoch, should_stop=should_stop,
    )  # fmt: skip


def sections_of(
    graph: Mapping[str, Any], settings: Iterable[Sections] = (), seed: int | None = None, **flags: Any
) -> Sections:
    """Flags as the sections of a configuration; those that are None were not given. ``settings`` win over them."""
    sections: Sections = {"data": dict(graph), "task": {}, "model": {}, "training": {}}
    for name, value in flags.items():
        if value is not None:
            section, _, option = _SETTINGS[name].partition(".")
            sections[section][option] = value
    return merged(sections, {} if seed is None else {"seed": seed}, *settings)
