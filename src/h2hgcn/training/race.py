"""Successive halving: several settings are trained for some epochs each, the better half goes on, until one is left."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from h2hgcn.atomic import atomic_write
from h2hgcn.errors import DamagedRunError, NonFiniteError
from h2hgcn.tasks.problem import Task
from h2hgcn.training.batching import plan_batches
from h2hgcn.training.building import EncoderFactory, build_model
from h2hgcn.training.loop import is_over, train
from h2hgcn.training.optimizers import build_optimizer_of
from h2hgcn.training.settings import TrainingSettings
from h2hgcn.training.state import TrainingState, load_checkpoint, save_checkpoint
from h2hgcn.training.threads import limited_threads, one_at_a_time


@dataclass(frozen=True)
class Candidate:
    """Settings that take part, in the order in which they win ties."""

    name: str
    task: Task
    model: EncoderFactory
    settings: TrainingSettings


@dataclass(frozen=True)
class Standing:
    """How far a candidate came: its best validation ``score`` within ``epochs``, or why it ``failed``."""

    name: str
    epochs: int = 0
    score: float | None = None
    failed: str | None = None


def race(
    candidates: Sequence[Candidate],
    data: Any,
    seed: int,
    folder: Path,
    rungs: Sequence[int],
    on_epoch: Callable[[str], None] = lambda name: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> list[Standing] | None:
    """Standings, the winner first, unless all failed; None if stopped, to resume from the checkpoints in ``folder``.

    Every candidate is trained up to ``rungs[0]`` epochs, the better half of them up to ``rungs[1]``, and so on. The
    validation metric decides; nothing looks at test data. A candidate that fails (NaN, memory, settings that do not fit
    the data) is out. The result depends on the arguments alone, not on where a race was interrupted.
    """
    standings = {candidate.name: Standing(candidate.name) for candidate in candidates}
    alive = [replace(candidate, settings=_scored_by(candidate.settings, rungs[0])) for candidate in candidates]
    for epochs in rungs:
        for candidate in alive:
            record = folder / f"{candidate.name}-{epochs}.json"
            standing = Standing(**json.loads(record.read_bytes())) if record.exists() else None
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


def _scored_by(settings: TrainingSettings, epochs: int) -> TrainingSettings:
    """Settings that have a validation score after so many epochs."""
    return replace(settings, eval_every=min(settings.eval_every, epochs))


def _ranked(standings: Any) -> list[Standing]:
    """Those that came farthest first, and among these by score; ``sorted`` keeps the order of equals."""
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
    """Trains a candidate up to a number of epochs, from its checkpoint if it has one."""
    checkpoint = folder / f"{candidate.name}.safetensors"
    settings, state = candidate.settings, TrainingState()
    try:
        problem = candidate.task.bind(data)
        model = build_model(candidate.model, problem, settings, seed)
        with limited_threads(settings.threads, problem.num_nodes * model.dim):
            plan = plan_batches(settings, problem, model.encoder, model.dim)
            plan.arrange(problem, model.encoder)
            optimizer = build_optimizer_of(model, settings)
            if checkpoint.exists():
                state = load_checkpoint(checkpoint, model, optimizer)
            stopped = False

            def stop() -> bool:
                nonlocal stopped
                stopped = should_stop()
                return stopped or state.epoch >= epochs

            train(problem, model, optimizer, settings, seed, state, lambda report: on_epoch(candidate.name), stop)
            save_checkpoint(checkpoint, state, model, optimizer)
    except DamagedRunError:
        checkpoint.unlink()
        return _advance(candidate, data, seed, folder, epochs, on_epoch, should_stop)
    except (NonFiniteError, MemoryError, ValueError, RuntimeError) as error:
        return Standing(candidate.name, state.epoch, failed=(str(error) or type(error).__name__).splitlines()[0])
    if stopped and state.epoch < epochs and not is_over(state, settings):
        return None
    return Standing(candidate.name, epochs, state.best.get(problem.selection_metric))
