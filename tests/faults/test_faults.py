"""Damaged files, foreign folders and kills; ``benchmarks/faults.py`` makes thousands of tries, the first are here."""

import sys

import pytest
from faults import PARTS
from faults_trials import attempts, prepared

QUICK = {"inputs": 200, "loads": 100, "flips": 10, "folders": 10}


@pytest.fixture(scope="module")
def base_of(tmp_path_factory):
    """The folder that the tries of a part begin with; flips and folders share theirs."""
    found = {}

    def base(part):
        if part.prepare not in found:
            found[part.prepare] = tmp_path_factory.mktemp("base")
            prepared(part, found[part.prepare])
        return found[part.prepare]

    return base


@pytest.mark.skipif(sys.platform != "linux", reason="measures memory and starts processes as Linux does")
@pytest.mark.parametrize("name", QUICK)
def test_the_first_tries(name, base_of):
    results = list(attempts(PARTS[name], range(QUICK[name]), base_of(PARTS[name])))
    assert [result.number for result in results] == list(range(QUICK[name]))
    assert {result.number: result.failure for result in results if result.failure is not None} == {}


def crash(number, base, own):
    """A part whose tries fail in all ways."""
    import ctypes
    import time

    if number == 1:
        ctypes.string_at(0)
    if number == 3:
        time.sleep(100)
    if number == 5:
        raise KeyError("x")
    return "wrong" if number == 7 else None


def test_failures_are_seen(tmp_path):
    part = PARTS["inputs"]._replace(attempt=crash, patience=0.5)
    failures = {result.number: result.failure for result in attempts(part, range(9), tmp_path)}
    assert "the process ended (-11)" in failures[1]
    assert failures[3].startswith("more than")
    assert "KeyError: 'x'" in failures[5]
    assert failures[7] == "wrong"
    assert len(failures) == 9
