"""``h2hgcn.train``: whatever a graph comes in, the run is the same."""

import re
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from runs import curve, same_weights, shapes
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

import h2hgcn
from h2hgcn.datasets.on_disk import fingerprint
from h2hgcn.errors import DataError, DataWarning
from h2hgcn.experiments import read_experiment
from h2hgcn.experiments import train as module

pytestmark = pytest.mark.filterwarnings("ignore::h2hgcn.errors.DataWarning")

EDGES = [(k, (k + step) % 40) for step in (1, 7) for k in range(40)]
NAMED = [(f"n{a:02}", f"n{b:02}") for a, b in EDGES]
QUICK = {"epochs": 2, "dim": 4}


def edge_index():
    return torch.tensor(EDGES).T


def frame(edges=EDGES, columns=("source", "target"), **others):
    return pytest.importorskip("pandas").DataFrame(edges, columns=columns).assign(**others)


def csv(path, edges=EDGES):
    path.write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in edges))
    return path


def matrix():
    ones = np.ones(len(EDGES))
    half = sp.coo_array((ones, np.array(EDGES).T), (40, 40))
    return (half + half.T).tocsr()


KINDS = {
    "path": csv,
    "text": lambda path: str(csv(path)),
    "pairs": lambda _: EDGES,
    "array": lambda _: np.array(EDGES),
    "edge_index": lambda _: edge_index(),
    "networkx": lambda _: nx.Graph(EDGES),
    "scipy": lambda _: matrix(),
    "pandas": lambda _: frame(),
    "arrow": lambda _: pytest.importorskip("pyarrow").table(dict(zip("uv", np.array(EDGES).T, strict=True))),
    "pyg": lambda _: Data(edge_index=to_undirected(edge_index()), num_nodes=40),
}


@pytest.fixture(scope="module")
def expected():
    return h2hgcn.train(EDGES, **QUICK)


@pytest.mark.parametrize("kind", KINDS)
def test_one_graph_one_run(kind, expected, tmp_path):
    run = h2hgcn.train(KINDS[kind](tmp_path / "my.csv"), **QUICK)
    assert torch.equal(run.data.edge_index, expected.data.edge_index)
    assert run.nodes.tolist() == list(range(40))
    assert same_weights(run, expected)
    assert torch.equal(run.embeddings, expected.embeddings)
    if kind != "pyg":  # which is used as it is
        assert fingerprint(plain(run.data)) == fingerprint(plain(expected.data))


def plain(graph):
    """Without what was noted, and what the file was called."""
    return Data(**{name: value for name, value in graph.to_dict().items() if name not in ("name", "notes")})


@pytest.mark.parametrize("kind", ["csv", "pandas", "pandas ids", "pandas categories", "networkx", "pairs"])
def test_ids_are_those_that_came(kind, tmp_path):
    pairs = [(f"{a:03}", f"{b:03}") for a, b in EDGES] if kind == "pandas ids" else NAMED
    data = {
        "csv": lambda: csv(tmp_path / "my.csv", pairs),
        "pandas": lambda: frame(pairs),
        "pandas ids": lambda: frame(pairs),
        "pandas categories": lambda: frame(pairs).astype("category"),
        "networkx": lambda: nx.Graph(pairs),
        "pairs": lambda: pairs,
    }[kind]()
    run = h2hgcn.train(data, **QUICK)
    assert run.nodes.tolist() == sorted({node for pair in pairs for node in pair})
    assert run.recommend(pairs[0][0], 1)[0].node in run.nodes


