"""What the base classes of encoders do for them."""

import inspect
import types

import pytest
import torch
from samples import random_graph

from h2hgcn.models import ENCODERS, GAT, GCN, H2HGCN, SGC
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


class Forwards(H2HGCN):
    name = "forwards"

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)


class Fixed(H2HGCN):
    name = "fixed"
    without = ("activation",)

    def __init__(self, in_features, dim, **options):
        super().__init__(in_features, dim, activation="tanh", **options)


@pytest.mark.parametrize("kind", [Forwards, Fixed])
def test_subclasses_that_pass_arguments_on(kind, tmp_path):
    encoder = kind(8, dim=4, num_layers=3)
    assert (encoder.config["in_features"], encoder.config["dim"], encoder.config["num_layers"]) == (8, 4, 3)
    encoder.save_pretrained(tmp_path)
    again = kind.from_pretrained(tmp_path)
    assert again.config == encoder.config
    assert all(map(torch.equal, again.state_dict().values(), encoder.state_dict().values()))


def test_annotations_that_are_texts(tmp_path):
    module = types.ModuleType("of_a_user")
    exec(OF_A_USER, module.__dict__)
    module.Own(4, 3).save_pretrained(tmp_path)
    assert module.Own.from_pretrained(tmp_path).config == {"in_features": 4, "dim": 3}


OF_A_USER = """
from __future__ import annotations
import torch
from h2hgcn.models.encoder import Encoder

class Own(Encoder):
    name = "own"

    def __init__(self, in_features: int, dim: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(in_features, dim)
"""
