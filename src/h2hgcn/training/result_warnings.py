"""Warnings about the result of a run, kept as ``doubts`` in ``result.json`` and printed as notes."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from h2hgcn.layers.spaces import check_space, squared_distance
from h2hgcn.tasks.metrics import FEWEST

if TYPE_CHECKING:
    from h2hgcn.training.run import Run

# Fewer links, nodes or graphs than this change a metric by more than 0.01 each.
_FEW = 100

# Useful embeddings have distances of about 1; decoders cannot tell apart points that are closer than this.
_COLLAPSED = 0.01
_SAMPLED_PAIRS = 2000

# An AUC this close to 0.5 is chance, even where there are enough pairs to measure a difference.
_CHANCE_MARGIN = 0.02

# Precisions that differ by fewer standard errors are within noise.
_STANDARD_ERRORS = 2

# Probabilities of classes that are off by more than this on average are worth a warning.
_MUCH_OFF = 0.1

# A larger share for validation would leave too little to train on.
_LARGEST_SHARE = 0.4

# Unanswerable test links above this fraction are worth a warning.
_MANY_UNANSWERABLE = 0.1

# Fewer sampled non-links than this among the likeliest pairs say little about how often those are links.
_FEWEST_AT_TOP = 20

# Warnings with one of these phrases also matter to people who only use the predictions.
_UNRELIABLE = "do not rely on its predictions"
_TOP = "ranks the top better"
_TOP_IS_WEAK = "do not act on"
_UNCALIBRATED = "probabilities are not calibrated"
_ROUGH_TOP = "probabilities of the likeliest pairs are rough"

_PARTS = {"val": "validation", "test": "test"}


def warnings_about(run: "Run") -> list[str]:
    """Warnings about a finished run whose ``result`` has metrics and baselines; most serious first."""
    result = run.result
    if not result["metrics"]:  # nothing was held out to measure anything on
        return [*_collapse(run), *getattr(run.problem, "notes", ())]
    found = [text for check in _CHECKS for text in check(run)]
    if result["best_epoch"] == 1 and result["epochs"] > 1:
        found.append("the first epoch was the best on validation data, so the model has hardly learned")
    return [*found, *getattr(run.problem, "notes", ())]


def serious_warnings(result: dict[str, Any]) -> list[str]:
    """Those warnings of a result that matter to anyone who uses its predictions."""
    phrases = (_UNRELIABLE, _TOP, _TOP_IS_WEAK, _UNCALIBRATED, _ROUGH_TOP)
    return [warning for warning in result.get("doubts", ()) if any(phrase in warning for phrase in phrases)]


def _better_baseline(run: "Run") -> Iterator[str]:
    result, problem, selection = run.result, run.problem, run.result["selection"]
    test = list(result["metrics"].values())[-1][selection]
    name, best = max((result["trivial"] or {}).items(), key=lambda item: item[1], default=("", -math.inf))
    if best <= test:
        return
    found = f"the baseline {name} has a test {selection} of {best:.4f}, the model {test:.4f}"
    count = 1 if problem.split is None else len(problem.split.test)
    if best - test <= math.sqrt(best * (1 - best) / count):  # a standard error
        yield f"{found}: the difference is within the noise of {count} test {problem.task.items}"
    else:
        yield f"{found}: {_UNRELIABLE}; try other features or settings"


def _better_top(run: "Run") -> Iterator[str]:
    """A baseline whose likeliest pairs hold more test links than the model's."""
    test = list(run.result["metrics"].values())[-1]
    metric = next((name for name in test if name.startswith("precision@")), None)
    if metric is None:
        return
    count, own = int(metric.partition("@")[2]), test[metric]
    if own == 0:
        yield f"none of the {count} likeliest pairs is a test link: {_TOP_IS_WEAK} recommend --top"
    found = [(values[metric], name) for name, values in run.result.get("baselines", {}).items() if metric in values]
    best, name = max(found, key=lambda item: item[0], default=(own, ""))
    if best <= own:
        return
    noise = _STANDARD_ERRORS * math.sqrt((best * (1 - best) + own * (1 - own)) / count)
    advice = "within noise" if best - own <= noise else "compare both before you act on recommend --top"
    theirs, ours = (f"{round(share * count, 1):g}" for share in (best, own))  # ties may have made a mean
    yield f"{name} {_TOP}: of its {count} likeliest pairs {theirs} are test links, of the model's {ours}; {advice}"


def _collapse(run: "Run") -> Iterator[str]:
    if run.task.of_collections:  # classified from the points of nodes, not from the midpoints that the embedding has
        return
    spread = point_spread(run.embeddings, run.model)
    if spread < _COLLAPSED:
        yield (
            f"the embedding has collapsed: 95 % of the pairs of nodes are within {spread:.2g} of each other: "
            f"{_UNRELIABLE}; try a lower training.weight_decay, a higher lr or another seed"
        )


@torch.no_grad()
def point_spread(points: Tensor, model: Any) -> float:
    """The distance that 95 % of the pairs of points do not exceed, measured on a sample."""
    pairs = torch.from_numpy(np.random.RandomState(0).randint(0, len(points), (2, _SAMPLED_PAIRS)))
    first, second = points[pairs].double()
    squares = squared_distance(check_space(model.encoder.space))(first, second)
    return model.scale * float(squares.clamp_min(0).sqrt().quantile(0.95))