def test_features_and_labels_of_frames_and_files(tmp_path):
    pandas = pytest.importorskip("pandas")
    ids = [f"n{k:02}" for k in range(40)]
    x = pandas.DataFrame(np.random.RandomState(0).normal(size=(40, 3)).round(3), index=ids, columns=list("abc"))
    y = pandas.Series(["red", "green"] * 20, index=ids)
    x.to_csv(tmp_path / "x.csv", index_label="id")
    y.to_csv(tmp_path / "y.csv", index_label="id", header=["label"])
    csv(tmp_path / "my.csv", NAMED)
    by_files = h2hgcn.train(
        tmp_path / "my.csv", "nc", features=tmp_path / "x.csv", labels=str(tmp_path / "y.csv"), **QUICK
    )
    by_frames = h2hgcn.train(frame(NAMED), "nc", features=x.iloc[::-1], labels=y, **QUICK)
    mixed = h2hgcn.train(tmp_path / "my.csv", "nc", features=x, labels=y, **QUICK)
    assert by_files.config["data"]["features"] == str(tmp_path / "x.csv")
    assert by_frames.config["data"]["memory"]
    assert mixed.config["data"]["memory"]
    for other in (by_frames, mixed):
        assert same_weights(by_files, other)
        assert curve(by_files) == curve(other)
        assert other.classes == ["green", "red"]


def test_a_pyg_graph_is_used_as_it_is():
    data = Data(torch.randn(40, 3), to_undirected(edge_index()), node_ids=[f"n{k}" for k in reversed(range(40))])
    run = h2hgcn.train(data, **QUICK)
    assert run.data is data
    assert run.nodes[:2].tolist() == ["n39", "n38"]
    bare = Data(edge_index=to_undirected(edge_index()), y=torch.zeros(40))
    with pytest.warns(DataWarning, match="structural ones were made"):
        h2hgcn.train(bare, **QUICK)
    assert bare.x is None
    other = h2hgcn.train(bare, features=np.ones((40, 2)), **QUICK)  # what is given replaces what a graph has
    assert other.data.x.shape == (40, 2)


def test_direction_is_that_of_the_graph():
    ways = [
        nx.DiGraph(EDGES),
        sp.coo_array((np.ones(len(EDGES)), np.array(EDGES).T), (40, 40)),
        Data(edge_index=torch.tensor(sorted(EDGES)).T, num_nodes=40),
    ]
    first, *others = (h2hgcn.train(graph, **QUICK) for graph in ways)
    assert all(run.data.directed for run in (first, *others))
    assert all(same_weights(run, first) for run in others)
    with_features = Data(torch.ones(40, 1), edge_index())
    assert h2hgcn.train(with_features, **QUICK).data.directed
    assert "directed" not in with_features


def test_a_collection_of_graphs():
    graphs = list(shapes(20))
    run = h2hgcn.train(graphs, epochs=1)
    assert run.task.name == "gc"
    assert len(run.embeddings) == len(run.nodes) == 20


def test_a_named_dataset_has_its_settings():
    run = h2hgcn.train("Disease", epochs=1)
    built_in = h2hgcn.train(epochs=1)
    assert {**run.config["data"], "fingerprint": ""} == {"dataset": "disease", "fingerprint": ""}
    assert same_weights(run, built_in)
    preset = read_experiment({"data": {"dataset": "disease"}})
    assert run.task == replace(preset.task, decoder="symmetric")
    assert run.config["training"]["lr"] == preset.settings.lr


def test_options_reach_their_sections():
    run = h2hgcn.train(
        EDGES, model="gcn", dim=3, layers=1, epochs=3, lr=0.5, batch_size=16, fanout=[4], workers=0, seed=7,
        device="cpu", protocol="clean", settings={"model.dropout": 0.25, "training.patience": None},
    )  # fmt: skip
    config = run.config
    assert config["model"] | {"name": "gcn", "dim": 3, "num_layers": 1, "dropout": 0.25} == config["model"]
    wanted = {"epochs": 3, "lr": 0.5, "batch_size": 16, "fanout": "4", "patience": "none"}
    assert config["training"] | wanted == config["training"]
    assert config["seed"] == 7


