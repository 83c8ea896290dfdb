"""Settings chosen on validation data: a study of trials, each of which is a run or several seeds of it.

Optuna proposes and remembers; what it remembers is a file of its own in the folder of the study. Every trial has a
sampler whose seed is that of the study and the number of the trial, so that a study that was killed goes on as if
nothing had happened (with several processes at once, the order in which they end still decides).
"""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import tomli_w
from filelock import FileLock, Timeout

from h2hgcn.atomic import atomic_write
from h2hgcn.errors import DataError
from h2hgcn.experiments.cells import Cell, Outcome
from h2hgcn.experiments.config import Experiment, read_experiment
from h2hgcn.experiments.presets import preset
from h2hgcn.experiments.sections import Sections, merged
from h2hgcn.experiments.spaces import Choice, Range, Space
from h2hgcn.models import ENCODERS
from h2hgcn.options import changed_options, default_options, plain_options

if TYPE_CHECKING:
    import optuna

_STUDY = "study"
# Draws before the sampler learns from what it has seen.
_RANDOM_TRIALS = 10


@dataclass(frozen=True)
class Tuning:
    """What is tuned: settings below (a configuration file and flags), the space above them, and seeds for each trial.

    The first trial has the settings below as they are, as far as they lie in the space.
    """

    flags: Sections
    space: Space
    folder: Path
    num_seeds: int = 1
    config: Path | None = None
    root: Path | None = None

    @property
    def base(self) -> Experiment:
        return read_experiment(self.flags, self.config)

    @property
    def seeds(self) -> range:
        return range(self.base.seed, self.base.seed + self.num_seeds)


@dataclass(frozen=True)
class TrialResult:
    """A trial that is over: the mean of the validation metric over seeds, or None if its numbers went bad."""

    number: int
    score: float | None
    settings: Sections


class Study:
    """The trials of a tuning: those that are done, and those to come."""

    def __init__(self, tuning: Tuning, study: "optuna.Study") -> None:
        self._tuning = tuning
        self._study = study
        self._trials: list[int] = []
        self._scores: dict[int, list[float]] = {}

    def cells(self, num_trials: int) -> Iterator[Cell]:
        """The runs that are missing, each proposed when it is asked for; what a killed process began comes first."""
        for trial in self._study.get_trials(deepcopy=False):
            if trial.state.name == "RUNNING":
                yield from self._cells_of(trial.number, trial.params)
        while len(self._study.get_trials(deepcopy=False)) < num_trials or self._is_waiting():
            yield from self._next_cells()

    def finish(self, number: int, outcome: Outcome) -> TrialResult | None:
        """Notes the outcome of the cell of this number; the trial, if it is over with it. Test metrics are not kept."""
        import optuna

        trial = self._trials[number]
        if trial not in self._scores:  # another seed of it has diverged
            return None
        if outcome.status == "diverged":
            del self._scores[trial]
            self._study.tell(trial, state=optuna.trial.TrialState.FAIL)
            return self._over(trial)
        self._scores[trial].append(float(outcome.result["metrics"]["val"][outcome.result["selection"]]))
        if len(self._scores[trial]) < self._tuning.num_seeds:
            return None
        self._study.tell(trial, fmean(self._scores.pop(trial)))
        return self._over(trial)

    @property
    def results(self) -> list[TrialResult]:
        """The trials that are over, the best first."""
        over = [
            self._result(trial.number) for trial in self._study.get_trials(deepcopy=False) if trial.state.is_finished()
        ]
        return sorted(over, key=lambda result: (result.score is None, -(result.score or 0), result.number))

    def _next_cells(self) -> Iterator[Cell]:
        import optuna

        number = len(self._study.get_trials(deepcopy=False))
        self._study.sampler = optuna.samplers.TPESampler(
            n_startup_trials=_RANDOM_TRIALS, seed=_SEED_STEP * self._tuning.base.seed + number
        )
        trial = self._study.ask()
        for (section, option), dimension in self._tuning.space.items():
            _suggest(trial, f"{section}.{option}", dimension)
        yield from self._cells_of(trial.number, trial.params)

    def _is_waiting(self) -> bool:
        return any(trial.state.name == "WAITING" for trial in self._study.get_trials(deepcopy=False))

    def _cells_of(self, trial: int, parameters: dict[str, Any]) -> Iterator[Cell]:
        tuning = self._tuning
        self._scores[trial] = []
        for seed in tuning.seeds:
            flags = merged(tuning.flags, _sections(parameters), {"seed": seed})
            self._trials.append(trial)
            yield Cell(flags, self._folder(trial) / f"seed{seed}", tuning.config, tuning.root)

    def _over(self, trial: int) -> TrialResult:
        shutil.rmtree(self._folder(trial), ignore_errors=True)
        return self._result(trial)

    def _folder(self, trial: int) -> Path:
        return self._tuning.folder / "unfinished" / f"trial{trial}"

    def _result(self, number: int) -> TrialResult:
        trial = self._study.get_trials(deepcopy=False)[number]
        return TrialResult(number, trial.value, _sections(trial.params))


