import literal
import numpy as np
import pytest
import scipy.sparse
import torch
from samples import generator, random_graph
from torch import nn

from h2hgcn.geometry import lorentz
from h2hgcn.geometry.numerics import layer_radius
from h2hgcn.layers import prepare_adjacency
from h2hgcn.models import ENCODERS, H2HGCN

EDGE_INDEX, EDGE_WEIGHT = random_graph(20, 50)


def features(num_nodes=20, width=6, dtype=torch.float32):
    return torch.randn(num_nodes, width, generator=generator(1), dtype=dtype)


def test_without_a_stem_it_is_algorithm_1():
    x = 0.5 * features(dtype=torch.float64)
    model = H2HGCN(6, 6, 3, stem=False, dtype=torch.float64)
    index, weights = literal.with_self_loops(EDGE_INDEX, EDGE_WEIGHT, 20)
    weights = literal.neighbor_weights(index, weights, 20, "symmetric")
    layers = [conv.linear.weight for conv in model.convs]
    expected = literal.encoder(literal.exponential_map(x), layers, index, weights, torch.relu)
    torch.testing.assert_close(model(x, EDGE_INDEX, EDGE_WEIGHT), expected, rtol=1e-12, atol=1e-12)


def test_the_stem_is_a_linear_layer_and_an_activation():
    model = H2HGCN(6, 4, stem_activation="tanh", dtype=torch.float64)
    x = features(dtype=torch.float64)
    bare = H2HGCN(4, 4, stem=False, dtype=torch.float64)
    bare.convs.load_state_dict(model.convs.state_dict())
    torch.testing.assert_close(model(x, EDGE_INDEX), bare(torch.tanh(model.stem(x)), EDGE_INDEX))


def test_tied_layers_share_one_transformation():
    tied, own = H2HGCN(6, 4, 5, tied=True), H2HGCN(6, 4, 5)
    assert len(tied.convs) == 1
    assert len(own.convs) == 5
    for k in range(5):
        own.convs[k].load_state_dict(tied.convs[0].state_dict())
    own.stem.load_state_dict(tied.stem.state_dict())
    assert torch.equal(tied(features(), EDGE_INDEX), own(features(), EDGE_INDEX))


def test_growing_without_a_stem():
    assert H2HGCN(6, 9, 2, stem=False)(features(), EDGE_INDEX).shape == (20, 10)


@pytest.mark.parametrize("stem", [True, False])
def test_sparse_features_are_as_good_as_dense_ones(stem):
    x = features() * (features() > 0.5)
    model = H2HGCN(6, 6, stem=stem)
    expected = model(x, EDGE_INDEX)
    expected.sum().backward()
    gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    scipy_matrix = scipy.sparse.csr_matrix(x.numpy())
    kinds = [
        x.to_sparse(),
        torch.sparse_csr_tensor(
            torch.from_numpy(scipy_matrix.indptr),
            torch.from_numpy(scipy_matrix.indices),
            torch.from_numpy(scipy_matrix.data),
            x.shape,
            check_invariants=True,
        ),
        scipy_matrix,
        scipy.sparse.coo_array(x.double().numpy()),
    ]
    for kind in kinds:
        for _ in range(2):  # prepared, and remembered
            model.zero_grad()
            output = model(kind, EDGE_INDEX)
            output.sum().backward()
            torch.testing.assert_close(output, expected, rtol=1e-5, atol=1e-5)
        for ours, truth in zip((p.grad for p in model.parameters() if p.grad is not None), gradients, strict=True):
            torch.testing.assert_close(ours, truth, rtol=1e-4, atol=1e-4)


def test_sparse_features_without_entries():
    model = H2HGCN(6, 4)
    empty = scipy.sparse.csr_matrix((20, 6), dtype=np.float32)
    torch.testing.assert_close(model(empty, EDGE_INDEX), model(torch.zeros(20, 6), EDGE_INDEX))


@pytest.mark.parametrize("sparse", [False, True])
def test_dropout_acts_in_training_only(sparse):
    model = H2HGCN(6, 4, dropout=0.5, feature_dropout=0.5)
    x = features().to_sparse() if sparse else features()
    assert not torch.equal(model(x, EDGE_INDEX), model(x, EDGE_INDEX))
    model.eval()
    assert torch.equal(model(x, EDGE_INDEX), model(x, EDGE_INDEX))


def test_vectors_are_capped(dtype):
    x = 1e6 * features(dtype=dtype)
    for cap, expected in [(None, layer_radius(dtype)), (2.0, 2.0), (100.0, layer_radius(dtype))]:
        model = H2HGCN(6, 6, 1, stem=False, activation=None, max_tangent_norm=cap, dtype=dtype)
        points = model(x, torch.empty(2, 0, dtype=torch.long))
        torch.testing.assert_close(
            lorentz.distance_to_origin(points), torch.full((20,), expected, dtype=dtype), rtol=3e-3, atol=0
        )
        assert model.share_at_bound(x) == 1
        assert model.share_at_bound(1e-9 * x) == 0


def test_curvature_is_a_scale():
    x = 0.3 * features(dtype=torch.float64)
    flat_by_scale = H2HGCN(6, 6, 1, stem=False, activation=None, curvature=4.0, dtype=torch.float64)
    points = flat_by_scale(x, torch.empty(2, 0, dtype=torch.long))
    # one isometry: lengths of the features are the distances from the origin, at any curvature
    lengths = lorentz.distance_to_origin(points) * flat_by_scale.distance_scale
    torch.testing.assert_close(lengths, x.norm(dim=1))
    assert flat_by_scale.curvature.item() == pytest.approx(4.0)
    assert not flat_by_scale.log_curvature.requires_grad
    learnt = H2HGCN(6, 6, learn_curvature=True)
    learnt(features(), EDGE_INDEX).sum().backward()
    assert learnt.log_curvature.grad.abs() > 0