def test_nothing_is_written_unless_asked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = h2hgcn.train(NAMED, **QUICK)
    assert not list(tmp_path.iterdir())
    run.save("saved")
    loaded = h2hgcn.load_run("saved")
    assert same_weights(run, loaded)
    assert loaded.nodes.tolist() == run.nodes.tolist()
    again = h2hgcn.train(NAMED, config="saved/config.toml", out="again")
    assert same_weights(run, again)


def test_a_run_resumes_in_its_folder(tmp_path, monkeypatch):
    options = {"dim": 4, "epochs": 6, "settings": {"training.checkpoint_seconds": 0}}
    whole = h2hgcn.train(EDGES, **options)

    def interrupt(self, report, state):
        if report.epoch == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module._Progress, "__call__", interrupt)
        with pytest.raises(KeyboardInterrupt):
            h2hgcn.train(EDGES, out=tmp_path / "run", verbose=True, **options)
    assert not (tmp_path / "run" / "result.json").exists()
    resumed = h2hgcn.train(frame(), out=tmp_path / "run", **options)
    assert same_weights(whole, resumed)
    assert curve(whole) == curve(resumed)
    before = (tmp_path / "run" / "model.safetensors").stat().st_mtime_ns
    assert same_weights(whole, h2hgcn.train(EDGES, out=tmp_path / "run", **options))
    assert (tmp_path / "run" / "model.safetensors").stat().st_mtime_ns == before
    with pytest.raises(DataError, match="seed is 0 there and 1 now"):
        h2hgcn.train(EDGES, out=tmp_path / "run", seed=1, **options)
    assert not same_weights(whole, h2hgcn.train(EDGES, out=tmp_path / "run", seed=1, force=True, **options))


def test_doubts_are_warnings():
    with pytest.warns(DataWarning, match="the test part has 8 links only"):
        h2hgcn.train(EDGES, **QUICK)


def test_quiet_unless_verbose(capsys):
    h2hgcn.train(EDGES, **QUICK)
    assert capsys.readouterr() == ("", "")
    h2hgcn.train(EDGES, verbose=True, **QUICK)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "h2h-gcn for lp on graph"
    assert re.fullmatch(r"epoch 2/2: loss \d\.\d+, best validation auc 0\.\d+", lines[-2])
    assert lines[-1].startswith("Run(h2h-gcn for lp: ")


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ("no.csv", {}, "'no.csv' is neither a file nor a named dataset; there are: disease,"),
        ("pubmet", {}, "did you mean 'pubmed'?"),
        ("cora", {"directed": True}, "directed: only for a graph of your own; cora is a named dataset"),
        (None, {"features": np.ones((3, 1))}, "features: only for a graph of your own; pass its edges, too"),
        (EDGES, {"task": "links"}, "train(): 'links' is not a task; there are: lp, nc, gc"),
        (EDGES, {"task": "np"}, "there are: lp, nc, gc"),
        (EDGES, {"task": "gc"}, "the task gc does not fit graph, which is one graph; choose lp or nc"),
        (EDGES, {"task": "nc"}, "the graph has no labels"),
        (EDGES, {"model": "hgc"}, "train(): 'hgc' is not a model; did you mean 'hgcn'?"),
        (EDGES, {"epochs": "many"}, "train(): [training] epochs='many' must be a whole number"),
        (EDGES, {"settings": {"model.dropoot": 1}}, "train(): [model] has no option 'dropoot'"),
        (EDGES, {"settings": {"dropout": 1}}, "settings dropout=1: write it as section.option=value"),
        (EDGES, {"columns": ("a", "b")}, "columns is for tables and DataFrames"),
        (EDGES, {"columns": "source"}, "columns='source': name two"),
        (EDGES, {"config": "no.toml"}, "no.toml is not there"),
        (Data(num_nodes=3), {}, "the PyG graph has no tensor edge_index"),
        (
            [Data(y=torch.tensor([k])) for k in (0, 1)],
            {"labels": [0, 1]},
            "labels: not for a list of graphs; set what they have, such as y",
        ),
        (7, {}, "edges come from a file or a graph, not from an object of type int"),
    ],
)
def test_what_is_wrong_is_said(data, options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError) as error:
        h2hgcn.train(data, **options)
    assert message in str(error.value)
    assert not list(tmp_path.iterdir())


