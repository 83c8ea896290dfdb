import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from runs import SMALL, small_fit
from samples import random_points, seeds

from h2hgcn.datasets import EdgeSplit
from h2hgcn.datasets.disease import generate_disease
from h2hgcn.geometry import lorentz, poincare
from h2hgcn.tasks import LinkPrediction, link_baselines, top_links
from h2hgcn.tasks.neighborhoods import Neighborhoods
from h2hgcn.tasks.top_links import LinkScores, best_pairs, precision_of

COUNT = 40


def edges_of(seed, count=90):
    return np.random.default_rng(seed).integers(COUNT, size=(count, 2))


def scores_of(seed, space="lorentz", moved=False, terms=True, graph=True, directed=False, slopes=(0.7, 2.0)):
    """What a decoder with all its terms makes of random points."""
    random = np.random.default_rng(seed)
    points = random_points(COUNT, 3, 4.0, seed)
    queries = random_points(COUNT, 3, 4.0, seed + 1) if moved else points
    if space == "ball":
        points, queries = poincare.from_lorentz(points), poincare.from_lorentz(queries)
    size, weights = (len(slopes), COUNT), np.array([[0.5, -0.4, 1.5], [0.3, 2.0, 0.0]])[: len(slopes)]
    sources = random.normal(size=size) * terms
    targets = random.normal(size=size) * terms if directed else sources
    return LinkScores(
        sources, targets, points, queries if moved else points, space, np.array(slopes),
        Neighborhoods(edges_of(seed), COUNT) if graph else None, weights,
    )  # fmt: skip


def plain_best(scores, known, k, directed):
    """All pairs one by one, sorted."""
    taken = {tuple(pair) for pair in known.tolist()} | (set() if directed else {(b, a) for a, b in known.tolist()})
    pairs = itertools.permutations(range(COUNT), 2) if directed else itertools.combinations(range(COUNT), 2)
    left = np.array([pair for pair in pairs if pair not in taken])
    found = scores.of(left)
    order = np.argsort(-found, kind="stable")[:k]
    return left[order].tolist(), found[order]