def test_prepared_adjacency_sparse_adjacency_and_edge_index_agree():
    model = H2HGCN(6, 4)
    expected = model(features(), EDGE_INDEX, EDGE_WEIGHT)
    adj_t = torch.sparse_coo_tensor(EDGE_INDEX.flip(0), EDGE_WEIGHT, (20, 20), check_invariants=True)
    assert torch.equal(model(features(), prepare_adjacency(EDGE_INDEX, EDGE_WEIGHT, 20)), expected)
    torch.testing.assert_close(model(features(), adj_t), expected)


def test_stands_where_a_gcn_stood():
    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = H2HGCN(6, 8)
            self.head = nn.Linear(8, 3)

        def forward(self, x, edge_index):
            return self.head(lorentz.log_origin(self.encoder(x, edge_index)))

    model = Classifier()
    nn.functional.cross_entropy(model(features(), EDGE_INDEX), torch.randint(3, (20,))).backward()
    assert all(p.grad is not None for p in model.parameters() if p.requires_grad)


@pytest.mark.parametrize("num_nodes", [0, 1, 4])
@pytest.mark.parametrize("stem", [True, False])
def test_small_graphs_and_zero_features(num_nodes, stem):
    model = H2HGCN(6, 6, stem=stem)
    points = model(torch.zeros(num_nodes, 6), torch.empty(2, 0, dtype=torch.long))
    points.sum().backward()
    assert points.shape == (num_nodes, 7)
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


def test_integer_features_are_numbers():
    assert H2HGCN(6, 4)(torch.ones(20, 6, dtype=torch.long), EDGE_INDEX).dtype == torch.float32


def bad_features(value):
    x = features()
    x[3, 2] = value
    return x


@pytest.mark.parametrize(
    ("x", "edge_index", "message"),
    [
        (features(width=5), EDGE_INDEX, r"shape \(20, 5\), but the encoder was made for 6 features"),
        (features()[0], EDGE_INDEX, "made for 6 features"),
        (bad_features(float("nan")), EDGE_INDEX, "NaN or infinity, first in row 3"),
        (bad_features(float("-inf")), EDGE_INDEX, "NaN or infinity, first in row 3"),
        (bad_features(float("inf")).to_sparse(), EDGE_INDEX, "NaN or infinity"),
        (features(num_nodes=5), EDGE_INDEX, "but there are 5 nodes"),
    ],
)
def test_bad_input(x, edge_index, message):
    with pytest.raises(ValueError, match=message):
        H2HGCN(6, 4)(x, edge_index)


def test_bad_weights_are_named():
    model = H2HGCN(6, 4)
    model.stem.weight.data.fill_(float("nan"))
    with pytest.raises(ValueError, match="weights diverged"):
        model(features(), EDGE_INDEX)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dim": 0}, "at least 1"),
        ({"stem": False}, "dim=4 is below in_features=6.*stem=True"),
        ({"dim": 8, "stem": False, "tied": True}, "equal to in_features"),
        ({"max_tangent_norm": 0.0}, "must be positive"),
        ({"feature_dropout": 1.0}, "feature_dropout=1.0 must be 0 or more, and below 1"),
        ({"curvature": -1.0}, "give c > 0"),
        ({"activation": "selu"}, "leaves the Poincaré ball"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        H2HGCN(**{"in_features": 6, "dim": 4, **arguments})


def test_is_in_the_table_of_encoders():
    assert ENCODERS["h2h-gcn"] is H2HGCN
    assert repr(H2HGCN(6, 4)).startswith("H2HGCN(\n  6, 4, num_layers=2, curvature=-1\n")


def test_changed_sparse_features_are_seen():
    model = H2HGCN(6, 4)
    x = (features() * (features() > 0)).to_sparse()
    model(x, EDGE_INDEX)
    x.mul_(3)
    torch.testing.assert_close(model(x, EDGE_INDEX), model(x.to_dense(), EDGE_INDEX))


def test_bad_sparse_features():
    model = H2HGCN(6, 4)
    outside = torch.sparse_coo_tensor(torch.tensor([[0, 1], [2, 300]]), torch.ones(2), (20, 6), check_invariants=False)
    with pytest.raises(ValueError, match="outside"):
        model(outside, EDGE_INDEX)
    with pytest.raises(ValueError, match="do not get gradients"):
        model(features().to_sparse().requires_grad_(), EDGE_INDEX)
    with pytest.raises(ValueError, match="is a list"):
        model([[0.0] * 6] * 20, EDGE_INDEX)
    with pytest.raises(ValueError, match=r"torch.float16"):
        H2HGCN(6, 4).half()(features(), EDGE_INDEX)


def test_overflow_on_the_way_is_noticed():
    model = H2HGCN(3, 3, stem=False, curvature=4.0)
    with pytest.raises(ValueError, match="features overflowed"):
        model(torch.full((4, 3), 3e38), torch.tensor([[0], [1]]))


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_second_derivatives_at_the_origin_are_finite(activation):
    model = H2HGCN(3, 3, stem=False, activation=activation, dtype=torch.float64)
    x = torch.zeros(3, 3, dtype=torch.float64)
    x[:2] = 0.5
    x.requires_grad_()
    (gradient,) = torch.autograd.grad(model(x, torch.tensor([[0, 1], [1, 0]])).square().sum(), x, create_graph=True)
    gradient.square().sum().backward()
    assert x.grad.isfinite().all()
