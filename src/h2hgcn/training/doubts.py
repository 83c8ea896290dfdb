"""What a careful person would say of a result before trusting it."""

from typing import Any

# A metric of fewer links, nodes or graphs than this moves by more than a hundredth with each of them.
_FEW = 100


def doubts_about(result: dict[str, Any], problem: Any) -> list[str]:
    """Remarks on a result, most serious first; none about one that needs no remark."""
    selection = result["selection"]
    test = result["metrics"]["test"][selection]
    doubts = []
    best = max((result["trivial"] or {}).items(), key=lambda item: item[1], default=None)
    if best is not None and best[1] > test:
        doubts.append(
            f"{best[0]} reaches a test {selection} of {best[1]:.4f} without learning, the model {test:.4f}: "
            f"{_DISTRUST}; try other features or settings"
        )
    below = [
        f"{name} auc of {result['metrics'][part]['auc']:.4f}" for part, name in _PARTS if _below_chance(result, part)
    ]
    if below:
        doubts.append(f"a {' and a '.join(below)} {'are' if len(below) > 1 else 'is'} below chance: {_DISTRUST}")
    for part, name in _PARTS:
        count = len(getattr(problem.split, part))
        if count < _FEW:
            doubts.append(f"the {name} part has {count} {_WHAT[problem.task.name]} only: its metrics are coarse")
    if result["best_epoch"] == 1 and result["epochs"] > 1:
        doubts.append("the first epoch was the best on validation data, so the model has hardly learnt")
    return doubts


def distrust_of(result: dict[str, Any]) -> list[str]:
    """Those remarks on a result that whoever uses the predictions has to hear."""
    return [doubt for doubt in result.get("doubts", ()) if _DISTRUST in doubt]


def _below_chance(result: dict[str, Any], part: str) -> bool:
    return result["selection"] == "auc" and result["metrics"].get(part, {}).get("auc", 1.0) < 0.5


_DISTRUST = "do not rely on its predictions"
_PARTS = (("val", "validation"), ("test", "test"))
_WHAT = {"lp": "links", "nc": "nodes", "gc": "graphs"}
