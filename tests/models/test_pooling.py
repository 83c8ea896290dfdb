"""What encoders of whole graphs promise beyond the contract."""

import copy
import pickle

import pytest
import torch
from runs import shapes
from torch_geometric.data import Batch, Data

from h2hgcn.layers import prepare_adjacency
from h2hgcn.models import ENCODERS

NAMES = [name for name, encoder in ENCODERS.items() if encoder.pools]
every = pytest.mark.parametrize("name", NAMES)
EMPTY = torch.empty(2, 0, dtype=torch.long)


def make(name, **options):
    torch.manual_seed(0)
    return ENCODERS[name](5, 6, **options)


def encode(encoder, graphs):
    batch = Batch.from_data_list([Data(x=graph.x, edge_index=graph.edge_index) for graph in graphs])
    adjacency = prepare_adjacency(batch.edge_index, None, batch.num_nodes)
    return encoder(batch.x.float(), adjacency, batch.batch, batch.num_graphs)


@every
def test_other_graphs_of_a_batch_do_not_matter(name):
    encoder, graphs = make(name).eval(), list(shapes())
    together = encode(encoder, graphs)
    for k in (0, 7, 23):
        torch.testing.assert_close(encode(encoder, [graphs[k]])[0], together[k], atol=1e-5, rtol=1e-4)


@every
@pytest.mark.parametrize("nodes", [1, 3])
def test_batches_of_one_graph_without_edges(name, nodes):
    encoder = make(name).train()
    points = encode(encoder, [Data(x=torch.randn(nodes, 5), edge_index=EMPTY)])
    assert points.shape == (1, 6)
    points.sum().backward()
    assert all(p.grad.isfinite().all() for p in encoder.parameters() if p.grad is not None)
    assert all(buffer.isfinite().all() for buffer in encoder.buffers())


@every
def test_graphs_without_nodes(name):
    nothing = Data(x=torch.ones(0, 5), edge_index=EMPTY)
    for graphs in ([nothing], [nothing, nothing], [*shapes(3), nothing]):
        assert encode(make(name).train(), graphs).isfinite().all()


@every
def test_evaluation_leaves_the_state_alone(name):
    encoder = make(name)
    encode(encoder, list(shapes()))
    before = {key: value.clone() for key, value in encoder.eval().state_dict().items()}
    first, second = encode(encoder, list(shapes())), encode(encoder, list(shapes()))
    assert torch.equal(first, second)
    assert all(torch.equal(value, before[key]) for key, value in encoder.state_dict().items())


@every
def test_plain_tensors_and_one_graph(name):
    graph = shapes()[3]
    encoder = make(name).eval()
    torch.testing.assert_close(encoder(graph.x.float(), graph.edge_index), encode(encoder, [graph]))


@every
def test_copies_are_made_in_the_middle_of_training(name):
    encoder = make(name)
    encode(encoder, list(shapes()))
    for other in (copy.deepcopy(encoder), pickle.loads(pickle.dumps(encoder))):
        assert all(torch.equal(one, two) for one, two in zip(other.parameters(), encoder.parameters(), strict=True))


@every
def test_reset_draws_anew(name):
    encoder = make(name)
    before = [parameter.clone() for parameter in encoder.parameters() if parameter.dim() > 1]
    encoder.reset_parameters()
    after = [parameter for parameter in encoder.parameters() if parameter.dim() > 1]
    assert not any(torch.equal(one, two) for one, two in zip(before, after, strict=True))


@every
@pytest.mark.parametrize(
    ("x", "message"),
    [(torch.ones(4, 3), "was made for 5 features"), (torch.ones(5), "was made for 5"), ([[1.0] * 5], "x is a list")],
)
def test_features_that_do_not_fit(name, x, message):
    with pytest.raises(ValueError, match=message):
        make(name)(x, EMPTY)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("gin", {"num_layers": 0}, "num_layers=0 must be at least 1"),
        ("gin", {"readout": "max"}, "readout='max' is not known"),
        ("gin", {"dropout": 1.0}, "dropout=1.0"),
        ("ecc", {"filter_width": 0}, "filter_width=0"),
        ("dgcnn", {"k": 9}, "keep 10 or more"),
        ("diffpool", {"num_clusters": 0}, "num_clusters=0"),
        ("diffpool", {"cluster_ratio": 0.0}, "cluster_ratio=0.0"),
        ("diffpool", {"entropy_weight": -1.0}, "neither may be negative"),
        ("fingerprint", {"dropout": -0.1}, "dropout=-0.1"),
    ],
)
def test_bad_arguments(name, options, message):
    with pytest.raises(ValueError, match=message):
        make(name, **options)
