import torch
from samples import random_graph
from torch_geometric.nn import SAGEConv
from torch_geometric.utils import to_dense_adj

from h2hgcn.layers import prepare_adjacency
from h2hgcn.models.diffpool import DenseMeanConv, MeanStack, SparseMeanConv

INDEX = random_graph(20, 50)[0]
X = torch.randn(20, 4, generator=torch.Generator().manual_seed(0))
EDGES = prepare_adjacency(INDEX, None, 20).edges(self_loops=False)[0]
MEANS = prepare_adjacency(EDGES, None, 20).matrix("mean", torch.float32)


def test_sparse_convolution_is_that_of_pyg():
    conv, pyg = SparseMeanConv(4, 3), SAGEConv(4, 3, bias=False)
    pyg.lin_l.weight, pyg.lin_r.weight = conv.neighbors.weight, conv.root.weight
    torch.testing.assert_close(conv(X, MEANS), pyg(X, EDGES))


def test_sparse_and_dense_are_the_same():
    torch.manual_seed(0)
    sparse, dense = (MeanStack(conv, 4, 6, 5, 3) for conv in (SparseMeanConv, DenseMeanConv))
    for one, other in zip(sparse.convs, dense.convs, strict=True):
        other.lin_rel.weight, other.lin_root.weight = one.neighbors.weight, one.root.weight
    dense.output = sparse.output
    matrix = to_dense_adj(EDGES, max_num_nodes=20).mT
    torch.testing.assert_close(dense(X[None], matrix)[0], sparse(X, MEANS), atol=1e-5, rtol=1e-4)


def test_one_node():
    stack = MeanStack(SparseMeanConv, 4, 6, 5, 2)
    means = prepare_adjacency(torch.empty(2, 0, dtype=torch.long), None, 1).matrix("mean", torch.float32)
    assert stack(X[:1], means).isfinite().all()
