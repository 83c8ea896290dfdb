"""The layer in PyG's loaders and transformations."""

import pytest
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.loader import LinkNeighborLoader, NeighborLoader
from torch_geometric.nn import MessagePassing, to_hetero
from torch_geometric.sampler import NegativeSampling

from h2hgcn.datasets.hyperbolic import generate_hyperbolic
from h2hgcn.geometry import lorentz
from h2hgcn.graph.sampling import AdjacencySampler
from h2hgcn.layers import H2HConv, prepare_adjacency
from h2hgcn.models import H2HGCN


class ToPoints(torch.nn.Module):
    def forward(self, x):
        return lorentz.exp_origin(x, max_norm=3.0)


class Midpoint(torch.nn.Module):
    """Of the sums over types of edges."""

    def forward(self, sums):
        return sums / lorentz.norm_of_sum(sums)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.to_points = torch.nn.Linear(3, 4), ToPoints()
        self.first, self.second = H2HConv(4, 4), H2HConv(4, 5)
        self.middle, self.last = Midpoint(), Midpoint()

    def forward(self, x, edge_index):
        points = self.to_points(self.stem(x))
        points = self.middle(self.first(points, edge_index))
        return self.last(self.second(points, edge_index))


def two_types():
    graph = HeteroData()
    graph["author"].x, graph["paper"].x = torch.randn(10, 3), torch.randn(7, 3)
    writes = torch.stack([torch.randint(10, (20,)), torch.randint(7, (20,))])
    graph["author", "writes", "paper"].edge_index = writes
    graph["paper", "by", "author"].edge_index = writes.flip(0)
    graph["author", "knows", "author"].edge_index = torch.randint(10, (2, 15))
    return graph


def test_a_model_for_several_types_of_nodes_and_edges():
    graph = two_types()
    model = to_hetero(Net(), graph.metadata(), aggr="sum")
    points = model(graph.x_dict, graph.edge_index_dict)
    assert {kind: tuple(rows.shape) for kind, rows in points.items()} == {"author": (10, 6), "paper": (7, 6)}
    for rows in points.values():
        assert lorentz.violation(rows).max() < 1e-5
        rows.sum().backward(retain_graph=True)
    convs = [module for module in model.modules() if isinstance(module, H2HConv)]
    assert len(convs) == 6
    used = [conv for conv in convs if conv.linear.weight.grad is not None]
    assert len(used) == 6


def test_sources_and_targets():
    conv = H2HConv(3, 4)
    assert isinstance(conv, MessagePassing)
    sources, targets = (lorentz.exp_origin(torch.randn(count, 3)) for count in (5, 4))
    edges = torch.tensor([[0, 4, 2], [1, 1, 3]])
    weight = torch.tensor([1.0, 2.0, 3.0])
    found = conv((sources, targets), edges, weight)
    whole = conv(torch.cat([sources, targets]), edges + torch.tensor([[0], [5]]), weight)
    torch.testing.assert_close(found, whole[5:])
    alone = conv(targets, torch.empty(2, 0, dtype=torch.long))
    torch.testing.assert_close(found[[0, 2]], alone[[0, 2]])  # without a source, a target has itself
    assert not torch.allclose(found[1], alone[1])
    square = torch.randint(4, (2, 6))
    assert torch.equal(conv((targets, targets), square), conv(targets, square))
    with pytest.raises(ValueError, match=r"a pair of points needs edge_index as a \(2, edges\) tensor"):
        conv((sources, targets), torch.eye(5).to_sparse())


def test_no_generated_source_is_left():
    H2HConv(3, 4)
    assert H2HConv.propagate.__module__ == "h2hgcn.layers.h2h_conv"  # not that of a file which PyG has written


@pytest.fixture(scope="module")
def parts():
    graph = generate_hyperbolic(300, mean_degree=6)
    adjacency = prepare_adjacency(graph.edge_index, None, graph.num_nodes)
    data = Data(x=graph.x, y=graph.y, edge_index=adjacency.edges(self_loops=False)[0])
    return adjacency, data, AdjacencySampler(adjacency, [-1, -1])


def test_neighbor_loader_gives_the_points_of_the_whole_graph(parts):
    adjacency, data, sampler = parts
    whole, of_batch = (H2HGCN(16, 4, neighbor_weights=kind) for kind in ("symmetric", "uniform"))
    of_batch.load_state_dict(whole.state_dict())
    points = whole(data.x, adjacency)
    options = {"neighbor_sampler": sampler, "transform": sampler.weigh, "batch_size": 100}
    for batch in NeighborLoader(data, num_neighbors=[-1, -1], **options):
        found = of_batch(batch.x, batch.edge_index, batch.edge_weight)[: batch.batch_size]
        torch.testing.assert_close(found, points[batch.input_id], atol=1e-5, rtol=1e-4)


def test_link_neighbor_loader_gives_the_points_of_the_whole_graph(parts):
    adjacency, data, sampler = parts
    whole, of_batch = (H2HGCN(16, 4, neighbor_weights=kind) for kind in ("symmetric", "uniform"))
    of_batch.load_state_dict(whole.state_dict())
    points, links = whole(data.x, adjacency), data.edge_index[:, :60]
    loader = LinkNeighborLoader(
        data, num_neighbors=[-1, -1], edge_label_index=links, neighbor_sampler=sampler, transform=sampler.weigh,
        neg_sampling=NegativeSampling("binary"), batch_size=30,
    )  # fmt: skip
    for number, batch in enumerate(loader):
        found = of_batch(batch.x, batch.edge_index, batch.edge_weight)[batch.edge_label_index]
        ends = batch.n_id[batch.edge_label_index]
        torch.testing.assert_close(found, points[ends], atol=1e-5, rtol=1e-4)
        assert torch.equal(ends[:, :30], links[:, 30 * number : 30 * number + 30])
        assert batch.edge_label.tolist() == [1.0] * 30 + [0.0] * 30
