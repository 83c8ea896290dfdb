import torch
from runs import shapes
from torch.nn import functional as F
from torch_geometric.utils import to_dense_adj

from h2hgcn.models import DGCNN


def test_the_equations_of_the_paper():
    torch.manual_seed(0)
    encoder, graph = DGCNN(5, 6, 3, width=7, k=10).eval(), shapes()[3]
    matrix = to_dense_adj(graph.edge_index)[0] + torch.eye(graph.num_nodes)
    matrix = matrix / matrix.sum(1, keepdim=True)
    outputs = [graph.x.float()]
    for linear in encoder.linears:
        outputs.append((matrix @ outputs[-1] @ linear.weight.mT).tanh())
    nodes = torch.cat(outputs[1:], 1)
    assert nodes.shape == (graph.num_nodes, 7 + 7 + 1)
    nodes = F.pad(nodes[nodes[:, -1].argsort(descending=True)], (0, 0, 0, 10 - graph.num_nodes))
    # the first 1-D convolution of the paper, with kernel and stride of one node
    kernel = encoder.node_map.weight[:, None]
    channels = F.conv1d(nodes.reshape(1, 1, -1), kernel, encoder.node_map.bias, stride=15).relu()
    flat = encoder.conv(F.max_pool1d(channels, 2)).relu().flatten(1)
    expected = encoder.dense(flat).relu()
    torch.testing.assert_close(encoder(graph.x.float(), graph.edge_index), expected)


def test_more_nodes_than_k_are_cut():
    encoder = DGCNN(5, 6, k=11).eval()
    ring = torch.stack([torch.arange(40), (torch.arange(40) + 1) % 40])
    assert encoder(torch.randn(40, 5), ring).shape == (1, 6)
