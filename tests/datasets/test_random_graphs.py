import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from h2hgcn import jit as splitmix
from h2hgcn.datasets import synthetic as ours

SAMPLES = 150
# of this many standard errors two means may differ; the samples are fixed, so a test fails always or never
ERRORS = 4


def states(count=SAMPLES):
    return (splitmix.random_state(5, number) for number in range(count))


def published(state, count):
    """The published steps, in Python's integers."""
    words = []
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        word = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        word = (word ^ (word >> 27)) * 0x94D049BB133111EB % 2**64
        words.append(word ^ (word >> 31))
    return words


def as_networkx(adjacency):
    return nx.from_numpy_array(adjacency)


def assert_simple(adjacency):
    assert (adjacency == adjacency.T).all()
    assert not adjacency.diagonal().any()
    assert adjacency.max(initial=0) <= 1


def assert_equal_means(first, second):
    first, second = np.asarray(first, float), np.asarray(second, float)
    error = np.sqrt(first.var() / len(first) + second.var() / len(second))
    assert abs(first.mean() - second.mean()) <= ERRORS * error


def assert_alike(adjacencies, references):
    """Clustering, largest and smallest degree, spread of degrees, and degrees as a whole."""
    graphs = [as_networkx(adjacency) for adjacency in adjacencies]
    for measure in (
        nx.average_clustering,
        lambda graph: max(dict(graph.degree).values()),
        lambda graph: min(dict(graph.degree).values()),
        lambda graph: np.std(list(dict(graph.degree).values())),
    ):
        assert_equal_means([measure(graph) for graph in graphs], [measure(graph) for graph in references])
    degrees = [[degree for graph in some for _, degree in graph.degree] for some in (graphs, references)]
    assert stats.ks_2samp(*degrees).statistic < 0.03


@given(seed=st.integers(0, 2**64 - 1))
def test_random_words_are_splitmix(seed):
    state = np.array([seed], np.uint64)
    assert [int(splitmix.random_word(state)) for _ in range(5)] == published(seed, 5)


@given(bound=st.integers(1, 500))
def test_bounded_and_uniform_numbers_are_parts_of_a_word(bound):
    (word,) = published(bound, 1)
    assert splitmix.random_below(bound, np.array([bound], np.uint64)) == (word >> 32) * bound >> 32
    assert splitmix.random_uniform(np.array([bound], np.uint64)) == (word >> 11) / 2**53


def test_every_choice_of_seeds_has_its_own_stream():
    seeds = [(i, j, k) for i in range(10) for j in range(10) for k in range(10)]
    assert len({int(splitmix.random_state(*seed)[0]) for seed in seeds}) == 1000
    uniform = [splitmix.random_uniform(splitmix.random_state(*seed)) for seed in seeds]
    assert stats.kstest(uniform, "uniform").pvalue > 0.01


def test_erdos_renyi_joins_every_pair_alike():
    graphs = np.stack([ours.erdos_renyi(40, 0.3, state) for state in states(400)])
    for graph in graphs:
        assert_simple(graph)
    pairs = graphs[:, *np.triu_indices(40, 1)]
    assert (
        stats.kstest(pairs.sum(1) + np.linspace(-0.5, 0.5, 400), stats.norm(780 * 0.3, np.sqrt(780 * 0.21)).cdf)[1]
        > 0.01
    )
    z = (pairs.sum(0) - 400 * 0.3) / np.sqrt(400 * 0.21)
    assert z.std() == pytest.approx(1, abs=0.1)
    assert abs(z).max() < 4.5


@given(probability=st.sampled_from([0.0, 1.0]), num_nodes=st.integers(0, 20))
def test_erdos_renyi_at_the_ends(probability, num_nodes):
    adjacency = ours.erdos_renyi(num_nodes, probability, splitmix.random_state(0))
    assert adjacency.sum() == probability * num_nodes * (num_nodes - 1)


@given(num_nodes=st.integers(5, 30), data=st.data())
def test_watts_strogatz_without_rewiring_is_networkx_ring(num_nodes, data):
    num_neighbors = data.draw(st.integers(1, num_nodes - 1))
    adjacency = ours.watts_strogatz(num_nodes, num_neighbors, 0.0, splitmix.random_state(0))
    assert (adjacency == nx.to_numpy_array(nx.watts_strogatz_graph(num_nodes, num_neighbors, 0.0))).all()


@given(num_nodes=st.integers(3, 30), probability=st.floats(0, 1), seed=st.integers(0, 99), data=st.data())
def test_watts_strogatz_keeps_the_number_of_edges(num_nodes, probability, seed, data):
    num_neighbors = data.draw(st.integers(1, num_nodes - 1))
    adjacency = ours.watts_strogatz(num_nodes, num_neighbors, probability, splitmix.random_state(seed))
    assert_simple(adjacency)
    assert adjacency.sum() == 2 * num_nodes * (num_neighbors // 2)
    # edges are rewired at one end only
    assert adjacency.sum(1).min() >= num_neighbors // 2


@pytest.mark.parametrize(("num_neighbors", "probability"), [(6, 0.2), (7, 1.0), (20, 0.6)])
def test_watts_strogatz_is_distributed_as_networkx(num_neighbors, probability):
    adjacencies = [ours.watts_strogatz(40, num_neighbors, probability, state) for state in states()]
    references = [nx.watts_strogatz_graph(40, num_neighbors, probability, seed=seed) for seed in range(SAMPLES)]
    assert_alike(adjacencies, references)
    ring = nx.to_numpy_array(nx.watts_strogatz_graph(40, num_neighbors, 0.0))
    assert_equal_means(
        [(adjacency * ring).sum() for adjacency in adjacencies],
        [(nx.to_numpy_array(graph) * ring).sum() for graph in references],
    )


@given(num_nodes=st.integers(2, 30), seed=st.integers(0, 99), data=st.data())
def test_barabasi_albert_has_its_number_of_edges(num_nodes, seed, data):
    num_links = data.draw(st.integers(1, num_nodes - 1))
    adjacency = ours.barabasi_albert(num_nodes, num_links, splitmix.random_state(seed))
    assert_simple(adjacency)
    assert adjacency.sum() == 2 * ((num_nodes - num_links - 1) * num_links + num_links)
    # a star, and later nodes with as many edges to earlier ones as told
    star = nx.to_numpy_array(nx.star_graph(num_links))
    assert (adjacency[: num_links + 1, : num_links + 1] == star).all()
    assert (np.tril(adjacency).sum(1)[num_links + 1 :] == num_links).all()


@pytest.mark.parametrize("num_links", [1, 5, 30])
def test_barabasi_albert_is_distributed_as_networkx(num_links):
    assert_alike(
        [ours.barabasi_albert(40, num_links, state) for state in states()],
        [nx.barabasi_albert_graph(40, num_links, seed=seed) for seed in range(SAMPLES)],
    )


@given(num_nodes=st.integers(0, 20), probability=st.floats(0, 1), seed=st.integers(0, 99))
def test_packed_graphs_come_back(num_nodes, probability, seed):
    adjacency = ours.erdos_renyi(num_nodes, probability, splitmix.random_state(seed))
    packed = ours.pack_triangle(adjacency)
    assert (packed == np.packbits(adjacency[np.triu_indices(num_nodes, 1)], bitorder="little")).all()
    edges, degree = ours.unpack_edges(packed, num_nodes)
    assert (edges == np.stack(adjacency.nonzero())).all()
    assert (degree == adjacency.sum(1)).all()
