"""Whether a step of training sees the whole graph or a sample of it."""

from dataclasses import replace
from typing import Any, NamedTuple

from torch import nn

from h2hgcn.errors import DataError
from h2hgcn.graph.large import SCATTERED
from h2hgcn.layers.inputs import node_vectors_of
from h2hgcn.tasks.base import Problem, Sampling
from h2hgcn.training.distributed import ALONE, Ranks
from h2hgcn.training.settings import ALL_NEIGHBORS, TrainingSettings

# "auto" samples graphs that are larger than these: entries of the adjacency, and numbers of the embedding. Not by what
# memory there is, since the same command should do the same everywhere.
LARGE_GRAPH, LARGE_EMBEDDING = 1 << 23, 1 << 26

# Batches of an epoch that "auto" makes. A fixed size would make an epoch of a larger graph dearer by more than its
# edges: the smaller a batch beside its graph, the less its neighborhoods overlap. And the least size of one: a step
# costs some milliseconds whatever it is about.
_AUTO_BATCHES, _LEAST_BATCH = 16, 1024

# Neighbors at the first hop, the second, and all others.
_FANOUT = (15, 10, 5)


class Plan(NamedTuple):
    """``sampling`` is None for full-batch training; ``reason`` says what was decided, and why; ``reorder``,
    whether the nodes are trained in another order.
    """

    sampling: Sampling | None
    reason: str
    reorder: bool = False

    def arrange(self, problem: Any, encoder: nn.Module) -> None:
        """Has a problem give its batches as planned, and node vectors gradients for the rows of a batch."""
        problem.sampling = self.sampling
        vectors = node_vectors_of(encoder)
        if vectors is not None:
            vectors.sparse_gradients = self.sampling is not None
        if self.reorder:
            problem.reorder()


def plan_batches(
    settings: TrainingSettings, problem: Problem, encoder: nn.Module, dim: int, ranks: Ranks = ALONE
) -> Plan:
    """What the settings come to for a problem and an encoder; several processes share each batch."""
    plan = _plan(settings, problem, encoder, dim)
    # an encoder that does not say whether it minds is left alone: it may have a vector for each node
    if problem.plan is None and getattr(encoder, "inductive", False):
        plan = plan._replace(reorder=problem.num_nodes >= SCATTERED)
    if ranks.size == 1:
        return plan
    sampling, count = plan.sampling, problem.num_items
    if sampling is None:
        if problem.plan is not None or not getattr(encoder, "inductive", True):
            raise DataError("several processes share batches of one graph, which this task or model has not; use one")
        sampling = Sampling(count, (ALL_NEIGHBORS,) * len(_fanout(settings, encoder)), settings.workers)
    if count < ranks.size:
        raise DataError(f"{count} {problem.task.items} cannot be shared by {ranks.size} processes")
    sampling = replace(sampling, rank=ranks.rank, ranks=ranks.size)
    return plan._replace(sampling=sampling, reason=f"{plan.reason}, by {ranks.size} processes")


def _plan(settings: TrainingSettings, problem: Problem, encoder: nn.Module, dim: int) -> Plan:
    why_not = None
    if problem.plan is not None:
        why_not = problem.task.batch_rule
    elif not getattr(encoder, "inductive", True):
        why_not = "this model has a vector for each node and no neighborhoods to sample"
    if why_not is not None:
        for name, value in (("batch_size", settings.batch_size), ("fanout", settings.fanout)):
            if value not in ("auto", "full", None):
                raise DataError(f"training.{name}={value!r}: {why_not}; leave it out")
        return Plan(None, problem.plan or "full-batch training")
    fanout = _fanout(settings, encoder) if getattr(encoder, "uses_graph", True) else (0,)
    count, what, batch_size = problem.num_items, problem.task.items, settings.batch_size
    if batch_size == "full":
        return Plan(None, "full-batch training")
    if batch_size == "auto":
        if len(problem.graph.col) <= LARGE_GRAPH and problem.num_nodes * dim <= LARGE_EMBEDDING:
            unused = "" if settings.fanout is None else "; --fanout has no effect without --batch-size"
            return Plan(None, f"full-batch training ({count:,} {what}){unused}")
        batch_size = automatic_size(count)
    elif batch_size > count:
        raise DataError(
            f"training.batch_size={batch_size} is more than the {count:,} {what} there are to train on; choose a "
            "smaller one, or 'full'"
        )
    sampling = Sampling(int(batch_size), fanout, settings.workers)
    why = ": the graph is large" if settings.batch_size == "auto" else ""
    widths = ",".join(map(str, fanout))
    return Plan(sampling, f"batches of {batch_size:,} of {count:,} {what}, fanout {widths}{why}")


def automatic_size(count: int) -> int:
    """How many of ``count`` links or nodes "auto" takes for a batch."""
    return min(count, max(-(-count // _AUTO_BATCHES), _LEAST_BATCH))


def _fanout(settings: TrainingSettings, encoder: nn.Module) -> tuple[int, ...]:
    layers = getattr(encoder, "config", {}).get("num_layers", getattr(encoder, "num_layers", None))
    given = settings.fanout_numbers()
    if given is None:
        return tuple(_FANOUT[min(hop, len(_FANOUT) - 1)] for hop in range(layers or 2))
    if layers is not None and len(given) != layers:
        raise DataError(
            f"training.fanout={settings.fanout!r} has {len(given)} numbers, but the encoder has {layers} "
            f"layer{'s' if layers != 1 else ''}; give one number for each layer, the first for the nodes of a batch"
        )
    return given
