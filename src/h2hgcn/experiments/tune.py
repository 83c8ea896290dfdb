"""Settings chosen on validation data by Optuna."""

import json
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np
import tomli_w
from filelock import FileLock, Timeout

from h2hgcn.datasets.on_disk import fingerprint
from h2hgcn.errors import DataError, DataWarning, PlaceError
from h2hgcn.experiments.config import Experiment, Layer, Sections, find_preset, merged, open_graph, read_experiment
from h2hgcn.experiments.runner import Cell, Outcome
from h2hgcn.experiments.spaces import Space, ends_of, load_optuna, search_space
from h2hgcn.files import atomic_write
from h2hgcn.models import ENCODERS
from h2hgcn.options import changed_options, default_options, plain_options
from h2hgcn.tasks.graphs import pools
from h2hgcn.training.settings import torch_seeded

if TYPE_CHECKING:
    import optuna


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
    space = _unsettled(search_space(base.task.name, base.model_name, own_space), flags, own_space)
    space = space if own_space is not None else without_idle(space, base)
    data = open_graph(base.graph, root)
    problem = base.task.bind(data)
    place = folder or Path("runs") / f"tune-{base.graph.name}-{base.task.name}-{base.model_name}"
    tuning = Tuning(flags, space, place, num_seeds, files, root, fingerprint(data))
    if own_space is not None:
        check_space(tuning, str(own_space), problem.in_features)
    check_place(place)
    return tuning, base, data, problem.selection_metric


def _unsettled(space: Space, flags: Sections, own_space: Path | None) -> Space:
    """The space without the options that flags set; a warning names those of the user's own space."""
    settled = [name for name in space if name.split(".")[1] in flags.get(name.split(".")[0], {})]
    if settled and own_space is not None:
        note = f"{', '.join(settled)}: not searched, although {own_space} names it, because the command line sets it"
        warnings.warn(note, DataWarning, stacklevel=3)
    left = {name: dimension for name, dimension in space.items() if name not in settled}
    if not left:
        raise DataError("there is nothing to search; name options in --space, or set fewer on the command line")
    return left


@dataclass(frozen=True)
class TrialResult:
    """A trial that is over: the mean of the validation metric over seeds, or None if it failed.

    A trial fails on NaN or invalid settings; ``why`` is known when it happens, and not kept.
    """

    number: int
    score: float | None
    settings: Sections
    why: str = ""


class Study:
    """The trials of a tuning: those that are done, and those to come."""

    def __init__(self, tuning: Tuning, study: "optuna.Study") -> None:
        self._tuning = tuning
        self._study = study
        self._running: dict[int, int] = {}
        self._scores: dict[int, list[float]] = {}

    def cells(self, num_trials: int) -> Iterator[Cell]:
        """The runs that are missing, each proposed when it is asked for; what a killed process began comes first."""
        for trial in self._all():
            if trial.state.name == "RUNNING":
                yield from self._cells_of(trial.number, trial.params)
            else:
                shutil.rmtree(self._folder(trial.number), ignore_errors=True)
        while (number := len(self._all())) < num_trials:
            yield from self._cells_of(number, propose(self._study, self._tuning.space, self._tuning.base))

    def finish(self, cell: Cell, outcome: Outcome) -> TrialResult | None:
        """Records the outcome of a cell; returns the trial if it is finished. Test metrics are not kept."""
        if outcome.error is not None and not _is_of_settings(outcome.error):
            raise outcome.error
        trial = cell.key
        self._running[trial] -= 1
        result = self._noted(trial, outcome) if trial in self._scores else None
        if trial not in self._scores and not self._running[trial]:
            shutil.rmtree(self._folder(trial), ignore_errors=True)
        return result

    @property
    def results(self) -> list[TrialResult]:
        """The trials that are over, the best first."""
        over = [self._result(trial.number) for trial in self._all() if trial.state.is_finished()]
        return sorted(over, key=lambda result: (result.score is None, -(result.score or 0), result.number))

    def _noted(self, trial: int, outcome: Outcome) -> TrialResult | None:
        import optuna

        score = outcome.score("val")
        if score is None:
            del self._scores[trial]
            self._study.tell(trial, state=optuna.trial.TrialState.FAIL)
            return self._result(trial, outcome.message)
        self._scores[trial].append(score)
        if len(self._scores[trial]) < self._tuning.num_seeds:
            return None
        self._study.tell(trial, fmean(self._scores.pop(trial)))
        return self._result(trial)

    def _cells_of(self, trial: int, parameters: dict[str, Any]) -> Iterator[Cell]:
        tuning = self._tuning
        self._scores[trial], self._running[trial] = [], 0
        for seed in tuning.seeds:
            if trial not in self._scores:  # another seed of it has failed
                return
            flags = merged(tuning.flags, nested(parameters), {"seed": seed})
            self._running[trial] += 1
            yield Cell(flags, self._folder(trial) / f"seed{seed}", trial, tuning.files, tuning.root, scratch=True)

    def _folder(self, trial: int) -> Path:
        return self._tuning.folder / "unfinished" / f"trial{trial}"

    def _all(self) -> "list[optuna.trial.FrozenTrial]":
        return self._study.get_trials(deepcopy=False)

    def _result(self, number: int, why: str = "") -> TrialResult:
        trial = self._all()[number]
        return TrialResult(number, trial.value, nested(trial.params), why)


