"""Settings chosen on validation data by Optuna: the search space, and the study of its trials."""

import math
import shutil
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np
import tomli_w
from filelock import FileLock, Timeout

from h2hgcn.datasets.on_disk import fingerprint
from h2hgcn.errors import DataError, DataWarning, PlaceError
from h2hgcn.experiments.config import SPLIT, Experiment, Layer, known_options, open_graph, read_experiment, read_toml
from h2hgcn.experiments.presets import Sections, find_preset, merged, read_packaged
from h2hgcn.experiments.runner import Cell, Outcome, Records
from h2hgcn.files import atomic_write
from h2hgcn.lazy import import_extra
from h2hgcn.models import ENCODERS
from h2hgcn.options import changed_options, checked_options, default_options, plain_options, suggestion
from h2hgcn.tasks.graphs import pools
from h2hgcn.training.settings import TrainingSettings, torch_seeded

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution

# By section and option, such as "model.dim".
Space = dict[str, "BaseDistribution"]

# Options of the task that say what is measured: trials which differ in them cannot be compared.
_MEASURES = ("selection", *SPLIT)


def load_optuna() -> Any:
    """Optuna, which is an extra."""
    optuna = import_extra("optuna", "Optuna", "tune")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def search_space(task: str, model: str, path: Path | None = None) -> Space:
    """What a file asks for; without one, ``spaces/TASK.toml`` and ``spaces/MODEL.toml``, which goes before it.

    An option is a list of values to choose from, or a table with ``low`` and ``high`` (whole numbers stay whole) and,
    for a logarithmic scale, ``log = true``.
    """
    known = known_options(task, model)
    if path is not None:
        sections, origin = read_toml(path), str(path)
    else:
        origin = f"the space of {task} and {model}"
        sections = merged(read_packaged(f"spaces/{task}.toml"), read_packaged(f"spaces/{model}.toml"))
        for section, options in sections.items():
            sections[section] = {name: values for name, values in options.items() if name in known[section]}
    space: Space = {}
    for section, options in sections.items():
        where = f"{origin}: [{section}]"
        if section not in known:
            raise DataError(f"{origin} has a section {section!r}; {suggestion(section, known)}")
        if not isinstance(options, dict):
            raise DataError(f"{origin}: {section} is a section; write [{section}] and its options below")
        for name, values in options.items():
            if section == "task" and name in _MEASURES:
                raise DataError(f"{where} {name}: all trials must have the same; give it with --set task.{name}=VALUE")
            space[f"{section}.{name}"] = _dimension(values, f"{where} {name}")
            for value in _ends_of(space[f"{section}.{name}"]):
                checked_options({name: value}, known[section], where)
    return space


def _dimension(values: Any, where: str) -> "BaseDistribution":
    distributions = load_optuna().distributions
    is_range = isinstance(values, dict) and {"low", "high"} <= set(values) <= {"low", "high", "log"}
    given = [values["low"], values["high"]] if is_range else values
    if not isinstance(given, list) or not given or (is_range and not isinstance(values.get("log", False), bool)):
        raise DataError(f"{where}: give a list of values, or a table such as {{ low = 0.001, high = 0.1, log = true }}")
    if not all(type(value) in ((int, float) if is_range else (bool, int, float, str)) for value in given):
        wanted = "low and high must be numbers" if is_range else "choices are texts, numbers, true or false"
        raise DataError(f"{where}: {wanted}")
    if not all(math.isfinite(value) for value in given if isinstance(value, float)):
        raise DataError(f"{where}: numbers must be finite")
    if not is_range:
        return distributions.CategoricalDistribution(given)
    is_whole = all(isinstance(end, int) for end in given)
    kind = distributions.IntDistribution if is_whole else distributions.FloatDistribution
    try:
        return kind(**values)
    except ValueError as error:  # low above high, or a logarithmic scale from 0
        raise DataError(f"{where}: {error}") from error


def _ends_of(dimension: "BaseDistribution") -> tuple[Any, ...]:
    """All choices, or both ends of a range."""
    return dimension.choices if hasattr(dimension, "choices") else (dimension.low, dimension.high)


