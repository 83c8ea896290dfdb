import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.loader import LinkLoader, NodeLoader
from torch_geometric.sampler import NegativeSampling

from h2hgcn.datasets.hyperbolic import generate_hyperbolic
from h2hgcn.graph.sampling import AdjacencySampler
from h2hgcn.layers import prepare_adjacency
from h2hgcn.models import H2HGCN


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
