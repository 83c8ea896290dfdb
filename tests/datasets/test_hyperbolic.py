import hashlib

import numpy as np
import pytest
import torch

from h2hgcn.datasets import DataError, load_dataset, split_edges
from h2hgcn.datasets.hyperbolic import disk_radius, generate_hyperbolic, pairs_within


def all_pairs_within(radii, angles, distance):
    """By looking at every pair."""
    gap = np.cosh(distance) - np.cosh(radii[:, None] - radii)
    near = np.sin((angles[:, None] - angles) / 2) ** 2 * 2 * np.sinh(radii[:, None]) * np.sinh(radii) <= gap
    np.fill_diagonal(near, False)
    return np.stack(near.nonzero())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("distance", [6.0, 8.0, 12.1])
def test_bands_find_all_pairs_and_no_others(seed, distance):
    random = np.random.RandomState(seed)
    radii, angles = 6 * random.random_sample(300), 2 * np.pi * random.random_sample(300)
    radii[0] = 0.0
    assert np.array_equal(pairs_within(radii, angles, distance), all_pairs_within(radii, angles, distance))


def test_the_edges_are_those_of_the_hidden_positions():
    graph = generate_hyperbolic(2000, mean_degree=10)
    radii, angles = graph.positions.double().numpy().T
    found = {tuple(edge) for edge in graph.edge_index.T.tolist()}
    wanted = {tuple(edge) for edge in all_pairs_within(radii, angles, disk_radius(400, 10, 0.75)).T.tolist()}
    assert len(found ^ wanted) <= 4  # positions are kept in single precision
    assert graph.is_undirected()
    assert not graph.has_self_loops()


def test_the_size_is_what_was_asked_for():
    counts = [generate_hyperbolic(10_000, seed).num_edges / 2 for seed in range(8)]
    assert np.mean(counts) == pytest.approx(10_000, rel=0.1)
    graph = generate_hyperbolic(6000, mean_degree=12, num_features=5, num_classes=3)
    assert graph.num_nodes == 1000
    assert graph.x.shape == (1000, 5)
    assert graph.y.unique().tolist() == [0, 1, 2]


def test_degrees_fall_with_the_radius():
    graph = generate_hyperbolic(20_000)
    degrees = np.bincount(graph.edge_index[0], minlength=graph.num_nodes)
    inner, outer = (degrees[part] for part in np.array_split(graph.positions[:, 0].argsort().numpy(), 2))
    assert inner.mean() > 2 * outer.mean()
    assert degrees.max() > 20 * np.median(degrees)  # hubs, as a power law has them


def test_features_tell_of_the_position():
    graph = generate_hyperbolic(20_000)
    links = split_edges(graph).test
    others = torch.from_numpy(split_edges(graph).test_neg)
    near, far = (
        (graph.x[pairs[:, 0]] - graph.x[pairs[:, 1]]).norm(dim=1) for pairs in (torch.from_numpy(links), others)
    )
    assert near.mean() < 0.95 * far.mean()


def test_the_seed_decides_and_the_graph_is_the_same_everywhere():
    assert hashlib.sha256(generate_hyperbolic(2000).edge_index.numpy().tobytes()).hexdigest()[:16] == "a0d785cb4e44a4e1"
    assert hashlib.sha256(generate_hyperbolic(2000).x.numpy().tobytes()).hexdigest()[:16] == "e2b31dcfae857a04"
    assert not torch.equal(generate_hyperbolic(2000).x, generate_hyperbolic(2000, seed=1).x)


def test_it_has_a_name():
    graph = load_dataset("hyperbolic-10k")
    assert graph.num_nodes == 1000
    assert graph.name == "hyperbolic-10k"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_edges": 100}, "too few"),
        ({"mean_degree": 0}, "mean_degree=0"),
        ({"mean_degree": float("nan")}, "mean_degree=nan"),
        ({"alpha": 0.5}, "above 0.5"),
        ({"num_classes": 0}, "num_classes=0"),
        ({"noise": -1.0}, "noise=-1.0"),
    ],
)
def test_what_makes_no_graph_is_refused(options, message):
    with pytest.raises(DataError, match=message):
        generate_hyperbolic(**options)
