"""Settings chosen on validation data: a study of trials, each of which is a run or several seeds of it.

Optuna proposes and remembers; what it remembers is a file of its own in the folder of the study. Every trial has a
sampler whose seed is that of the study and the number of the trial, so that a study that was killed goes on as if
nothing had happened (with several processes at once, the order in which they end still decides).
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from h2hgcn.errors import DataError, PlaceError
from h2hgcn.experiments.cells import Cell, Outcome
from h2hgcn.experiments.config import Experiment, read_experiment
from h2hgcn.experiments.proposals import propose, sections_of
from h2hgcn.experiments.sections import Layer, Sections, merged
from h2hgcn.experiments.spaces import Space

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


@dataclass(frozen=True)
class TrialResult:
    """A trial that is over: the mean of the validation metric over seeds, or None if it failed.

    Trials fail whose numbers go bad, or whose settings cannot be run; ``why`` is known when it happens, and not kept.
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
        self._trials: list[int] = []
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

    def finish(self, number: int, outcome: Outcome) -> TrialResult | None:
        """Notes the outcome of the cell of this number; the trial, if it is over with it. Test metrics are not kept."""
        if outcome.error is not None and not _is_of_settings(outcome.error):
            raise outcome.error
        trial = self._trials[number]
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
            flags = merged(tuning.flags, sections_of(parameters), {"seed": seed})
            self._trials.append(trial)
            self._running[trial] += 1
            yield Cell(flags, self._folder(trial) / f"seed{seed}", tuning.files, tuning.root, scratch=True)

    def _folder(self, trial: int) -> Path:
        return self._tuning.folder / "unfinished" / f"trial{trial}"

    def _all(self) -> "list[optuna.trial.FrozenTrial]":
        return self._study.get_trials(deepcopy=False)

    def _result(self, number: int, why: str = "") -> TrialResult:
        trial = self._all()[number]
        return TrialResult(number, trial.value, sections_of(trial.params), why)


def _is_of_settings(error: Exception) -> bool:
    """Whether other settings may do better."""
    return isinstance(error, DataError) and not isinstance(error, PlaceError)
