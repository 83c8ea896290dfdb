import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2hgcn.errors import DataError
from h2hgcn.options import checked_options, conform, option_types, plain_options, require, suggestion

KINDS = {
    "count": int, "share": float, "flag": bool, "name": str, "maybe": int | None, "either": float | None,
    "kind": Literal["a", "b"], "maybe_kind": Literal["a", "b"] | None, "anything": Any,
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("count", "3", 3), ("count", np.int64(3), 3), ("count", -3, -3),
        ("share", "0.5", 0.5), ("share", 2, 2.0), ("share", "1e-3", 0.001), ("share", np.float32(0.5), 0.5),
        ("flag", "true", True), ("flag", "False", False), ("flag", True, True),
        ("name", "x", "x"), ("name", "none", "none"),
        ("maybe", "none", None), ("maybe", None, None), ("maybe", "4", 4), ("either", "none", None), ("either", 1, 1.0),
        ("kind", "a", "a"), ("maybe_kind", "none", None), ("maybe_kind", "b", "b"),
        ("anything", [1, 2], [1, 2]), ("anything", None, None),
    ],
)  # fmt: skip
def test_conversions(name, given, expected):
    value = checked_options({name: given}, KINDS, "[x]")[name]
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("count", 1.5, "count=1.5 must be a whole number"), ("count", "1.0", "must be a whole number"),
        ("count", True, "must be a whole number"), ("count", "none", "must be a whole number"),
        ("count", [1], "must be a whole number"), ("count", None, "must be a whole number"),
        ("count", 10**400, r"\[x\] count has more than 64 bits"), ("count", "9" * 20, "has more than 64 bits"),
        ("share", "half", "share='half' must be a number"), ("share", False, "must be a number"),
        ("share", 10**400, "must be a number"), ("flag", 1, "must be true or false"),
        ("flag", "yes", "flag='yes' must be true or false"), ("name", 3, "name=3 must be text"),
        ("maybe", "some", "must be a whole number or 'none'"), ("either", "x", "must be a number or 'none'"),
        ("kind", "c", "kind='c' is not known; use one of a, b"), ("kind", None, "use one of a, b"),
        ("cuont", 3, r"\[x\] has no option 'cuont'; did you mean 'count'\?"),
        ("zzz", 3, r"has no option 'zzz'; there are: count, share, "),
    ],
)  # fmt: skip
def test_what_is_refused(name, given, message):
    with pytest.raises(DataError, match=message):
        checked_options({name: given}, KINDS, "[x]")


@dataclass(frozen=True)
class Settings:
    count: int = 3
    share: float | None = None
    kind: Literal["a", "b"] = "a"

    def __post_init__(self):
        conform(self, "[x]")
        require(self, "x", ("count", "share"), lambda value: value > 0, "must be positive")


@given(
    count=st.integers(1, 9) | st.integers(1, 9).map(str),
    share=st.none() | st.just("none") | st.floats(0.1, 9),
    kind=st.sampled_from("ab"),
)
def test_settings_survive_what_toml_and_flags_can_hold(count, share, kind):
    settings = Settings(count, share, kind)
    plain = plain_options({"count": settings.count, "share": settings.share, "kind": settings.kind})
    assert None not in plain.values()
    assert Settings(**checked_options(plain, option_types(Settings), "[x]")) == settings
    texts = {name: str(value) for name, value in plain.items()}
    assert Settings(**checked_options(texts, option_types(Settings), "[x]")) == settings


def test_rules():
    assert Settings(share="none").share is None
    for bad in ({"count": 0}, {"share": math.nan}, {"share": -1}):
        with pytest.raises(DataError, match=r"x\.(count|share)=.* must be positive"):
            Settings(**bad)


def test_names_and_types_of_a_function():
    def function(first, second: int, *, third: str | None = None):
        pass

    assert option_types(function, ("first",)) == {"second": int, "third": str | None}
    assert list(option_types(Settings)) == ["count", "share", "kind"]
    assert suggestion("thrid", {"third": 1}) == "did you mean 'third'?"
