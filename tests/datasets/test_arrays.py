"""Node ids: what is said of unknown ones."""

from difflib import SequenceMatcher

import numpy as np
import pytest

from h2hgcn.datasets.arrays import closest_id, unknown_nodes

COMPANIES = np.array(["acme-corp", "Bolt & Co", " cog ", "dyno", "zeta"])


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("acme", "acme-corp"),
        ("acme-crop", "acme-corp"),
        ("ACME-Corp", "acme-corp"),
        ("bolt & co", "Bolt & Co"),
        ("cog", " cog "),
        ("dyno ", "dyno"),
        ("quux", None),
        ("", None),
        (7, None),
    ],
)
def test_the_id_that_was_meant(name, meant):
    assert closest_id(name, COMPANIES) == meant


@pytest.mark.parametrize(
    ("name", "meant"), [("07", 7), (" 7", 7), ("7.0", 7), ("8", None), ("seven", None), (7.5, None)]
)
def test_integers_in_another_notation(name, meant):
    assert closest_id(name, np.array([3, 7, 12])) == meant


def test_the_most_similar_of_many_is_found():
    """Against difflib on all of them."""
    random = np.random.RandomState(0)
    letters = np.array(list("abcdefghij"))
    ids = np.unique(["".join(random.choice(letters, size)) for size in random.randint(4, 9, 3000)])
    for name in ("abcdefg", "jjihg", "badcfe"):
        best = max(SequenceMatcher(None, text, name).ratio() for text in ids.tolist())
        found = closest_id(name, ids)
        assert SequenceMatcher(None, found, name).ratio() == pytest.approx(best)


def test_all_of_many_blocks_are_searched():
    ids = np.array([f"node-{k:06}" for k in range(150_000)])
    ids[-1] = "main-office"
    assert closest_id("main-ofice", ids) == "main-office"


def test_several_unknown_ids():
    text = unknown_nodes(["acme", "acme", "quux", "dynamo", "x", "y"], COMPANIES)
    assert (
        text
        == "there are no nodes 'acme' (did you mean 'acme-corp'?), 'quux', 'dynamo' (did you mean 'dyno'?) and 2 more"
    )
    assert unknown_nodes(["quux"], COMPANIES) == "there is no node 'quux'; ids go from  cog  to zeta"
    assert unknown_nodes([8, 9], np.array([7, 3]), "graph") == "there are no graphs 8, 9; ids go from 3 to 7"
