import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2hgcn.embeddings.charts import Series, line_chart, read_history, ticks
from h2hgcn.errors import DataError

NAN = math.nan


def test_history_by_name():
    series = read_history([{"epoch": 10, "loss": 1}, {"epoch": 20, "loss": None, "val": {"auc": 0.5}, "phase": "late"}])
    np.testing.assert_array_equal(series["loss"].epochs, [10, 20])
    np.testing.assert_array_equal(series["loss"].values, [1, NAN])
    np.testing.assert_array_equal(series["val_auc"].values, [NAN, 0.5])
    np.testing.assert_array_equal(read_history([{"a": 1}, {"a": 2}])["a"].epochs, [1, 2])


def test_history_of_something_else_is_refused():
    with pytest.raises(DataError, match=r"'loss' holds \[1\]"):
        read_history([{"loss": [1]}])


@pytest.mark.parametrize(
    ("name", "values", "best"),
    [("val_auc", [1, 3, NAN, 3], 2), ("val_loss", [2, NAN, 1, 5], 3), ("val_auc", [NAN] * 4, None)],
)
def test_best_epoch(name, values, best):
    assert Series(name, np.arange(1.0, 5), np.array(values)).best_epoch() == best


@given(st.lists(st.floats(), min_size=1, max_size=5))
def test_any_numbers_make_a_chart(values):
    chart = line_chart(Series("loss", np.arange(len(values)) * 1.0, np.array(values)), "Loss", 0)
    assert "nan" not in str(chart)
    assert "inf" not in str(chart).replace("no finite value", "")


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9))
def test_ticks_are_few_and_inside(low, width):
    found = ticks(low, low + width)
    assert 2 <= len(found) <= 7
    assert all(low - width * 1e-6 <= tick <= low + width * (1 + 1e-6) for tick in found)
