import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2hgcn.embeddings import write_report
from h2hgcn.embeddings.report import best_of, line_chart, ticks
from h2hgcn.errors import DataError

NAN = math.nan


def titles(tmp_path, history, **options):
    """The sentences that describe the charts of a history."""
    page = write_report(tmp_path / "report.html", "A run", {}, {}, history, **options).read_text()
    return re.findall("<title>(.* at epoch .*)</title>", page)


def test_history_by_name(tmp_path):
    history = [{"epoch": 10, "loss": 1}, {"epoch": 20, "loss": None, "val": {"auc": 0.5}, "phase": "late"}]
    assert titles(tmp_path, history) == [
        "Training loss from 1.0000 at epoch 10 to 1.0000 at 10.",
        "Validation ROC AUC from 0.5000 at epoch 20 to 0.5000 at 20.",
    ]
    assert titles(tmp_path, [{"a": 1}, {"a": 2}], selected_by="a") == ["a from 1.0000 at epoch 1 to 2.0000 at 2."]


def test_history_of_something_else_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"'loss' holds \[1\]"):
        titles(tmp_path, [{"loss": [1]}])


@pytest.mark.parametrize(
    ("lowest", "values", "best"), [(False, [1, 3, NAN, 3], 2), (True, [2, NAN, 1, 5], 3), (False, [NAN] * 4, None)]
)
def test_best_epoch(lowest, values, best):
    assert best_of(np.arange(1.0, 5), np.array(values), lowest) == best


@given(st.lists(st.floats(), min_size=1, max_size=5))
def test_any_numbers_make_a_chart(values):
    chart = line_chart(np.arange(len(values)) * 1.0, np.array(values), "Loss", 0)
    assert "nan" not in str(chart)
    assert "inf" not in str(chart).replace("no finite value", "")


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9))
def test_ticks_are_few_and_inside(low, width):
    found = ticks(low, low + width)
    assert 2 <= len(found) <= 7
    assert all(low - width * 1e-6 <= tick <= low + width * (1 + 1e-6) for tick in found)