@dataclass(frozen=True)
class Tuning:
    """What is tuned: settings below (files and flags), the space above them, and seeds for each trial.

    The first trial has the settings below as they are. ``fingerprint`` is that of the data.
    """

    flags: Sections
    space: Space
    folder: Path
    num_seeds: int = 1
    files: tuple[Layer, ...] = ()
    root: Path | None = None
    fingerprint: str = ""

    @cached_property
    def base(self) -> Experiment:
        return read_experiment(self.flags, self.files)

    @property
    def seeds(self) -> range:
        return range(self.base.seed, self.base.seed + self.num_seeds)


def plan_tuning(
    flags: Sections,
    search: str,
    files: tuple[Layer, ...],
    own_space: Path | None,
    num_seeds: int,
    folder: Path | None,
    root: Path | None,
) -> tuple[Tuning, Experiment, Any, str]:
    """The tuning, the experiment that it starts from with its candidates, its data, and the metric that chooses.

    Everything is checked here, before anything is run. ``own_space`` is a file of what is searched.
    """
    base = read_experiment({**flags, "search": search}, files)
    base.check_held_out()
    space = search_space(base.task.name, base.model_name, own_space)
    settled = [name for name in space if name.split(".")[1] in flags.get(name.split(".")[0], {})]
    if settled and own_space is not None:
        note = f"{', '.join(settled)}: not searched, although {own_space} names it, because the command line sets it"
        warnings.warn(note, DataWarning, stacklevel=2)
    space = {name: dimension for name, dimension in space.items() if name not in settled}
    if not space:
        raise DataError("there is nothing to search; name options in --space, or set fewer on the command line")
    space = space if own_space is not None else without_idle(space, base)
    data = open_graph(base.graph, root)
    problem = base.task.bind(data)
    place = folder or Path("runs") / f"tune-{base.graph.name}-{base.task.name}-{base.model_name}"
    tuning = Tuning(flags, space, place, num_seeds, files, root, fingerprint(data))
    if own_space is not None:
        check_space(tuning, str(own_space), problem.in_features)
    _check_place(place)
    return tuning, base, data, problem.selection_metric


def without_idle(space: Space, base: Experiment) -> Space:
    """The space without the number of centroids, if there are none: a linear classifier has no use for them."""
    encoder = ENCODERS[base.model_name]
    searched = space.get("task.classifier")
    classifiers = (getattr(base.task, "classifier", None),) if searched is None else _ends_of(searched)
    usual = "linear" if encoder.space == "euclidean" else "centroids"
    named = {usual if name in (None, "none") else name for name in classifiers}
    used = "centroids" in named and not pools(encoder)
    return space if used else {name: each for name, each in space.items() if name != "task.num_centroids"}


def check_space(tuning: Tuning, origin: str, in_features: int) -> None:
    """Raises unless a model can be made with every choice, and with both ends of every range.

    The other settings are as they are, or the first or the last of all others: some fit only together.
    """
    ends = {name: _ends_of(dimension) for name, dimension in tuning.space.items()}
    others: list[dict[str, Any]] = [{}, *({name: ends[name][end] for name in ends} for end in (0, -1))]
    for name, values in ends.items():
        for value in values:
            problems = [_problem(tuning, {**other, name: value}, in_features) for other in others]
            if all(problems):
                section, option = name.split(".")
                raise DataError(f"{origin}: [{section}] {option} = {value}: {problems[0]}")


def _problem(tuning: Tuning, parameters: dict[str, Any], in_features: int) -> str | None:
    """Why there is no model with these settings, if there is none."""
    try:
        experiment = read_experiment(merged(tuning.flags, _nested(parameters)), tuning.files)
        with torch_seeded(0):
            encoder = experiment.encoder(in_features, num_nodes=10)
            experiment.task.assemble(encoder, in_features, 3)
    except (ValueError, TypeError) as error:
        return str(error)
    return None


def _nested(parameters: Mapping[str, Any]) -> Sections:
    """``{"model.dim": 16}`` as ``{"model": {"dim": 16}}``."""
    places = ((*name.split(".", 1), value) for name, value in parameters.items())
    return merged(*({section: {option: value}} for section, option, value in places))


@dataclass(frozen=True)
class TrialResult:
    """A trial that is over: the mean of the validation metric over seeds, or None if it failed.

    A trial fails on NaN or invalid settings; ``why`` is known when it happens, and not kept.
    """

    number: int
    score: float | None
    settings: Sections
    why: str = ""


# Random trials before the sampler learns from what it has seen.
_RANDOM_TRIALS = 10


