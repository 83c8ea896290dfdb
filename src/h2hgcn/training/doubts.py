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
            f"{best[0]} reaches a test {selection} of {best[1]:.4f} without learning, the model {test:.4f}: do not "
            "rely on its predictions; try other features or settings"
        )
    elif selection == "auc" and test < 0.5:
        doubts.append(f"a test auc of {test:.4f} is below chance: do not rely on the predictions")
    for part, name in (("val", "validation"), ("test", "test")):
        count = len(getattr(problem.split, part))
        if count < _FEW:
            doubts.append(f"the {name} part has {count} {_WHAT[problem.task.name]} only: its metrics are coarse")
    if result["best_epoch"] == 1 and result["epochs"] > 1:
        doubts.append("the first epoch was the best on validation data, so the model has hardly learnt")
    return doubts


_WHAT = {"lp": "links", "nc": "nodes", "gc": "graphs"}