# Between the seeds of the samplers of two studies: more than a study has trials.
_SEED_STEP = 100_000


@contextmanager
def open_study(tuning: Tuning) -> Iterator[Study]:
    """The study in a folder, a new one or one to go on with; no other process has it at the same time."""
    optuna = _optuna()
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

    tuning.folder.mkdir(parents=True, exist_ok=True)
    path = tuning.folder / "study.journal"
    try:
        with FileLock(tuning.folder / ".lock", timeout=0):
            _mend(path)
            backend = JournalFileBackend(str(path), lock_obj=JournalFileOpenLock(str(path)))
            study = optuna.create_study(
                storage=JournalStorage(backend), study_name=_STUDY, direction="maximize", load_if_exists=True
            )
            _check_same(study, tuning)
            yield Study(tuning, study)
    except Timeout:
        raise DataError(f"another process tunes in {tuning.folder}; wait for it, or choose another folder") from None


def write_settings(path: Path, tuning: Tuning, result: TrialResult, comment: str) -> None:
    """The settings of a trial as a configuration file: all that differs from defaults, or that a preset may say."""
    experiment = read_experiment(merged(tuning.flags, result.settings), tuning.config)
    task = experiment.task
    known = preset(experiment.graph.dataset, task.name, experiment.model_name, task.protocol)[1]
    said = merged(known, {"task": {"protocol": task.protocol}}, result.settings)
    given: dict[str, tuple[Sections, Any]] = {
        "task": (asdict(task), type(task)),
        "model": (experiment.model_options, ENCODERS[experiment.model_name]),
        "training": (asdict(experiment.settings), type(experiment.settings)),
    }
    sections: Sections = {"data": experiment.graph.options, "task": {"name": task.name}}
    sections["model"] = {"name": experiment.model_name}
    for section, (options, target) in given.items():
        telling = changed_options(options, target).keys() | said.get(section, {}).keys()
        chosen = plain_options({name: value for name, value in options.items() if name in telling})
        sections[section] = sections.get(section, {}) | chosen
    with atomic_write(path) as file:
        file.write("".join(f"# {line}\n" for line in comment.splitlines()).encode())
        tomli_w.dump(sections, file)


def _check_same(study: "optuna.Study", tuning: Tuning) -> None:
    """A study is of one setting; the first trial of a new one is what there was before."""
    space = {f"{section}.{option}": repr(value) for (section, option), value in tuning.space.items()}
    identity = json.dumps([tuning.base.digest, tuning.base.seed, tuning.num_seeds, space])
    known = study.user_attrs.get("identity")
    if known is not None and known != identity:
        raise DataError(f"{tuning.folder} holds a study of other settings; choose another folder with --out")
    if known is None:
        study.enqueue_trial(_present(tuning))
        study.set_user_attr("identity", identity)


def _present(tuning: Tuning) -> dict[str, Any]:
    """The settings before tuning, where they lie in the space."""
    base = tuning.base
    model = {**default_options(ENCODERS[base.model_name]), **base.model_options}
    sections = {"task": asdict(base.task), "model": model, "training": asdict(base.settings)}
    found = {}
    for (section, option), dimension in tuning.space.items():
        value = plain_options({option: sections[section].get(option)})[option]
        if _contains(dimension, value):
            found[f"{section}.{option}"] = value
    return found


def _contains(dimension: Choice | Range, value: Any) -> bool:
    if isinstance(dimension, Choice):
        return value in dimension.values
    return isinstance(value, int | float) and dimension.low <= value <= dimension.high


def _suggest(trial: "optuna.Trial", name: str, dimension: Choice | Range) -> None:
    if isinstance(dimension, Choice):
        trial.suggest_categorical(name, dimension.values)
    elif isinstance(dimension.low, int) and isinstance(dimension.high, int):
        trial.suggest_int(name, dimension.low, dimension.high, log=dimension.log)
    else:
        trial.suggest_float(name, dimension.low, dimension.high, log=dimension.log)


def _sections(parameters: dict[str, Any]) -> Sections:
    """``{"model.dim": 16}`` as sections."""
    return merged(*({section: {option: value}} for (section, option), value in _split(parameters)))


def _split(parameters: dict[str, Any]) -> Iterator[tuple[tuple[str, str], Any]]:
    for name, value in parameters.items():
        section, _, option = name.partition(".")
        yield (section, option), value


def _mend(path: Path) -> None:
    """Takes away what a killed process left: a lock, and a line that was cut short. Nobody else has the folder."""
    path.with_name(f"{path.name}.lock").unlink(missing_ok=True)
    if path.exists():
        written = path.read_bytes()
        whole = written[: written.rfind(b"\n") + 1]
        if len(whole) < len(written):
            with atomic_write(path) as file:
                file.write(whole)


def _optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise DataError("tuning needs Optuna; install it with: pip install h2hgcn[tune]") from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna
