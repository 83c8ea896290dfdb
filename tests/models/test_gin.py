import pytest
import torch
from runs import shapes
from torch import nn
from torch_geometric.data import Batch
from torch_geometric.nn import GINConv, global_add_pool, global_mean_pool

from h2hgcn.layers import prepare_adjacency
from h2hgcn.models import GIN

BATCH = Batch.from_data_list(list(shapes()))
X = BATCH.x.float()
ADJACENCY = prepare_adjacency(BATCH.edge_index, None, BATCH.num_nodes)


@pytest.mark.parametrize("readout", ["sum", "mean"])
def test_the_equations_of_the_paper(readout):
    torch.manual_seed(0)
    encoder = GIN(5, 4, 3, readout=readout, learn_eps=True)
    for conv in encoder.convs:
        nn.init.uniform_(conv.eps)
    pool = {"sum": global_add_pool, "mean": global_mean_pool}[readout]
    hidden, readouts = X, [pool(X, BATCH.batch)]
    for linear, conv in zip(encoder.linears, encoder.convs, strict=True):
        whole = GINConv(nn.Identity())
        whole.eps = conv.eps
        hidden = conv.nn(linear(whole(hidden, BATCH.edge_index)))
        readouts.append(pool(hidden, BATCH.batch))
    weight = torch.cat([output.weight for output in encoder.outputs], 1)
    expected = torch.cat(readouts, 1) @ weight.mT + encoder.bias
    found = encoder(X, ADJACENCY, BATCH.batch, BATCH.num_graphs)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


def test_eps_is_learnt_only_if_asked_for():
    assert not any("eps" in name for name, _ in GIN(5, 4).named_parameters())
    assert sum("eps" in name for name, _ in GIN(5, 4, 3, learn_eps=True).named_parameters()) == 3


def test_weights_of_edges_play_no_part():
    encoder = GIN(5, 4).eval()
    weighted = prepare_adjacency(BATCH.edge_index, torch.rand(BATCH.edge_index.shape[1]) + 0.1, BATCH.num_nodes)
    arguments = BATCH.batch, BATCH.num_graphs
    torch.testing.assert_close(encoder(X, weighted, *arguments), encoder(X, ADJACENCY, *arguments))