def _is_of_settings(error: Exception) -> bool:
    """Whether other settings may do better."""
    return isinstance(error, DataError) and not isinstance(error, PlaceError)


# Draws before the sampler learns from what it has seen.
_RANDOM_TRIALS = 10


def propose(study: "optuna.Study", space: Space, base: Experiment) -> dict[str, Any]:
    """Adds a trial to the study; its parameters. The first has the settings of ``base``, and nothing is drawn."""
    import optuna

    trials = study.get_trials(deepcopy=False)
    parameters = _drawn(trials, space, base.seed) if trials else _present(space, base)
    study.add_trial(
        optuna.trial.create_trial(
            state=optuna.trial.TrialState.RUNNING,
            params=parameters,
            distributions={name: space[name] for name in parameters},
        )
    )
    return parameters


def nested(parameters: dict[str, Any]) -> Sections:
    """``{"model.dim": 16}`` as ``{"model": {"dim": 16}}``."""
    places = ((*name.split(".", 1), value) for name, value in parameters.items())
    return merged(*({section: {option: value}} for section, option, value in places))


def _drawn(trials: "list[optuna.trial.FrozenTrial]", space: Space, seed: int) -> dict[str, Any]:
    """What a sampler that knows these trials draws, in memory."""
    import optuna

    number = int(np.random.SeedSequence([seed, len(trials)]).generate_state(1)[0])
    sampler = optuna.samplers.TPESampler(n_startup_trials=_RANDOM_TRIALS, seed=number)
    copy = optuna.create_study(direction="maximize", sampler=sampler)
    copy.add_trials(trials)
    return dict(copy.ask(space).params)


def _present(space: Space, base: Experiment) -> dict[str, Any]:
    """The settings before tuning, where they lie in the space; others stay as they are."""
    model = {**default_options(ENCODERS[base.model_name]), **base.model_options}
    sections = {"task": asdict(base.task), "model": model, "training": asdict(base.settings)}
    found = {}
    for name, dimension in space.items():
        section, option = name.split(".")
        value = plain_options({option: sections[section].get(option)})[option]
        if _contains(dimension, value):
            found[name] = value
    return found


def _contains(dimension: "optuna.distributions.BaseDistribution", value: Any) -> bool:
    if hasattr(dimension, "choices"):
        return value in dimension.choices
    kind = int if isinstance(dimension.low, int) else int | float
    return isinstance(value, kind) and dimension.low <= value <= dimension.high


_STUDY = "study"
_LOCK = ".lock"
_JOURNAL = "study.journal"
_WORDS = {
    "data": "other data", "settings": "other settings", "seeds": "other seeds", "space": "another search space",
}  # fmt: skip


@contextmanager
def open_study(tuning: Tuning) -> Iterator[Study]:
    """The study in a folder, a new one or one to resume; no other process has it at the same time."""
    optuna = load_optuna()
    path = tuning.folder / _JOURNAL
    check_place(tuning.folder)
    tuning.folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(tuning.folder / _LOCK, timeout=0):
            _mend(path)
            study = _opened(optuna, path)
            _check_same(study, tuning)
            yield Study(tuning, study)
    except Timeout:
        raise DataError(f"another process tunes in {tuning.folder}; wait for it, or choose another folder") from None