def masked(**options):
    y = torch.arange(40) % 3
    masks = {f"{part}_mask": torch.arange(40) % 4 == k for k, part in enumerate(("train", "val", "test"))}
    return Data(edge_index=to_undirected(edge_index()), num_nodes=40, x=torch.randn(40, 3), y=y, **masks | options)


def nodes_of(run):
    return {part: getattr(run.problem.split, part).tolist() for part in ("train", "val", "test")}


def test_the_split_that_a_graph_brings_along(tmp_path):
    """As masks, in an NPZ file or beside labels; another one can be asked for."""
    graph = masked()
    expected = {part: list(range(k, 40, 4)) for k, part in enumerate(("train", "val", "test"))}
    run = h2hgcn.train(graph, "nc", search="none", **QUICK)
    assert run.config["task"]["protocol"] == "given"
    assert nodes_of(run) == expected
    clean = h2hgcn.train(graph, "nc", search="none", protocol="clean", **QUICK)
    assert clean.config["task"]["protocol"] == "clean"
    assert nodes_of(clean) != expected
    arrays = {name: graph[name].numpy() for name in ("edge_index", "x", "y", "train_mask", "val_mask", "test_mask")}
    np.savez(tmp_path / "g.npz", **arrays)
    assert nodes_of(h2hgcn.train(tmp_path / "g.npz", "nc", search="none", **QUICK)) == expected
    parts = ["train", "val", "test", ""]
    rows = "".join(f"{k} {k % 3} {parts[k % 4] or '-'}\n" for k in range(40) if k % 4 < 3)
    (tmp_path / "y.txt").write_text(f"id label split\n{rows}")
    assert (
        nodes_of(h2hgcn.train(csv(tmp_path / "e.csv"), "nc", labels=tmp_path / "y.txt", search="none", **QUICK))
        == expected
    )
    labels = frame([(k, k % 3, parts[k % 4]) for k in range(40)], ("id", "label", "split"))
    assert nodes_of(h2hgcn.train(EDGES, "nc", labels=labels, search="none", **QUICK)) == expected
    links = h2hgcn.train(graph, search="none", **QUICK)
    assert links.config["task"]["protocol"] == "clean"


def test_a_given_split_holds_for_the_search():
    run = h2hgcn.train(masked(), "nc", model="gcn", **QUICK)
    assert run.config["task"]["protocol"] == "given"
    assert len(run.config["search"]["candidates"]) > 1


def test_several_splits_leave_the_choice_to_the_protocol():
    several = {f"{part}_mask": torch.rand(40, 10) < 0.3 for part in ("train", "val", "test")}
    assert h2hgcn.train(masked(**several), "nc", search="none", **QUICK).config["task"]["protocol"] == "clean"


def test_the_table_of_a_split():
    run = h2hgcn.train(masked(), "nc", search="none", **QUICK)
    table = run.split_table()
    assert list(table) == ["node", "label", "split"]
    assert all(label == str(node % 3) for node, label in zip(table["node"], table["label"], strict=True))
    assert len(pytest.importorskip("pandas").DataFrame(table)) == 30


def test_tangent_vectors_as_a_dataframe():
    pytest.importorskip("pandas")
    run = h2hgcn.train(NAMED, search="none", **QUICK)
    frame = run.to_pandas("tangent")
    assert list(frame.columns) == ["x1", "x2", "x3", "x4"]
    lengths = np.linalg.norm(frame.to_numpy(), axis=1)
    np.testing.assert_allclose(np.cosh(lengths), run.to_pandas()["x0"], rtol=1e-4)
    assert list(run.to_pandas("lorentz").columns) == list(run.to_pandas().columns)
