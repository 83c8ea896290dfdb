"""Whether a search space fits the settings that it is searched above."""

from collections.abc import Iterator
from typing import Any

from h2hgcn.errors import DataError
from h2hgcn.experiments.config import Experiment, read_experiment
from h2hgcn.experiments.sections import Sections, merged
from h2hgcn.experiments.spaces import Choice, Range, Space
from h2hgcn.experiments.tuning import Tuning
from h2hgcn.models import ENCODERS
from h2hgcn.tasks.graphs import pools
from h2hgcn.training.settings import torch_seeded

# Enough for any model to be made.
_NODES, _CLASSES = 10, 3

_CENTROIDS = ("task", "num_centroids")


def without_idle(space: Space, base: Experiment) -> Space:
    """The space without the number of centroids, if there are none: a linear classifier has no use for them."""
    encoder = ENCODERS[base.model_name]
    usual = "linear" if encoder.space == "euclidean" or pools(encoder) else "centroids"
    searched = space.get(("task", "classifier"))
    classifiers = searched.values if isinstance(searched, Choice) else (getattr(base.task, "classifier", None),)
    used = not pools(encoder) and any(
        (usual if name in (None, "none") else name) == "centroids" for name in classifiers
    )
    return space if used else {place: dimension for place, dimension in space.items() if place != _CENTROIDS}


def check_space(tuning: Tuning, origin: str, in_features: int) -> None:
    """Raises unless a model of so many features can be made with every choice and with both ends of every range."""
    for place, dimension in tuning.space.items():
        for value in _ends(dimension):
            chosen = [merged(others, _section(place, value)) for others in _surroundings(tuning)]
            problems = [_problem(tuning, settings, in_features) for settings in chosen]
            if all(problems):
                section, option = place
                raise DataError(f"{origin}: [{section}] {option} = {value}: {problems[0]}")


def _surroundings(tuning: Tuning) -> Iterator[Sections]:
    """The settings as they are, and the first and the last of all others: some fit only together."""
    yield {}
    for end in (0, -1):
        yield merged(*(_section(place, _ends(dimension)[end]) for place, dimension in tuning.space.items()))


def _problem(tuning: Tuning, settings: Sections, in_features: int) -> str | None:
    """Why there is no model with these settings, if there is none."""
    try:
        experiment = read_experiment(merged(tuning.flags, settings), tuning.files)
        with torch_seeded(0):
            encoder = experiment.encoder(in_features, num_nodes=_NODES)
            experiment.task.assemble(encoder, in_features, _CLASSES)
    except (ValueError, TypeError) as error:
        return str(error)
    return None


def _ends(dimension: Choice | Range) -> tuple[Any, ...]:
    return dimension.values if isinstance(dimension, Choice) else (dimension.low, dimension.high)


def _section(place: tuple[str, str], value: Any) -> Sections:
    section, option = place
    return {section: {option: value}}
