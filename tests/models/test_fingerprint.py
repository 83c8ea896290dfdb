import torch
from runs import shapes
from torch_geometric.data import Batch

from h2hgcn.models import Fingerprint

BATCH = Batch.from_data_list(list(shapes()))
X = BATCH.x.float()
ONE_HOT = torch.nn.functional.one_hot(BATCH.batch).float()


def test_counts_of_features():
    encoder = Fingerprint(5, 4, node_layer=False)
    expected = encoder.graph_layer(ONE_HOT.mT @ X).relu()
    for x in (X, X.to_sparse_coo()):
        torch.testing.assert_close(encoder(x, BATCH.edge_index, BATCH.batch, BATCH.num_graphs), expected)


def test_sums_of_a_layer():
    encoder = Fingerprint(5, 4)
    expected = encoder.graph_layer(ONE_HOT.mT @ encoder.node_layer(X).relu()).relu()
    torch.testing.assert_close(encoder(X, BATCH.edge_index, BATCH.batch, BATCH.num_graphs), expected)


def test_it_does_not_see_edges():
    encoder = Fingerprint(5, 4)
    none = BATCH.edge_index[:, :0]
    torch.testing.assert_close(encoder(X, none, BATCH.batch), encoder(X, BATCH.edge_index, BATCH.batch))
