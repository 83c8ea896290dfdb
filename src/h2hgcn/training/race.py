"""Successive halving: several settings are trained for some epochs each, then the better half of them for more."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from h2hgcn.errors import DamagedRunError, NonFiniteError
from h2hgcn.files import atomic_write
from h2hgcn.tasks.base import Task
from h2hgcn.training.batching import plan_batches
from h2hgcn.training.building import EncoderFactory, build_model
from h2hgcn.training.loop import TrainingState, load_checkpoint, save_checkpoint, train
from h2hgcn.training.optimizers import build_optimizer_of
from h2hgcn.training.settings import TrainingSettings, limited_threads, one_at_a_time

# What a candidate may fail with, the first that fits.
FAILURES = (NonFiniteError, MemoryError, RuntimeError, ValueError)


@dataclass(frozen=True)
class Candidate:
    """Settings that take part in a race; of equally good ones the first wins."""

    name: str
    task: Task
    model: EncoderFactory
    settings: TrainingSettings


@dataclass(frozen=True)
class Standing:
    """The result of a candidate: its best validation ``score`` within ``epochs``, or why it ``failed``.

    ``error`` is the name of one of ``FAILURES``.
    """

    name: str
    epochs: int = 0
    score: float | None = None
    failed: str | None = None
    error: str | None = None


def race(
    candidates: Sequence[Candidate],
    data: Any,
    seed: int,
    folder: Path,
    rungs: Sequence[int],
    on_epoch: Callable[[str], None] = lambda name: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> list[Standing] | None:
    """The standings, the winner first; None if the race was stopped. The same call resumes it from ``folder``.

    Every candidate is trained up to ``rungs[0]`` epochs, the better half of them up to ``rungs[1]``, and so on. The
    validation metric decides; test data are not used. A candidate that fails (NaN, memory, settings that do not fit the
    data) is dropped. The result depends on the arguments alone, not on where a race was interrupted.
    """
    standings = {candidate.name: Standing(candidate.name) for candidate in candidates}
    alive = []
    for one in candidates:  # each gets a score on the first rung
        settings = replace(one.settings, eval_every=min(one.settings.eval_every, rungs[0]))
        alive.append(replace(one, settings=settings))
    for epochs in rungs:
        for candidate in alive:
            record = folder / f"{candidate.name}-{epochs}.json"
            try:
                standing: Standing | None = Standing(**json.loads(record.read_bytes()))
            except (FileNotFoundError, ValueError, TypeError, RecursionError):  # not there, or damaged
                standing = None
            if standing is None:
                with one_at_a_time():
                    standing = _advance(candidate, data, seed, folder, epochs, on_epoch, should_stop)
                if standing is None:
                    return None
                with atomic_write(record) as file:
                    file.write(json.dumps(asdict(standing)).encode())
            standings[candidate.name] = standing
        ranked = _ranked(standings[candidate.name] for candidate in alive)
        kept = {standing.name for standing in ranked[: -(-len(alive) // 2)] if standing.failed is None}
        alive = [candidate for candidate in alive if candidate.name in kept]
    return _ranked(standings.values())


def _ranked(standings: Iterable[Standing]) -> list[Standing]:
    """By epochs, then by score, those that failed last; ``sorted`` keeps the order of ties."""
    return sorted(standings, key=lambda s: (s.failed is not None, -s.epochs, -(s.score or 0.0)))


def _advance(
    candidate: Candidate,
    data: Any,
    seed: int,
    folder: Path,
    epochs: int,
    on_epoch: Callable[[str], None],
    should_stop: Callable[[], bool],
) -> Standing | None:
    """Trains a candidate up to a number of epochs, from its checkpoint if there is one; None if it was stopped."""
    checkpoint = folder / f"{candidate.name}.safetensors"
    settings, state, stopped = candidate.settings, TrainingState(), False

    def stop() -> bool:
        nonlocal stopped
        stopped = should_stop()
        return stopped or state.epoch >= epochs

    try:
        problem = candidate.task.bind(data)
        model = build_model(candidate.model, problem, settings, seed)
        with limited_threads(settings.threads, problem.num_nodes * model.dim):
            plan_batches(settings, problem, model.encoder, model.dim).arrange(problem, model.encoder)
            optimizer = build_optimizer_of(model, settings)
            if checkpoint.exists():
                state = load_checkpoint(checkpoint, model, optimizer)
            train(problem, model, optimizer, settings, seed, state, lambda report: on_epoch(candidate.name), stop)
            save_checkpoint(checkpoint, state, model, optimizer)
    except DamagedRunError:
        checkpoint.unlink()
        return _advance(candidate, data, seed, folder, epochs, on_epoch, should_stop)
    except FAILURES as error:
        kind = next(kind.__name__ for kind in FAILURES if isinstance(error, kind))
        return Standing(candidate.name, state.epoch, failed=(str(error) or kind).splitlines()[0], error=kind)
    if stopped and state.epoch < epochs and not state.is_over(settings):
        return None
    return Standing(candidate.name, epochs, state.best.get(problem.selection_metric))
