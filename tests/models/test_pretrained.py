import pytest
import torch
from runs import Flat, change, small_fit
from samples import random_graph

from h2hgcn.errors import DataError
from h2hgcn.files import read_tensors, write_tensors
from h2hgcn.models import H2HGCN

EDGE_INDEX = random_graph(12, 30)[0]

ARGUMENTS = [
    {},
    {"activation": None, "stem_activation": None},
    {"activation": "leaky_relu", "negative_slope": 0.2, "num_layers": 3, "tied": True},
    {"stem": False, "neighbor_weights": "uniform"},
    {"dropout": 0.5, "feature_dropout": 0.1, "max_tangent_norm": 2.0},
    {"curvature": 2.0, "learn_curvature": True, "dtype": torch.float64},
]


@pytest.mark.parametrize("arguments", ARGUMENTS)
def test_an_encoder_comes_back(arguments, tmp_path):
    encoder = H2HGCN(5, 6, **arguments).eval()
    encoder.save_pretrained(tmp_path / "deep" / "encoder")
    loaded = H2HGCN.from_pretrained(tmp_path / "deep" / "encoder").eval()
    assert loaded.config == encoder.config
    x = torch.randn(12, 5)
    assert torch.equal(loaded(x, EDGE_INDEX), encoder(x, EDGE_INDEX))
    assert loaded.log_curvature.requires_grad is encoder.log_curvature.requires_grad
    assert sorted(file.name for file in (tmp_path / "deep" / "encoder").iterdir()) == [
        "config.toml",
        "model.safetensors",
    ]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_encoder_of_a_run(dtype, tmp_path):
    run = small_fit("nc", folder=tmp_path, settings={"dtype": dtype})
    encoder = H2HGCN.from_pretrained(tmp_path).eval()
    assert torch.equal(encoder(run.data.x, run.data.edge_index), run.encode(run.data))


def test_encoders_replace_encoders_but_no_runs(tmp_path):
    for seed in (0, 1):
        torch.manual_seed(seed)
        encoder = H2HGCN(3, 2)
        encoder.save_pretrained(tmp_path / "encoder")
    assert torch.equal(H2HGCN.from_pretrained(tmp_path / "encoder").stem.weight, encoder.stem.weight)
    small_fit(folder=tmp_path / "run")
    before = (tmp_path / "run" / "model.safetensors").read_bytes()
    with pytest.raises(DataError, match="holds a run, which would be lost"):
        encoder.save_pretrained(tmp_path / "run")
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == before


def test_an_activation_of_ones_own_has_no_name_to_write(tmp_path):
    encoder = H2HGCN(3, 2, activation=lambda b: b / 2)
    with pytest.raises(
        DataError, match=r"activation=<function .* cannot be written to a file; use one that has a name"
    ):
        encoder.save_pretrained(tmp_path)
    assert not list(tmp_path.iterdir())


def without_weight(folder):
    tensors, about = read_tensors(folder / "model.safetensors")
    tensors.pop("encoder.stem.weight")
    write_tensors(folder / "model.safetensors", tensors, about)


def config(old, new):
    return lambda folder: change(folder / "config.toml", lambda data: data.replace(old, new))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: (folder / "config.toml").unlink(), "holds no config.toml"),
        (lambda folder: (folder / "model.safetensors").unlink(), "model.safetensors is not there"),
        (lambda folder: change(folder / "model.safetensors", lambda data: data[:-3]), "model.safetensors is damaged"),
        (lambda folder: change(folder / "config.toml", lambda data: data[:-3]), "config.toml is damaged"),
        (lambda folder: change(folder / "config.toml", lambda data: b""), "holds a None, not a 'h2h-gcn'"),
        (lambda folder: write_tensors(folder / "model.safetensors", {}, {}), "does not fit"),
        (without_weight, r"does not fit the model: stem.weight has the shape None there and \(2, 3\)"),
        (config(b'"h2h-gcn"', b'"hgcn"'), "holds a 'hgcn', not a 'h2h-gcn'"),
        (
            config(b"dim = 2", b"dim = 4"),
            r"does not fit the model: stem.weight has the shape \(2, 3\) there and \(4, 3\)",
        ),
        (config(b"dim = 2", b"dim = 0"), r"\[model\] dim=0 must be at least 1"),
        (config(b"dim = 2", b"dim = 'x'"), "dim='x' must be a whole number"),
        (config(b"dim = 2", b"dmi = 2"), r"has no option 'dmi'; did you mean 'dim'\?"),
        (config(b"dim = 2\n", b""), r"\[model\] .*dim"),
        (config(b"in_features = 3\n", b""), "in_features=None must be a whole number"),
    ],
)
def test_folders_that_cannot_be_loaded(spoil, message, tmp_path):
    H2HGCN(3, 2).save_pretrained(tmp_path)
    spoil(tmp_path)
    with pytest.raises(DataError, match=message):
        H2HGCN.from_pretrained(tmp_path)


def test_a_run_of_another_encoder(tmp_path):
    small_fit(model=Flat, folder=tmp_path)
    with pytest.raises(DataError, match="holds a 'Flat', not a 'h2h-gcn'"):
        H2HGCN.from_pretrained(tmp_path)
