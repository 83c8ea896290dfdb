import pytest
import torch
from torch_geometric.data import Data

from h2hgcn.datasets import load_graph
from h2hgcn.errors import DataError, DataWarning
from h2hgcn.geometry import lorentz, poincare
from h2hgcn.models import ENCODERS, MixedEuclidean, MixedHyperbolic, ShallowEuclidean, ShallowHyperbolic
from h2hgcn.tasks import LinkPrediction
from h2hgcn.training import TrainingSettings, fit

SHALLOW = [ShallowEuclidean, ShallowHyperbolic]
MIXED = [MixedEuclidean, MixedHyperbolic]
RING = [(k, (k + step) % 30) for step in (1, 4) for k in range(30)]


def features():
    torch.manual_seed(1)
    return torch.randn(20, 6)


@pytest.mark.parametrize("kind", SHALLOW)
def test_features_do_not_matter(kind):
    model = kind(6, 4, num_nodes=20)
    assert torch.equal(model(features()), model(2 * features(), torch.tensor([[0], [1]])))
    assert torch.equal(model(), model.nodes.weight)


@pytest.mark.parametrize("sparse", [False, True])
def test_mixed_is_an_mlp_of_both_side_by_side(sparse):
    x = features()
    given = x.to_sparse_coo() if sparse else x
    model = MixedEuclidean(6, 4, 3, num_nodes=20, activation="tanh")
    weight = torch.cat([model.network.of_features.weight, model.network.of_vectors.weight], 1)
    hidden = torch.cat([x, model.nodes.weight], 1) @ weight.T + model.network.of_features.bias
    for layer in model.network.stack.layers[1:]:
        hidden = layer(torch.tanh(hidden))
    torch.testing.assert_close(model(given), hidden)


def test_mixed_points_enter_and_leave_by_the_tangent_space():
    model = MixedHyperbolic(6, 4, 2, num_nodes=20)
    model.nodes.weight.data *= 300
    flat = MixedEuclidean(6, 4, 2, num_nodes=20)
    flat.network.load_state_dict(model.network.state_dict())
    flat.nodes.weight.data = lorentz.log_origin(poincare.to_lorentz(model.nodes.weight.data))
    torch.testing.assert_close(model(features()), lorentz.exp_origin(flat(features())))


@pytest.mark.parametrize("kind", [*SHALLOW, *MIXED])
def test_they_know_their_nodes_only(kind):
    assert not kind.inductive
    with pytest.raises(ValueError, match="x has 19 rows, but the encoder has a learned vector for each of 20 nodes"):
        kind(6, 4, num_nodes=20)(features()[:19])
    with pytest.raises(ValueError, match="num_nodes=0: pass the number of nodes"):
        kind(6, 4, num_nodes=0)
    model = kind(6, 4, num_nodes=20)
    x = features()
    before = model(x)
    torch.manual_seed(2)
    model.reset_parameters()
    assert not torch.equal(model(x), before)


@pytest.mark.parametrize("name", [kind.name for kind in (*SHALLOW, *MIXED)])
def test_a_graph_without_features(name):
    with pytest.warns(DataWarning, match="no features were given"):
        graph = load_graph(RING)

    def make(in_features, num_nodes):
        return ENCODERS[name](in_features, 3, num_nodes=num_nodes)

    run = fit(LinkPrediction(), graph, make, settings=TrainingSettings(epochs=2, device="cpu"))
    assert len(run.embeddings) == 30
    assert 0 < float(run.predict([[0, 1]])) < 1
    with pytest.raises(DataError, match="has learned a vector for each node of its graph and knows no others"):
        run.encode(Data(x=graph.x, edge_index=graph.edge_index))
