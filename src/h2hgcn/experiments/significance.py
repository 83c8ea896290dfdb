"""Whether two models differ by more than their seeds do."""

import warnings
from collections.abc import Mapping

import numpy as np
from scipy import stats

# The share of comparisons of equal models that may be called a difference, over all comparisons of a table.
LEVEL = 0.05
# Differences of scores below this share of them are rounding.
_ROUNDING = 1e-12


def p_value(scores: Mapping[int, float], others: Mapping[int, float], paired: bool) -> float | None:
    """The probability of such a difference of means between equal models, of which there are scores by seed: Welch's
    t-test, or where each seed has a split of its own the paired one, over the seeds that both have.

    None if there are too few seeds to tell.
    """
    if paired:
        common = sorted(scores.keys() & others.keys())
        scores, others = ({seed: each[seed] for seed in common} for each in (scores, others))
    if min(len(scores), len(others)) < 2:
        return None
    first, second = np.array(list(scores.values())), np.array(list(others.values()))
    spread = (first - second).std() if paired else first.std() + second.std()
    size = _ROUNDING * max(abs(first).max(), abs(second).max())
    if spread <= size:
        return 1.0 if abs(first.mean() - second.mean()) <= size else 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of one model whose scores are all the same
        test = stats.ttest_rel(first, second) if paired else stats.ttest_ind(first, second, equal_var=False)
    return float(test.pvalue)