class Study:
    """The trials of a tuning: those that are done, and those to come."""

    def __init__(self, tuning: Tuning, study: "optuna.Study") -> None:
        self._tuning = tuning
        self._study = study
        # of trials that are not over: how many of their cells run, and scores by now
        self._running: dict[int, int] = {}
        self._scores: dict[int, list[float]] = {}

    def cells(self, num_trials: int) -> Iterator[Cell]:
        """The runs that are missing, each proposed when it is asked for; what a killed process began comes first."""
        for trial in self._trials():
            if trial.state.name == "RUNNING":
                yield from self._cells_of(trial.number, trial.params)
            else:
                shutil.rmtree(self._folder(trial.number), ignore_errors=True)
        while (number := len(self._trials())) < num_trials:
            yield from self._cells_of(number, self._propose())

    def finish(self, cell: Cell, outcome: Outcome) -> TrialResult | None:
        """Records the outcome of a cell; returns the trial if it is finished. Test metrics are not kept."""
        import optuna

        error = outcome.error
        if error is not None and (not isinstance(error, DataError) or isinstance(error, PlaceError)):
            raise error  # other settings would not help
        trial, score, result = cell.key, outcome.score("val"), None
        self._running[trial] -= 1
        if trial in self._scores:  # no other seed of it has failed
            if score is None:
                del self._scores[trial]
                self._study.tell(trial, state=optuna.trial.TrialState.FAIL)
                result = self._result(trial, outcome.message)
            else:
                self._scores[trial].append(score)
                if len(self._scores[trial]) == self._tuning.num_seeds:
                    self._study.tell(trial, fmean(self._scores.pop(trial)))
                    result = self._result(trial)
        if trial not in self._scores and not self._running[trial]:
            shutil.rmtree(self._folder(trial), ignore_errors=True)
        return result

    @property
    def results(self) -> list[TrialResult]:
        """The trials that are over, the best first."""
        over = [self._result(trial.number) for trial in self._trials() if trial.state.is_finished()]
        return sorted(over, key=lambda result: (result.score is None, -(result.score or 0), result.number))

    def _cells_of(self, trial: int, parameters: dict[str, Any]) -> Iterator[Cell]:
        tuning = self._tuning
        self._scores[trial], self._running[trial] = [], 0
        for seed in tuning.seeds:
            if trial not in self._scores:  # another seed of it has failed
                return
            flags = merged(tuning.flags, _nested(parameters), {"seed": seed})
            self._running[trial] += 1
            yield Cell(flags, self._folder(trial) / f"seed{seed}", trial, tuning.files, tuning.root, scratch=True)

    def _propose(self) -> dict[str, Any]:
        """Adds a trial; its parameters. The first has the settings before tuning, and nothing is drawn for it.

        Others are drawn in memory and added whole, so that a killed process leaves no partial trial.
        """
        import optuna

        trials, space, base = self._trials(), self._tuning.space, self._tuning.base
        if trials:
            number = int(np.random.SeedSequence([base.seed, len(trials)]).generate_state(1)[0])
            sampler = optuna.samplers.TPESampler(n_startup_trials=_RANDOM_TRIALS, seed=number)
            copy = optuna.create_study(direction="maximize", sampler=sampler)
            copy.add_trials(trials)
            parameters = dict(copy.ask(space).params)
        else:
            parameters = _present(space, base)
        distributions = {name: space[name] for name in parameters}
        state = optuna.trial.TrialState.RUNNING
        self._study.add_trial(optuna.create_trial(state=state, params=parameters, distributions=distributions))
        return parameters

    def _folder(self, trial: int) -> Path:
        return self._tuning.folder / "unfinished" / f"trial{trial}"

    def _trials(self) -> "list[optuna.trial.FrozenTrial]":
        return self._study.get_trials(deepcopy=False)

    def _result(self, number: int, why: str = "") -> TrialResult:
        trial = self._trials()[number]
        return TrialResult(number, trial.value, _nested(trial.params), why)


def _present(space: Space, base: Experiment) -> dict[str, Any]:
    """The settings before tuning, where they lie in the space; others stay as they are."""
    model = {**default_options(ENCODERS[base.model_name]), **base.model_options}
    sections = {**base.sections, "model": model}
    found = {}
    for name, dimension in space.items():
        section, option = name.split(".")
        value = plain_options({option: sections[section].get(option)})[option]
        if hasattr(dimension, "choices"):
            inside = value in dimension.choices
        else:
            kind = int if isinstance(dimension.low, int) else int | float
            inside = isinstance(value, kind) and dimension.low <= value <= dimension.high
        if inside:
            found[name] = value
    return found


