"""Whether two models differ by more than their seeds do."""

from collections.abc import Sequence

import numpy as np
from scipy import stats

# The share of comparisons of equal models that may be called a difference, over all comparisons of a table.
LEVEL = 0.05


def p_value(scores: Sequence[float], others: Sequence[float], paired: bool) -> float | None:
    """The probability of such a difference of means between equal models: Welch's t-test, or the paired one where both
    saw the same splits, one for each seed. None if there are too few seeds to tell.
    """
    if min(len(scores), len(others)) < 2 or (paired and len(scores) != len(others)):
        return None
    first, second = np.asarray(scores), np.asarray(others)
    spread = (first - second).std() if paired else first.std() + second.std()
    if spread == 0:
        return 1.0 if first.mean() == second.mean() else 0.0
    test = stats.ttest_rel(first, second) if paired else stats.ttest_ind(first, second, equal_var=False)
    return float(test.pvalue)
