"""Pooling without dense adjacency matrices against PyG's with them."""

import torch
from torch_geometric.nn import dense_diff_pool
from torch_geometric.utils import to_dense_adj, to_dense_batch, to_undirected

from h2hgcn.layers import prepare_adjacency
from h2hgcn.models.diffpool import sparse_diff_pool

CLUSTERS = 4


def sample(sizes):
    generator = torch.Generator().manual_seed(0)
    batch = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    index = torch.randint(0, len(batch), (2, 200), generator=generator)
    index = to_undirected(index[:, (batch[index[0]] == batch[index[1]]) & (index[0] != index[1])])
    index = torch.unique(index, dim=1)
    x, scores = (torch.randn(len(batch), n, dtype=torch.float64, generator=generator) for n in (3, CLUSTERS))
    return x.requires_grad_(), scores.requires_grad_(), index, batch


def dense(x, scores, index, batch):
    (features, mask), (assigned, _) = to_dense_batch(x, batch), to_dense_batch(scores, batch)
    return dense_diff_pool(features, to_dense_adj(index, batch).double(), assigned, mask), mask


def sparse(x, scores, index, batch, num_graphs):
    edges = prepare_adjacency(index, None, len(x)).matrix("sum", torch.float64)
    return sparse_diff_pool(x, scores, edges, batch, num_graphs)


def test_as_with_dense_matrices():
    x, scores, index, batch = sample([7, 7, 7])
    expected, _ = dense(x, scores, index, batch)
    for one, other in zip(sparse(x, scores, index, batch, 3), expected, strict=True):
        torch.testing.assert_close(one, other)
        gradients = [torch.autograd.grad(value.sum(), scores, retain_graph=True)[0] for value in (one, other)]
        torch.testing.assert_close(*gradients)


def test_padding_does_not_matter():
    x, scores, index, batch = sample([2, 11, 5])
    (pooled, coarse, link, entropy), mask = dense(x, scores, index, batch)
    found = sparse(x, scores, index, batch, 3)
    torch.testing.assert_close(found[:2], (pooled, coarse))
    pairs = mask.sum(1).square().sum()
    torch.testing.assert_close(found[2], link * (3 * 11 * 11) / pairs)
    torch.testing.assert_close(found[3], entropy * (3 * 11) / 18)


def test_gradients():
    x, scores, index, batch = sample([2, 5, 1])
    assert torch.autograd.gradcheck(lambda x, s: sparse(x, s, index, batch, 3), (x, scores))


def test_graphs_without_nodes_or_edges():
    empty = torch.empty(2, 0, dtype=torch.long)
    for nodes, graphs in ((0, 2), (1, 1), (3, 5)):
        x, scores = torch.randn(nodes, 3).double(), torch.randn(nodes, CLUSTERS).double()
        pooled, coarse, link, entropy = sparse(x, scores, empty, torch.zeros(nodes, dtype=torch.long), graphs)
        assert pooled.shape == (graphs, CLUSTERS, 3)
        assert coarse.shape == (graphs, CLUSTERS, CLUSTERS)
        assert link.isfinite()
        assert entropy.isfinite()