_JOURNAL = "study.journal"
_ADVICE = "restore it from a copy, or start again in another folder with --out"
_WORDS = {"data": "other data", "settings": "other settings", "seeds": "other seeds", "space": "another search space"}


@contextmanager
def open_study(tuning: Tuning) -> Iterator[Study]:
    """The study in a folder, a new one or one to resume; no other process has it at the same time."""
    optuna = load_optuna()
    path = tuning.folder / _JOURNAL
    _check_place(tuning.folder)
    tuning.folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(tuning.folder / ".lock", timeout=0):
            _repair(path)
            try:
                lock = optuna.storages.journal.JournalFileOpenLock(str(path))
                backend = optuna.storages.journal.JournalFileBackend(str(path), lock_obj=lock)
                storage = optuna.storages.JournalStorage(backend)
                study = optuna.create_study(
                    storage=storage, study_name="study", direction="maximize", load_if_exists=True
                )
            except (KeyError, TypeError, ValueError, IndexError, AttributeError, AssertionError) as error:
                raise DataError(f"{path} is damaged ({type(error).__name__}: {error}); {_ADVICE}") from error
            _check_same(study, tuning)
            yield Study(tuning, study)
    except Timeout:
        raise DataError(f"another process tunes in {tuning.folder}; wait for it, or choose another folder") from None


def _check_place(folder: Path) -> None:
    """Raises if a folder is of something else, whose files a study might replace."""
    if folder.is_file():
        raise DataError(f"{folder} is a file; choose a folder with --out")
    if folder.is_dir() and not (folder / _JOURNAL).exists():
        others = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
        if others:
            raise DataError(f"{folder} holds {others[0]}, but no study; choose a new or empty folder with --out")


def _check_same(study: "optuna.Study", tuning: Tuning) -> None:
    """A study has one setting of everything that its trials share."""
    identity = {
        "data": tuning.fingerprint,
        "settings": tuning.base.digest,
        "seeds": [tuning.base.seed, tuning.num_seeds],
        "space": {name: repr(dimension) for name, dimension in tuning.space.items()},
    }
    known = study.user_attrs.get("identity", {})
    if not known and not study.get_trials(deepcopy=False):
        study.set_user_attr("identity", identity)
        return
    differing = [words for name, words in _WORDS.items() if known.get(name) != identity[name]]
    if differing:
        raise DataError(f"{tuning.folder} holds a study with {', '.join(differing)}; choose another folder with --out")


def _repair(path: Path) -> None:
    """Removes what a killed process left: a lock, and a line that was cut short. Nobody else has the folder."""
    path.with_name(f"{path.name}.lock").unlink(missing_ok=True)
    written = path.read_bytes() if path.exists() else b""
    broken = [number for number, record in Records(path).numbered() if record is None]
    if not written or (written.endswith(b"\n") and not broken):
        return
    end = written.rfind(b"\n") + 1
    cut = end < len(written) and broken[-1:] == [written.count(b"\n") + 1]
    if len(broken) > cut:
        raise DataError(f"{path}: line {broken[0]} is damaged; {_ADVICE}")
    with atomic_write(path) as file:
        file.write(written[:end] if cut else written + b"\n")  # a whole line may lack its end alone


def write_settings(path: Path, tuning: Tuning, result: TrialResult, comment: str) -> None:
    """The settings of a trial as a configuration file: all that differs from defaults, or that a preset may say."""
    experiment = read_experiment(merged(tuning.flags, result.settings), tuning.files)
    task, model = experiment.task, experiment.model_name
    preset = find_preset(experiment.graph.dataset, task.name, model, task.protocol)
    said = merged(preset.settings, {"task": {"protocol": task.protocol}}, result.settings)
    targets = {"task": type(task), "model": ENCODERS[model], "training": TrainingSettings}
    sections: Sections = {"seed": experiment.seed, "data": experiment.graph.options, "task": {"name": task.name}}
    sections |= {"model": {"name": model}, "training": {}}
    for section, options in experiment.sections.items():
        telling = changed_options(options, targets[section]).keys() | said.get(section, {}).keys()
        sections[section] |= plain_options({name: value for name, value in options.items() if name in telling})
    with atomic_write(path) as file:
        file.write("".join(f"# {line}\n" for line in comment.splitlines()).encode())
        tomli_w.dump(sections, file)
