"""Successive halving over settings."""

import json
from functools import partial
from itertools import pairwise

import pytest
from runs import SMALL, TASKS, Flat, small_data

from h2hgcn.models import H2HGCN
from h2hgcn.training import TrainingSettings
from h2hgcn.training.race import Candidate, race

RUNGS = (2, 4, 6)


def candidate(name, model=SMALL, **settings):
    return Candidate(name, TASKS["lp"], model, TrainingSettings(**{"epochs": 8, "device": "cpu"} | settings))


def candidates():
    return [candidate(f"rate{k}", lr=rate) for k, rate in enumerate((0.001, 0.003, 0.01, 0.03, 0.1))]


def test_the_better_half_goes_on(tmp_path):
    standings = race(candidates(), small_data(), 0, tmp_path, RUNGS)
    assert sorted(standing.epochs for standing in standings) == [2, 2, 4, 6, 6]  # five, three, two
    assert standings[0].score >= standings[1].score
    scores = {rung: {} for rung in RUNGS}
    for record in tmp_path.glob("*.json"):
        name, rung = record.stem.split("-")
        scores[int(rung)][name] = json.loads(record.read_text())["score"]
    for shorter, longer in pairwise(RUNGS):
        out = scores[shorter].keys() - scores[longer].keys()
        assert all(scores[shorter][lost] <= scores[shorter][kept] for lost in out for kept in scores[longer])


@pytest.mark.parametrize("epochs", [1, 3, 9, 14, 19])
def test_an_interrupted_race_ends_as_another_does(tmp_path, epochs):
    for name in ("whole", "stopped"):
        (tmp_path / name).mkdir()
    whole = race(candidates(), small_data(), 0, tmp_path / "whole", RUNGS)
    done = []
    stopped = race(candidates(), small_data(), 0, tmp_path / "stopped", RUNGS, done.append, lambda: len(done) >= epochs)
    assert stopped is None
    assert len(done) == epochs
    assert race(candidates(), small_data(), 0, tmp_path / "stopped", RUNGS) == whole


def test_a_candidate_that_fails_is_out(tmp_path):
    racing = [
        candidate("diverges", partial(Flat, dim=3), lr=1e30),
        candidate("does not fit", partial(H2HGCN, dim=4, stem=False)),
        candidate("works"),
    ]
    standings = race(racing, small_data(), 0, tmp_path, RUNGS)
    assert standings[0].name == "works"
    assert standings[0].epochs == 6
    failed = {standing.name: standing.failed for standing in standings[1:]}
    assert "epoch" in failed["diverges"]
    assert "orthonormal columns cannot map" in failed["does not fit"]
    assert {standing.name: standing.error for standing in standings} == {
        "works": None, "diverges": "NonFiniteError", "does not fit": "ValueError",
    }  # fmt: skip


def test_all_fail(tmp_path):
    racing = [candidate(name, partial(H2HGCN, dim=4, stem=False)) for name in ("first", "second")]
    standings = race(racing, small_data(), 0, tmp_path, RUNGS)
    assert [standing.name for standing in standings] == ["first", "second"]
    assert all(standing.failed for standing in standings)


def test_the_first_wins_a_tie(tmp_path):
    standings = race([candidate("b"), candidate("a")], small_data(), 0, tmp_path, RUNGS)
    assert [standing.name for standing in standings] == ["b", "a"]


def test_every_candidate_has_a_score_however_rarely_it_is_evaluated(tmp_path):
    standings = race([candidate("a", eval_every=100), candidate("b")], small_data(), 0, tmp_path, RUNGS)
    assert all(standing.score is not None for standing in standings)


def test_a_damaged_checkpoint_is_made_again(tmp_path):
    whole = race(candidates(), small_data(), 0, tmp_path, RUNGS)
    for record in tmp_path.glob("*-6.json"):
        record.unlink()
    (tmp_path / f"{whole[0].name}.safetensors").write_bytes(b"nothing")
    assert race(candidates(), small_data(), 0, tmp_path, RUNGS) == whole
