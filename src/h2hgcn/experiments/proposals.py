"""What Optuna proposes, and how it is written down: a trial is one line of the journal, which is whole or not there."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from h2hgcn.experiments.config import Experiment
from h2hgcn.experiments.sections import Sections, merged
from h2hgcn.experiments.spaces import Choice, Range, Space
from h2hgcn.models import ENCODERS
from h2hgcn.options import default_options, plain_options

if TYPE_CHECKING:
    import optuna

# Draws before the sampler learns from what it has seen.
_RANDOM_TRIALS = 10


def propose(study: "optuna.Study", space: Space, base: Experiment) -> dict[str, Any]:
    """Adds a trial to the study; its parameters. The first has the settings of ``base``, and nothing is drawn."""
    import optuna

    trials = study.get_trials(deepcopy=False)
    parameters = _drawn(trials, space, base.seed) if trials else _present(space, base)
    distributions = {_name(place): _distribution(dimension) for place, dimension in space.items()}
    study.add_trial(
        optuna.trial.create_trial(
            state=optuna.trial.TrialState.RUNNING,
            params=parameters,
            distributions={name: distributions[name] for name in parameters},
        )
    )
    return parameters


def sections_of(parameters: dict[str, Any]) -> Sections:
    """``{"model.dim": 16}`` as sections."""
    places = ((*name.split(".", 1), value) for name, value in parameters.items())
    return merged(*({section: {option: value}} for section, option, value in places))


def _drawn(trials: "list[optuna.trial.FrozenTrial]", space: Space, seed: int) -> dict[str, Any]:
    """What a sampler that knows these trials draws, in memory."""
    import optuna

    number = int(np.random.SeedSequence([seed, len(trials)]).generate_state(1)[0])
    sampler = optuna.samplers.TPESampler(n_startup_trials=_RANDOM_TRIALS, seed=number)
    copy = optuna.create_study(direction="maximize", sampler=sampler)
    copy.add_trials(trials)
    trial = copy.ask({_name(place): _distribution(dimension) for place, dimension in space.items()})
    return dict(trial.params)


def _present(space: Space, base: Experiment) -> dict[str, Any]:
    """The settings before tuning, where they lie in the space; others stay as they are."""
    model = {**default_options(ENCODERS[base.model_name]), **base.model_options}
    sections = {"task": asdict(base.task), "model": model, "training": asdict(base.settings)}
    found = {}
    for (section, option), dimension in space.items():
        value = plain_options({option: sections[section].get(option)})[option]
        if _contains(dimension, value):
            found[_name((section, option))] = value
    return found


def _contains(dimension: Choice | Range, value: Any) -> bool:
    if isinstance(dimension, Choice):
        return value in dimension.values
    kind = int if dimension.is_whole else int | float
    return isinstance(value, kind) and dimension.low <= value <= dimension.high


def _distribution(dimension: Choice | Range) -> "optuna.distributions.BaseDistribution":
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(dimension, Choice):
        return CategoricalDistribution(dimension.values)
    if dimension.is_whole:
        return IntDistribution(int(dimension.low), int(dimension.high), log=dimension.log)
    return FloatDistribution(dimension.low, dimension.high, log=dimension.log)


def _name(place: tuple[str, str]) -> str:
    return ".".join(place)
