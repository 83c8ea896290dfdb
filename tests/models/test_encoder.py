"""What the base classes of encoders do for them."""

import inspect

import pytest
import torch
from samples import random_graph

from h2hgcn.models import ENCODERS, GAT, GCN, SGC
from h2hgcn.models.encoder import GraphEncoder
from h2hgcn.options import default_options, option_types

ON_GRAPHS = [kind for kind in ENCODERS.values() if issubclass(kind, GraphEncoder)]


@pytest.mark.parametrize("kind", ON_GRAPHS)
def test_the_signature_has_the_options_of_the_base_class(kind):
    parameters = inspect.signature(kind).parameters
    assert {"feature_dropout", "node_vectors", "vector_dropout", "use_features", "num_nodes"} <= parameters.keys()
    assert "options" not in parameters
    assert option_types(kind)["num_nodes"] == int | None
    assert default_options(kind)["use_features"] is True
    assert kind(3, 4, feature_dropout=0.5).config["feature_dropout"] == 0.5


def test_options_that_are_left_out_are_refused():
    assert "dropout" not in inspect.signature(SGC).parameters
    assert "dropout" not in SGC(3, 4).config
    with pytest.raises(TypeError, match="dropout"):
        SGC(3, 4, dropout=0.5)
    with pytest.raises(TypeError, match="dropuot"):
        GCN(3, 4, dropuot=0.5)


@pytest.mark.parametrize("kind", ON_GRAPHS)
def test_weights_are_made_in_their_precision(kind):
    model = kind(3, 4, dtype=torch.float64, device="cpu", node_vectors=True, num_nodes=9)
    assert {value.dtype for value in model.state_dict().values()} == {torch.float64}
    assert model(torch.randn(9, 3), random_graph(9, 20)[0]).dtype == torch.float64
    assert "dtype" not in model.config


def test_what_was_chosen_is_printed():
    assert "3, 4, heads=2, dropout=0.5" in repr(GAT(3, 4, heads=2, dropout=0.5))
