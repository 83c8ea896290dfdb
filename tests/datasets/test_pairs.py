import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2hgcn.datasets import DataError
from h2hgcn.datasets.legacy_splits import shuffle_head
from h2hgcn.datasets.pairs import AbsentPairs, PairSpace, contains, distinct_pairs, nth_absent

spaces = st.builds(PairSpace, st.integers(0, 12), st.booleans(), st.booleans())


def all_pairs(space):
    """Row-major, by definition."""
    nodes = range(space.num_nodes)
    return [
        (i, j) for i, j in itertools.product(nodes, nodes) if (space.directed or i <= j) and (space.with_self or i != j)
    ]


@given(space=spaces)
def test_ranks_number_all_pairs(space):
    expected = np.array(all_pairs(space), dtype=np.int64).reshape(-1, 2)
    assert len(space) == len(expected)
    np.testing.assert_array_equal(space.ranks(expected), np.arange(len(expected)))
    np.testing.assert_array_equal(space.pairs(np.arange(len(expected))), expected)


@given(space=spaces, data=st.data())
def test_distinct_pairs(space, data):
    node = st.integers(0, max(space.num_nodes - 1, 0))
    given_pairs = data.draw(st.lists(st.tuples(node, node), max_size=20)) if space.num_nodes else []
    pairs = np.array(given_pairs, dtype=np.int64).reshape(-1, 2)
    wanted = {pair if space.directed else tuple(sorted(pair)) for pair in given_pairs}
    expected = [pair for pair in all_pairs(space) if pair in wanted]
    np.testing.assert_array_equal(distinct_pairs(space, pairs), np.array(expected).reshape(-1, 2))


@given(present=st.sets(st.integers(0, 30)))
def test_absent_ranks(present):
    ranks = np.array(sorted(present), dtype=np.int64)
    absent = np.array([k for k in range(31) if k not in present], dtype=np.int64)
    np.testing.assert_array_equal(nth_absent(ranks, np.arange(len(absent))), absent)
    assert contains(ranks, ranks).all()
    assert not contains(ranks, absent).any()


@given(space=spaces, data=st.data())
def test_absent_pairs_are_drawn_all_and_no_others(space, data):
    pairs = all_pairs(space)
    present = data.draw(st.permutations(pairs))[: data.draw(st.integers(0, len(pairs)))]
    absent = AbsentPairs(space, np.array(present, dtype=np.int64).reshape(-1, 2))
    if len(present) == len(pairs):
        with pytest.raises(DataError, match="none to train against"):
            absent.draw(1, np.random.RandomState(0))
        return
    drawn = [tuple(pair) for pair in absent.draw(40 * len(pairs), np.random.RandomState(0)).tolist()]
    assert len(drawn) == 40 * len(pairs)
    assert set(drawn) == set(pairs) - set(present)


@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 3000), before=st.integers(0, 1300), share=st.floats(0, 1))
def test_head_of_a_shuffle_is_numpys(seed, size, before, share):
    random = np.random.RandomState(seed)
    random.bytes(before)
    count = int(share * size)
    head = shuffle_head(random, size, count)
    whole = np.arange(size)
    random.shuffle(whole)
    np.testing.assert_array_equal(head, whole[:count])


def test_head_of_a_shuffle_across_chunks():
    random = np.random.RandomState(7)
    head = shuffle_head(random, 1_500_000, 1000)
    whole = np.arange(1_500_000)
    random.shuffle(whole)
    np.testing.assert_array_equal(head, whole[:1000])