def _chance(run: "Run") -> Iterator[str]:
    if run.result["selection"] != "auc":
        return
    scores = {part: run.result["metrics"][part]["auc"] for part in _PARTS}
    texts = {part: f"a {name} auc of {scores[part]:.4f}" for part, name in _PARTS.items()}
    # two standard errors of the AUC of random scores, for as many negatives as links
    errors = {part: 2 / math.sqrt(6 * len(getattr(run.problem.split, part))) for part in _PARTS}
    if all(abs(score - 0.5) <= max(_CHANCE_MARGIN, errors[part]) for part, score in scores.items()):
        counts = [len(getattr(run.problem.split, part)) for part in _PARTS]
        is_noise = any(abs(score - 0.5) > _CHANCE_MARGIN for score in scores.values())
        few = f" for so few links ({counts[0]} and {counts[1]})" if is_noise else ""
        advice = "" if is_noise else "; try another lr, a lower training.weight_decay or other features"
        yield f"{' and '.join(texts.values())} are no better than chance{few}: {_UNRELIABLE}{advice}"
        return
    below = [text for part, text in texts.items() if scores[part] < 0.5]
    if below:
        yield f"{' and '.join(below)} {'are' if len(below) > 1 else 'is'} below chance: {_UNRELIABLE}"


def _missing_classes(run: "Run") -> Iterator[str]:
    if run.problem.num_classes is None:
        return
    truth, predicted = run.problem.classes(run.model, "test")  # type: ignore[attr-defined]
    names, items = run.config["facts"]["classes"], run.task.items
    weights = "task.class_weights=true, " if getattr(run.task, "class_weights", True) is False else ""
    advice = f"try {weights}a higher lr or a lower training.weight_decay"
    if len(np.unique(truth)) > 1 and len(np.unique(predicted)) == 1:
        yield f"all test {items} get the class {names[predicted[0]]!r}: {_UNRELIABLE}; {advice}"
        return
    counts = np.bincount(truth, minlength=len(names))
    missing = np.setdiff1d(truth, predicted).tolist()
    if missing:
        listed = ", ".join(f"{names[k]!r} ({counts[k]} of {len(truth)} test {items})" for k in missing[:3])
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        what, verb = ("classes", "are") if len(missing) > 1 else ("class", "is")
        yield f"the {what} {listed}{more} {verb} never predicted; {advice}"


def _unanswerable(run: "Run") -> Iterator[str]:
    split = run.problem.split
    if not hasattr(split, "answerable"):  # not of links
        return
    count = int((~split.answerable(split.test)).sum())
    if count < _MANY_UNANSWERABLE * len(split.test):
        return
    answerable = run.result["metrics"]["test"].get("auc_answerable")
    rest = "" if answerable is None else f"; on the other test pairs the auc is {answerable:.4f}"
    if getattr(run.data, "structural", False):
        rest += ". Without features they cannot be predicted: give --features, or embed all edges with --task embed"
    yield f"{count} of {len(split.test)} test links end at a node without a training edge{rest}"


def _uncalibrated(run: "Run") -> Iterator[str]:
    at_top = run.result.get("details", {}).get("sampled_at_top")
    if at_top is not None and at_top < _FEWEST_AT_TOP:
        yield f"the {_ROUGH_TOP}: {at_top} of the sampled pairs without a link rank that high; use their order"
    error = list(run.result["metrics"].values())[-1].get("ece", 0)
    if run.problem.num_classes is not None and error > _MUCH_OFF:
        yield f"probabilities of classes are off by {error:.2f} on average in the test part (ece)"
    if not getattr(run.task, "calibrate", False) or run.model.head.calibrated:
        return
    split, items = run.problem.split, run.task.items
    share = math.ceil(100 * FEWEST / sum(len(part) for part in (split.train, split.val, split.test))) / 100
    can_have_more = hasattr(run.task, "val") and share <= _LARGEST_SHARE
    more = f"; use more with --set task.val={share:g}" if can_have_more else ""
    there = "there is 1" if len(split.val) == 1 else f"there are {len(split.val)}"
    yield f"{_UNCALIBRATED}: that takes {FEWEST} validation {items}, and {there}{more}"


def _small_parts(run: "Run") -> Iterator[str]:
    problem = run.problem
    parts = _PARTS.items() if problem.split is not None else ()  # a task may hold nothing out
    counts = {name: len(getattr(problem.split, part)) for part, name in parts}
    few = {name: _counted(count, problem.task.items) for name, count in counts.items() if count < _FEW}
    small = [f"the {name} part has {items}" for name, items in few.items()]
    if small:
        yield f"{' and '.join(small)} only: {'their' if len(small) > 1 else 'its'} metrics are coarse"


def _counted(count: int, items: str) -> str:
    return f"{count} {items if count != 1 else items.removesuffix('s')}"


_CHECKS = (
    _better_baseline, _better_top, _collapse, _chance, _missing_classes, _unanswerable, _uncalibrated, _small_parts
)  # fmt: skip
