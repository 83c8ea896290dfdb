import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from h2hgcn.errors import DataError
from h2hgcn.experiments.tune import search_space
from h2hgcn.models import ENCODERS


@pytest.mark.parametrize("model", sorted(ENCODERS))
def test_every_model_has_a_space_for_its_tasks(model):
    for task in set(ENCODERS[model].tasks) - {"embed"}:  # which holds nothing out to choose by
        space = search_space(task, model)
        assert space["training.lr"] == FloatDistribution(*((0.0005, 0.02) if task == "gc" else (0.001, 0.03)), log=True)
        assert isinstance(space["model.dim"], CategoricalDistribution)


def test_a_file_says_what_is_searched(tmp_path):
    path = tmp_path / "space.toml"
    path.write_text('[model]\ndim = [2, 4]\nnum_layers = { low = 1, high = 3 }\nmax_tangent_norm = ["none", 1.0]\n')
    assert search_space("lp", "h2h-gcn", path) == {
        "model.dim": CategoricalDistribution((2, 4)),
        "model.num_layers": IntDistribution(1, 3),
        "model.max_tangent_norm": CategoricalDistribution(("none", 1.0)),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[modl]\ndim = [2]", "has a section 'modl'; did you mean 'model'"),
        ("model = 1", "model is a section"),
        ("[model]\ndims = [2]", "has no option 'dims'; did you mean 'dim'"),
        ('[model]\ndim = ["two"]', "dim='two' must be a whole number"),
        ("[model]\ndim = 2", "give a list of values, or a table"),
        ("[model]\ndim = []", "give a list of values, or a table"),
        ("[model]\ndim = [[1]]", "choices are texts, numbers, true or false"),
        ("[training]\nlr = { low = 1, high = 0.1 }", "`low <= high` must hold"),
        ('[training]\nlr = { low = "a", high = 0.1 }', "low and high must be numbers"),
        ("[training]\nlr = { low = 0, high = 0.1, log = true }", "`low > 0` must hold"),
        ("[training]\nlr = { low = 0.1, high = 0.2, step = 1 }", "or a table such as"),
        ("[training]\nlr = { low = 0.1, high = inf }", "numbers must be finite"),
        ("[training]\nlr = { low = nan, high = 0.1 }", "numbers must be finite"),
        ("[training]\nlr = [0.1, inf]", "must be finite"),
        ("[model", "is not TOML"),
        ('[task]\nselection = ["auc", "ap"]', "selection: all trials must have the same; give it with --set"),
        ('[task]\nprotocol = ["clean", "legacy"]', "protocol: all trials must have the same"),
    ],
)
def test_files_that_cannot_be_searched(tmp_path, text, message):
    path = tmp_path / "space.toml"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        search_space("lp", "h2h-gcn", path)
