import torch
from runs import shapes

from h2hgcn.layers import prepare_adjacency
from h2hgcn.models import ECC


def test_layers_one_after_the_other():
    encoder, graph = ECC(5, 6, 2), shapes()[9]
    hidden = graph.x.float()
    adjacency = prepare_adjacency(graph.edge_index, None, graph.num_nodes)
    for conv, norm in zip(encoder.convs, encoder.norms, strict=True):
        hidden = norm(conv(hidden, adjacency)).relu()
    expected = encoder.output(hidden.mean(0, keepdim=True)).relu()
    torch.testing.assert_close(encoder(graph.x.float(), graph.edge_index), expected)


def test_weights_of_edges_matter():
    encoder, graph = ECC(5, 6).eval(), shapes()[9]
    points = [
        encoder(graph.x.float(), graph.edge_index, edge_weight=torch.full((graph.num_edges,), weight))
        for weight in (1.0, 2.0)
    ]
    assert not torch.allclose(*points)
