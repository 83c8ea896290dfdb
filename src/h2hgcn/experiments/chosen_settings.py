"""The settings of a trial as a file that ``--config`` takes."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import tomli_w

from h2hgcn.experiments.config import read_experiment
from h2hgcn.experiments.presets import find_preset
from h2hgcn.experiments.sections import Sections, merged
from h2hgcn.experiments.tuning import TrialResult, Tuning
from h2hgcn.files import atomic_write
from h2hgcn.models import ENCODERS
from h2hgcn.options import changed_options, plain_options


def write_settings(path: Path, tuning: Tuning, result: TrialResult, comment: str) -> None:
    """The settings of a trial as a configuration file: all that differs from defaults, or that a preset may say."""
    experiment = read_experiment(merged(tuning.flags, result.settings), tuning.files)
    task = experiment.task
    preset = find_preset(experiment.graph.dataset, task.name, experiment.model_name, task.protocol)
    said = merged(preset.settings, {"task": {"protocol": task.protocol}}, result.settings)
    given: dict[str, tuple[Sections, Any]] = {
        "task": (asdict(task), type(task)),
        "model": (experiment.model_options, ENCODERS[experiment.model_name]),
        "training": (asdict(experiment.settings), type(experiment.settings)),
    }
    sections: Sections = {"seed": experiment.seed, "data": experiment.graph.options, "task": {"name": task.name}}
    sections["model"] = {"name": experiment.model_name}
    for section, (options, target) in given.items():
        telling = changed_options(options, target).keys() | said.get(section, {}).keys()
        chosen = plain_options({name: value for name, value in options.items() if name in telling})
        sections[section] = sections.get(section, {}) | chosen
    with atomic_write(path) as file:
        file.write("".join(f"# {line}\n" for line in comment.splitlines()).encode())
        tomli_w.dump(sections, file)
