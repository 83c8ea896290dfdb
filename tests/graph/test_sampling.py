import numpy as np
import pytest
import torch
from samples import random_points
from torch_geometric.data import Data
from torch_geometric.loader import LinkLoader, NodeLoader
from torch_geometric.sampler import NegativeSampling
from torch_geometric.utils import to_undirected

from h2hgcn.datasets.hyperbolic import generate_hyperbolic
from h2hgcn.graph.sampling import AdjacencySampler, sample_adjacency
from h2hgcn.kernels.csr import row_sums, sparse_matmul
from h2hgcn.kernels.sampling import sample_neighbors
from h2hgcn.layers import H2HConv, prepare_adjacency
from h2hgcn.models import H2HGCN
from h2hgcn.models.row_blocks import can_go_by_blocks, point_blocks, points_by_blocks

WEIGHTS = ["symmetric", "uniform"]


def edges_of(num_nodes, num_edges, seed=0):
    return torch.randint(num_nodes, (2, num_edges), generator=torch.Generator().manual_seed(seed))


def weighted_graph(num_nodes=40, num_edges=250, seed=0):
    """With hubs, weights and self-loops."""
    index = to_undirected(
        torch.cat([edges_of(num_nodes, num_edges, seed), torch.tensor([[0] * 9, [*range(1, 10)]])], 1)
    )
    weights = 0.5 + torch.rand(index.shape[1], generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return prepare_adjacency(index, weights, num_nodes)


@pytest.mark.parametrize("neighbor_weights", WEIGHTS)
def test_sums_are_unbiased(neighbor_weights):
    """The mean of (T, S) over many draws is that of all neighbours, within its own standard error."""
    graph = weighted_graph()
    points = random_points(graph.num_nodes, 3, 2.0)
    wanted = sparse_matmul(graph.matrix(neighbor_weights, torch.float64), points)
    draws = []
    for seed in range(1200):
        part = sample_adjacency(graph, range(5), [3], seed)
        matrix = part.with_values(part.unbiased(neighbor_weights, torch.float64))
        draws.append(sparse_matmul(matrix, points[part.nodes])[:5])
    drawn = torch.stack(draws)
    error = drawn.std(0) / len(draws) ** 0.5
    assert (drawn.std(0) > 0).any()
    assert ((drawn.mean(0) - wanted[:5]).abs() <= 4 * error + 1e-12).all()


@pytest.mark.parametrize("kind", [*WEIGHTS, "gcn", "mean"])
def test_every_kind_of_weights_adds_up_in_the_mean(kind):
    graph = weighted_graph()
    wanted = row_sums(graph.crow, graph.values(kind, torch.float64))[:5]
    totals = []
    for seed in range(600):
        part = sample_adjacency(graph, range(5), [4], seed)
        totals.append(row_sums(part.crow, part.unbiased(kind, torch.float64))[:5])
    drawn = torch.stack(totals)
    assert ((drawn.mean(0) - wanted).abs() <= 4 * drawn.std(0) / len(totals) ** 0.5 + 1e-7).all()


@pytest.mark.parametrize("neighbor_weights", WEIGHTS)
def test_a_midpoint_is_that_of_the_unbiased_sums(neighbor_weights):
    """Rows are divided by their sum for the sake of the bound under the root, which changes no midpoint."""
    graph = weighted_graph()
    part = sample_adjacency(graph, range(5), [3], 7)
    values, unbiased = part.values(neighbor_weights, torch.float64), part.unbiased(neighbor_weights, torch.float64)
    ratio = (values / unbiased)[: part.crow[5]]
    assert torch.equal(row_sums(part.crow, values).round(decimals=12), torch.ones(part.num_nodes, dtype=torch.float64))
    for row in range(5):
        of_row = ratio[part.crow[row] : part.crow[row + 1]]
        assert torch.allclose(of_row, of_row[0].expand_as(of_row))


def test_neighbours_are_drawn_without_replacement_and_alike():
    graph = weighted_graph()
    arrays = [part.numpy() for part in (graph.crow, graph.col, graph.loop_entries)]
    counts = np.zeros(len(graph.col))
    degree = int(graph.crow[1]) - 1
    for seed in range(1000):
        sample = sample_neighbors(*arrays, np.array([0]), [4], seed)
        block = sample.blocks[0]
        assert len(np.unique(block.entries)) == len(block.entries) == 5
        assert block.scale.tolist() == [1.0] + [pytest.approx(degree / 4)] * 4
        assert np.array_equal(sample.nodes[block.col], graph.col.numpy()[block.entries])
        counts[block.entries] += 1
    loop = int(graph.loop_entries[0])
    drawn = np.delete(counts[: degree + 1], loop)
    assert counts[loop] == 1000
    expected = 1000 * 4 / degree
    assert (abs(drawn - expected) < 5 * np.sqrt(expected)).all()


def test_what_a_node_draws_does_not_depend_on_the_others():
    graph = weighted_graph()
    alone, among = (sample_adjacency(graph, seeds, [3], 5) for seeds in ([7], [2, 7, 9]))
    drawn = {int(e) for e in alone.entries[: alone.crow[1]]}
    assert drawn == {int(e) for e in among.entries[among.crow[1] : among.crow[2]]}
    other = sample_adjacency(graph, [7], [3], 6)
    assert drawn != {int(e) for e in other.entries[: other.crow[1]]}


@pytest.mark.parametrize(
    ("weight", "unweighted"), [(None, True), (torch.tensor(1.0, dtype=torch.float64), True), (torch.tensor(0.5), False)]
)
def test_weights_are_those_of_the_whole_times_what_an_entry_stands_for(weight, unweighted):
    index = edges_of(60, 400).unique(dim=1)
    whole = prepare_adjacency(index, None if weight is None else weight.expand(index.shape[1]), 60)
    assert whole.unweighted == unweighted
    part = sample_adjacency(whole, [3, 1], [4, 2], seed=0)
    expected = whole.weights[part.entries] * part.scale
    assert torch.equal(part.weights, expected)
    assert part.weights.dtype == expected.dtype


def test_threads_draw_the_same():
    graph = prepare_adjacency(edges_of(20_000, 200_000), None, 20_000)
    one = sample_adjacency(graph, range(15_000), [5, 3], 1)
    torch.set_num_threads(2)
    two = sample_adjacency(graph, range(15_000), [5, 3], 1)
    assert np.array_equal(one.entries, two.entries)
    assert torch.equal(one.nodes, two.nodes)


@pytest.mark.parametrize("neighbor_weights", WEIGHTS)
@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_all_neighbours_give_the_points_of_the_whole_graph(neighbor_weights, num_layers):
    graph = weighted_graph(60, 90)
    x = torch.randn(60, 4, dtype=torch.float64)
    model = H2HGCN(4, 3, num_layers, neighbor_weights=neighbor_weights, dtype=torch.float64)
    part = sample_adjacency(graph, [5, 3, 50], [-1] * num_layers, 0)
    whole = model(x, graph)[[5, 3, 50]]
    sampled = model(x[part.nodes], part)[:3]
    assert torch.allclose(sampled, whole, rtol=0, atol=1e-12)
    parameters = [model.stem.weight, *(conv.linear.weight for conv in model.convs)]
    gradients = [torch.autograd.grad(points.square().sum(), parameters) for points in (whole, sampled)]
    for one, other in zip(*gradients, strict=True):
        assert torch.allclose(one, other, atol=1e-10)


def test_more_neighbours_than_any_number_of_32_bits():
    graph = weighted_graph(60, 90)
    every, many = (sample_adjacency(graph, [5, 3], [width, width], 0) for width in (-1, 10**20))
    assert torch.equal(every.nodes, many.nodes)
    assert np.array_equal(every.entries, many.entries)


def test_layers_get_no_more_than_they_need():
    graph = prepare_adjacency(edges_of(500, 1500), None, 500)
    part = sample_adjacency(graph, [1, 2], [4, 3], 0)
    first, last = part.layer_graphs(2)
    assert first is part
    assert last.num_nodes == part.sample.sizes[1] < first.num_nodes == part.sample.sizes[2]
    assert H2HGCN(4, 3)(torch.randn(first.num_nodes, 4), part).shape == (last.num_nodes, 4)


@pytest.mark.parametrize("block", [1, 7, 40, 1000])
def test_blocks_of_rows_give_the_points_of_the_whole_graph(block):
    graph = weighted_graph()
    x = torch.randn(40, 5, dtype=torch.float64)
    model = H2HGCN(5, 5, 3, tied=True, dtype=torch.float64).eval()
    told = []
    points = points_by_blocks(model, lambda rows: x[rows], graph, block)
    assert torch.allclose(points, model(x, graph), rtol=0, atol=1e-12)
    found = point_blocks(model, lambda rows: x[rows], graph, block, progress=lambda *done: told.append(done))
    assert torch.equal(torch.cat([part for _, part in found]), points)
    assert told[-1] == (160, 160)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


@pytest.mark.parametrize("options", [{"weights": "free"}, {"aggregation": "tangent"}, {"activation": "tanh"}])
def test_variants_go_by_blocks_too(options):
    assert can_go_by_blocks(H2HGCN(3, 3))
    graph, x = weighted_graph(), torch.randn(40, 5, dtype=torch.float64)
    model = H2HGCN(5, 5, dtype=torch.float64, **options).eval()
    torch.testing.assert_close(points_by_blocks(model, lambda rows: x[rows], graph, 7), model(x, graph))
    assert not can_go_by_blocks(H2HConv(3, 3))


@pytest.fixture(scope="module")
def graph():
    return generate_hyperbolic(1000, mean_degree=8)


def loader_parts(graph, fanout, neighbor_weights="symmetric"):
    adjacency = prepare_adjacency(graph.edge_index, None, graph.num_nodes)
    data = Data(x=graph.x, y=graph.y, edge_index=adjacency.edges(self_loops=False)[0])
    return adjacency, data, AdjacencySampler(adjacency, fanout, neighbor_weights)


@pytest.mark.parametrize("neighbor_weights", ["symmetric", "uniform"])
def test_a_node_loader_with_all_neighbours_gives_the_points_of_the_whole_graph(graph, neighbor_weights):
    adjacency, data, sampler = loader_parts(graph, [-1, -1], neighbor_weights)
    whole = H2HGCN(16, 4, neighbor_weights=neighbor_weights)
    of_batch = H2HGCN(16, 4, neighbor_weights="uniform")
    of_batch.load_state_dict(whole.state_dict())
    points = whole(graph.x, adjacency)
    seen = []
    for batch in NodeLoader(data, sampler, batch_size=100, transform=sampler.weigh):
        found = of_batch(batch.x, batch.edge_index, batch.edge_weight)[: batch.batch_size]
        assert torch.allclose(found, points[batch.n_id[: batch.batch_size]], atol=1e-5)
        assert torch.equal(batch.y, graph.y[batch.n_id])
        seen += batch.n_id[: batch.batch_size].tolist()
    assert sorted(seen) == list(range(graph.num_nodes))


def test_batches_are_sampled_and_differ_from_call_to_call(graph):
    _, data, sampler = loader_parts(graph, [3, 2])
    first, second = (next(iter(NodeLoader(data, sampler, batch_size=20))) for _ in range(2))
    again = next(iter(NodeLoader(data, loader_parts(graph, [3, 2])[2], batch_size=20)))
    assert torch.bincount(first.edge_index[1]).max() == 3
    assert not torch.equal(first.e_id, second.e_id)
    assert torch.equal(first.e_id, again.e_id)
    assert torch.equal(data.edge_index[:, first.e_id], first.n_id[first.edge_index])


def test_weights_of_a_batch_are_unbiased(graph):
    adjacency, data, sampler = loader_parts(graph, [3])
    totals = []
    for _ in range(400):
        batch = next(
            iter(NodeLoader(data, sampler, input_nodes=torch.arange(5), batch_size=5, transform=sampler.weigh))
        )
        totals.append(torch.zeros(batch.num_nodes).index_add(0, batch.edge_index[1], batch.edge_weight)[:5])
    drawn = torch.stack(totals)
    assert ((drawn.mean(0) - 1).abs() <= 4 * drawn.std(0) / len(totals) ** 0.5 + 1e-6).all()
    assert adjacency.num_nodes == graph.num_nodes


def test_a_link_loader_has_links_and_negatives(graph):
    _, data, sampler = loader_parts(graph, [3, 2])
    links = data.edge_index[:, :60]
    loader = LinkLoader(
        data, sampler, edge_label_index=links, neg_sampling=NegativeSampling("binary"), batch_size=30,
        transform=sampler.weigh,
    )  # fmt: skip
    for number, batch in enumerate(loader):
        assert batch.edge_label.tolist() == [1.0] * 30 + [0.0] * 30
        ends = batch.n_id[batch.edge_label_index[:, :30]]
        assert torch.equal(ends, links[:, 30 * number : 30 * number + 30])