def check_place(folder: Path) -> None:
    """Raises if a folder is of something else, whose files a study might replace."""
    if folder.is_file():
        raise DataError(f"{folder} is a file; choose a folder with --out")
    if folder.is_dir() and not (folder / _JOURNAL).exists():
        others = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
        if others:
            raise DataError(f"{folder} holds {others[0]}, but no study; choose a new or empty folder with --out")


def _opened(optuna: Any, path: Path) -> "optuna.Study":
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

    try:
        backend = JournalFileBackend(str(path), lock_obj=JournalFileOpenLock(str(path)))
        return optuna.create_study(
            storage=JournalStorage(backend), study_name=_STUDY, direction="maximize", load_if_exists=True
        )
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, AssertionError) as error:
        raise DataError(f"{path} is damaged ({type(error).__name__}: {error}); {_ADVICE}") from error


_ADVICE = "restore it from a copy, or start again in another folder with --out"


def _check_same(study: "optuna.Study", tuning: Tuning) -> None:
    """A study is of one setting."""
    identity = {
        "data": tuning.fingerprint,
        "settings": tuning.base.digest,
        "seeds": [tuning.base.seed, tuning.num_seeds],
        "space": {name: repr(dimension) for name, dimension in tuning.space.items()},
    }
    known = study.user_attrs.get("identity")
    if known is None and not study.get_trials(deepcopy=False):
        study.set_user_attr("identity", identity)
        return
    there = known if isinstance(known, dict) else {}
    differing = [words for name, words in _WORDS.items() if there.get(name) != identity[name]]
    if differing:
        raise DataError(f"{tuning.folder} holds a study with {', '.join(differing)}; choose another folder with --out")


def _mend(path: Path) -> None:
    """Takes away what a killed process left: a lock, and a line that was cut short. Nobody else has the folder."""
    path.with_name(f"{path.name}.lock").unlink(missing_ok=True)
    if not path.exists():
        return
    written = path.read_bytes()
    end = written.rfind(b"\n") + 1
    # of a last line that was not cut short, nothing but its end is missing
    whole = written + b"\n" if _is_json(written[end:]) else written[:end]
    for number, line in enumerate(whole.split(b"\n")[:-1], 1):
        if not _is_json(line):
            raise DataError(f"{path}: line {number} is damaged; {_ADVICE}")
    if whole != written:
        with atomic_write(path) as file:
            file.write(whole)


def _is_json(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


# Enough for any model to be made.
_NODES, _CLASSES = 10, 3

_CENTROIDS = "task.num_centroids"


def without_idle(space: Space, base: Experiment) -> Space:
    """The space without the number of centroids, if there are none: a linear classifier has no use for them."""
    encoder = ENCODERS[base.model_name]
    usual = "linear" if encoder.space == "euclidean" or pools(encoder) else "centroids"
    searched = space.get("task.classifier")
    classifiers = (getattr(base.task, "classifier", None),) if searched is None else ends_of(searched)
    used = not pools(encoder) and any(
        (usual if name in (None, "none") else name) == "centroids" for name in classifiers
    )
    return space if used else {name: dimension for name, dimension in space.items() if name != _CENTROIDS}


def check_space(tuning: Tuning, origin: str, in_features: int) -> None:
    """Raises unless a model of so many features can be made with every choice and with both ends of every range."""
    for name, dimension in tuning.space.items():
        for value in ends_of(dimension):
            chosen = [merged(others, nested({name: value})) for others in _surroundings(tuning)]
            problems = [_problem(tuning, settings, in_features) for settings in chosen]
            if all(problems):
                section, option = name.split(".")
                raise DataError(f"{origin}: [{section}] {option} = {value}: {problems[0]}")


def _surroundings(tuning: Tuning) -> Iterator[Sections]:
    """The settings as they are, and the first and the last of all others: some fit only together."""
    yield {}
    for end in (0, -1):
        yield nested({name: ends_of(dimension)[end] for name, dimension in tuning.space.items()})


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