@pytest.mark.parametrize("space", ["lorentz", "ball", "euclidean"])
@pytest.mark.parametrize("directed", [False, True])
@given(seed=seeds, k=st.integers(1, 60), terms=st.booleans(), graph=st.booleans())
def test_the_best_pairs_are_those_of_a_sorted_list(space, directed, seed, k, terms, graph):
    scores = scores_of(seed, space, directed, terms, graph, directed)
    known = edges_of(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(top_links, "_BLOCK", 100)
        patch.setattr(top_links, "_PENDING", 70)
        pairs, found = best_pairs(scores, known, k, directed).found()
    wanted, of_wanted = plain_best(scores, known, k, directed)
    # scores of other batches may differ in the last bit, by which pairs of equal scores change places
    np.testing.assert_allclose(found, of_wanted, atol=1e-12)
    certain = of_wanted > of_wanted[-1] + 1e-9 if len(of_wanted) else []
    assert {tuple(pair) for pair, is_above in zip(wanted, certain, strict=True) if is_above} <= set(
        map(tuple, pairs.tolist())
    )


@given(seeds)
def test_scores_are_the_formula(seed):
    scores, graph = scores_of(seed, directed=True, moved=True), Neighborhoods(edges_of(seed), COUNT)
    points, queries = random_points(COUNT, 3, 4.0, seed), random_points(COUNT, 3, 4.0, seed + 1)
    pairs = edges_of(seed + 1)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    shared = np.array([[0.5, -0.4, 1.5], [0.3, 2.0, 0.0]]) @ graph.features(pairs)[:, :3].T
    squares = lorentz.squared_distance(queries[pairs[:, 0]], points[pairs[:, 1]]).numpy()
    terms = scores.sources[:, pairs[:, 0]] + scores.targets[:, pairs[:, 1]]
    wanted = (terms - np.outer([0.7, 2.0], squares) + shared).max(0)
    np.testing.assert_allclose(scores.of(pairs), wanted, atol=1e-9)


def test_points_far_out_keep_their_order():
    """Inner products are off by more than these distances differ."""
    radii = 14 + np.arange(COUNT) ** 2 * 1e-9
    points = torch.from_numpy(np.stack([np.cosh(radii), np.sinh(radii)], axis=1))
    scores = LinkScores(np.zeros(COUNT), np.zeros(COUNT), points)
    pairs, _ = best_pairs(scores, np.empty((0, 2), np.int64), 5).found()
    assert pairs.tolist() == [[0, 1], [1, 2], [0, 2], [2, 3], [3, 4]]


def test_equal_scores_come_by_number_and_are_counted():
    scores = LinkScores(np.zeros(COUNT), np.zeros(COUNT), torch.zeros(COUNT, 2), space="euclidean")
    best = best_pairs(scores, np.array([[1, 0]]), 4)
    assert best.found()[0].tolist() == [[0, 2], [0, 3], [0, 4], [0, 5]]
    assert best.tied == best.available - 4 == COUNT * (COUNT - 1) // 2 - 5


def test_fewer_pairs_than_are_wanted():
    scores = scores_of(0)
    known = np.array(list(itertools.combinations(range(COUNT), 2)))[7:]
    assert len(best_pairs(scores, known, 100).found()[0]) == 7


def a_split(seed, directed=False):
    random = np.random.default_rng(seed)
    pairs = itertools.permutations(range(COUNT), 2) if directed else itertools.combinations(range(COUNT), 2)
    edges = random.permutation(np.array(list(pairs)))[:120]
    train, val, test, *_ = np.split(edges, [80, 90, 120])
    return EdgeSplit(train, val, test, val, test, COUNT, 0, "clean", directed)


def plain_precision(scores, split, k):
    """The mean over many orders of equal scores."""
    known = np.concatenate([split.train, split.val])
    pairs, found = plain_best(scores, known, COUNT**2, split.directed)
    links, found = {tuple(pair) for pair in split.test.tolist()}, np.round(found, 9)
    is_link = np.array([tuple(pair) in links for pair in pairs])
    above, equal = found > found[k - 1], found == found[k - 1]
    return (is_link[above].sum() + (k - above.sum()) * is_link[equal].mean()) / k


@pytest.mark.parametrize("directed", [False, True])
@given(seed=seeds)
def test_precision_by_definition(directed, seed):
    split = a_split(seed, directed)
    scores = scores_of(seed, directed=directed)
    assert precision_of(scores, split) == {"precision@30": pytest.approx(plain_precision(scores, split, 30))}


@pytest.mark.parametrize("kind", [0, 1])
@given(seed=seeds)
def test_precision_of_shared_neighbors_shares_ties_out(kind, seed):
    split = a_split(seed)
    graph = Neighborhoods(split.train, COUNT)
    scores = LinkScores(np.zeros(COUNT), np.zeros(COUNT), graph=graph, weights=np.eye(3)[kind])
    found = link_baselines(np.ones((COUNT, 1)), split).metrics[("common neighbors", "Adamic-Adar")[kind]]
    assert found["precision@30"] == pytest.approx(plain_precision(scores, split, 30))


def test_precision_is_a_metric_of_the_test_part_alone(monkeypatch):
    run = small_fit(LinkPrediction(neighborhood_terms=True), generate_disease(400), SMALL, epochs=2)
    (name,) = (name for name in run.metrics["test"] if name.startswith("precision"))
    assert name == f"precision@{len(run.problem.split.test)}"
    assert not any(name.startswith("precision") for name in run.metrics["val"])
    assert not any("precision" in str(row) for row in run.history)
    assert run.evaluate("test")[name] == run.metrics["test"][name]
    assert "precision" not in str(link_baselines(run.problem.x, run.problem.split, "val").metrics)
    monkeypatch.setattr(top_links, "_MOST_NODES", 399)
    assert name not in run.evaluate("test")
