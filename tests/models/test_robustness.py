"""No NaN and no infinity; ``benchmarks/robustness.py`` has 1,000 configurations, of which the first are here."""

import pytest
from robustness import failure

CONFIGURATIONS = 240
GROUPS = 12


@pytest.mark.parametrize("group", range(GROUPS))
def test_nothing_turns_to_nan(group):
    assert [message for seed in range(group, CONFIGURATIONS, GROUPS) if (message := failure(seed))] == []
