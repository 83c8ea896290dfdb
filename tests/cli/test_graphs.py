"""Collections of graphs on the command line: ``--graphs`` from training to new graphs."""

import json

import networkx as nx
import numpy as np
import pyarrow.parquet
import pytest
from runs import KINDS, write_graphs

import h2hgcn
from h2hgcn.datasets import DataWarning
from h2hgcn.training import load_run


@pytest.fixture
def own(tmp_path, at, train_graphs):
    """A run and its graphs, to be changed."""
    write_graphs(tmp_path / "shapes")
    assert at(tmp_path, *train_graphs, "--search", "none", "--out", "run").returncode == 0
    return tmp_path


def test_a_run_keeps_names_and_finds_its_graphs(learned, at):
    table = pyarrow.parquet.read_table(learned / "run" / "embeddings.parquet").to_pydict()
    assert table["id"] == [f"g{k}" for k in range(24)]
    assert table["label"] == [KINDS[k % 2] for k in range(24)]
    report = (learned / "run" / "report.html").read_text()
    assert "graph classification on shapes" in report
    assert "g23" in report
    told = json.loads(at(learned, "evaluate", "run", "--json").stdout)
    assert told["metrics"] == json.loads((learned / "run" / "result.json").read_text())["metrics"]
    rows = json.loads(at(learned, "predict", "run", "--json").stdout)
    assert [row["graph"] for row in rows] == table["id"]
    for row in rows:
        assert row["p(tree)"] + row["p(ring)"] == pytest.approx(1)
        assert row["probability"] == row[f"p({row['class']})"]
    assert at(learned, "embed", "run", "--out", "p.npz").returncode == 0
    assert np.load(learned / "p.npz")["id"].tolist() == table["id"]
    page = at(learned, "explore", "run", "--export", "page.html")
    assert page.returncode == 0, page.stderr
    assert "shapes by h2h-gcn" in (learned / "page.html").read_text()


def test_new_graphs(learned, tmp_path, at):
    result = at(learned, "predict", "run", "--graphs", "new", "--json")
    assert result.returncode == 0, result.stderr
    rows = json.loads(result.stdout)
    with pytest.warns(DataWarning):
        graphs = h2hgcn.load_graphs(learned / "new")
    expected = load_run(learned / "run").predict(graphs)
    assert [row["graph"] for row in rows] == graphs.graph_ids.tolist()
    assert [row["p(ring)"] for row in rows] == pytest.approx(expected[:, 0].tolist())
    (tmp_path / "some.txt").write_text("g4\ng1\n")
    chosen = json.loads(at(learned, "predict", "run", tmp_path / "some.txt", "--graphs", "new", "--json").stdout)
    assert [row["graph"] for row in chosen] == ["g4", "g1"]
    points = tmp_path / "points.csv"
    assert at(learned, "embed", "run", "--graphs", "new", "--labels", "new-y.csv", "--out", points).returncode == 0
    first, second = points.read_text().splitlines()[:2]
    assert first.startswith('"id","label","x0"')
    assert second.startswith('"g0","tree"')


def test_the_same_graphs_have_the_same_classes(learned, at):
    own, same = (json.loads(at(learned, "predict", "run", *more, "--json").stdout)
                 for more in ((), ("--graphs", "shapes")))  # fmt: skip
    assert [row["graph"] for row in own] == [row["graph"] for row in same]
    assert [row["p(tree)"] for row in own] == pytest.approx([row["p(tree)"] for row in same], abs=1e-6)


def test_the_same_command_again_and_the_configuration(learned, tmp_path, at, train_graphs):
    again = at(learned, *train_graphs, "--search", "none", "--out", "run")
    assert "finished already" in again.stderr
    repeated = at(learned, "train", "--config", "run/config.toml", "--out", tmp_path / "r", "--json")
    assert repeated.returncode == 0, repeated.stderr
    assert (
        json.loads(repeated.stdout)["metrics"] == json.loads((learned / "run" / "result.json").read_text())["metrics"]
    )


def test_graphs_that_were_moved_or_changed(own, at):
    def evaluate(*more):
        result = at(own, "evaluate", "run", *more)
        return result.returncode, result.stderr

    (own / "shapes").rename(own / "moved")
    code, message = evaluate()
    assert code == 2
    assert f"{own / 'shapes'}, which run was trained on, is missing; name its place with --graphs" in message
    assert evaluate("--graphs", "moved") == (0, "")
    (own / "shapes-y.csv").rename(own / "moved-y.csv")
    code, message = evaluate("--graphs", "moved")
    assert code == 2
    assert "name its place with --labels" in message
    assert evaluate("--graphs", "moved", "--labels", "moved-y.csv") == (0, "")
    (own / "moved" / "g0.csv").write_text("1,2\n")
    code, message = evaluate("--graphs", "moved", "--labels", "moved-y.csv")
    assert code == 2
    assert "moved is not what run was trained on: graphs, features or classes differ" in message
    assert at(own, "predict", "run", "--graphs", "moved").returncode == 0


def test_labels_beside_the_graphs_and_a_search(run, tmp_path):
    write_graphs(tmp_path / "shapes", 40)
    (tmp_path / "shapes-y.csv").rename(tmp_path / "shapes" / "labels.csv")
    result = run("train", "--graphs", "shapes", "--epochs", 2, "--json")
    assert result.returncode == 0, result.stderr
    assert "the best of 4 settings, to runs/shapes-gc-h2h-gcn-seed0" in result.stderr
    assert (tmp_path / json.loads(result.stdout)["folder"] / "report.html").exists()
    assert run("evaluate", "runs/shapes-gc-h2h-gcn-seed0").returncode == 0
    assert len(json.loads(run("predict", "runs/shapes-gc-h2h-gcn-seed0", "--graphs", "shapes", "--json").stdout)) == 40


def test_a_graph_is_inspected_by_its_name_or_place(run, tmp_path):
    write_graphs(tmp_path / "shapes", 12)
    by_name, by_place = (run("inspect", "shapes", "--graph", which, "--json") for which in ("g10", 10))
    assert by_name.returncode == 0, by_name.stderr
    assert json.loads(by_name.stdout)["size"] == json.loads(by_place.stdout)["size"]
    wrong = run("inspect", "shapes", "--graph", "g12")
    assert wrong.returncode == 2
    assert "--graph g12 is not there: " in wrong.stderr
    assert wrong.stderr.rstrip().endswith("has 12 graphs, g0 to g11")


def test_a_tu_folder(run, tmp_path):
    folder = tmp_path / "SET"
    folder.mkdir()
    rings = range(30)  # of three nodes, and a path of three in every other place
    edges = [(3 * k + a, 3 * k + b) for k in rings for a, b in ((1, 2), (2, 3), *(((3, 1),) if k % 2 else ()))]
    (folder / "SET_A.txt").write_text("".join(f"{a}, {b}\n{b}, {a}\n" for a, b in edges))
    (folder / "SET_graph_indicator.txt").write_text("".join(f"{k + 1}\n" * 3 for k in rings))
    (folder / "SET_graph_labels.txt").write_text("".join(f"{2 * (k % 2) - 1}\n" for k in rings))
    result = run("train", "--graphs", "SET", "--epochs", 2, "--search", "none", "--out", "r")
    assert result.returncode == 0, result.stderr
    row = json.loads(run("predict", "r", "--json").stdout)[29]
    assert row["graph"] == 29
    assert row["p(-1)"] + row["p(1)"] == pytest.approx(1)
    inspected = json.loads(run("inspect", "SET", "--graph", 1, "--json").stdout)
    assert (inspected["size"]["nodes"], inspected["size"]["edges"]) == (3, 3)


def test_compare_takes_a_folder(learned, inline, tmp_path, at, train_graphs):
    result = at(learned, "compare", *train_graphs[1:], "--models", "gin,mlp", "--seeds", 1, "--search", "none",
                    "--out", tmp_path / "c", "--json")  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert {row["model"] for row in json.loads(result.stdout)["models"]} == {"gin", "mlp"}


@pytest.mark.filterwarnings("ignore::h2hgcn.datasets.DataWarning")
def test_from_python(learned, tmp_path, monkeypatch):
    monkeypatch.chdir(learned)
    options = {"epochs": 3, "search": "none", "settings": {"task.num_folds": 4}}
    one = h2hgcn.train("shapes", "gc", labels="shapes-y.csv", out=tmp_path / "r", **options)
    assert one.metrics == load_run("run").metrics
    assert one.config["data"]["graphs"] == str(learned / "shapes")
    classes = dict(line.split(",") for line in (learned / "shapes-y.csv").read_text().splitlines()[1:])
    other = h2hgcn.train(learned / "shapes", labels=classes, **options)
    assert other.metrics == one.metrics
    same = h2hgcn.train(h2hgcn.load_graphs("shapes", classes), **options)
    assert same.metrics == one.metrics
    loaded = load_run(tmp_path / "r", data=h2hgcn.load_graphs("shapes", "shapes-y.csv"))
    assert loaded.evaluate() == one.metrics["test"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "--graphs", "none"), "none does not exist; name a folder of graphs"),
        (("train", "--graphs", ""), "--graphs is empty"),
        (("train", "--graphs", "shapes-y.csv"), "shapes-y.csv is a file"),
        (("train", "--graphs", "shapes"), "the graphs have no classes"),
        (("train", "--graphs", "shapes", "--labels", "none.csv"), "none.csv does not exist"),
        (("train", "--graphs", "shapes", "--labels", "new-y.csv"), "the graph 'g6' has no class (and 17 more)"),
        (("train", "--graphs", "new", "--labels", "shapes-y.csv"), "there is no graph 'g6'; ids go from g0 to g5"),
        (("train", "--graphs", "new", "--labels", "new-y.csv"), "--set task.num_folds=3"),
        (("train", "--graphs", "new", "--labels", "one.csv", "--set", "task.num_folds=2"), "have one class"),
        (("train", "--graphs", "shapes", "--task", "nc"), "shapes, which is a collection of graphs; choose gc"),
        (("train", "--graphs", "shapes", "--dataset", "enzymes"), "are both given; choose one"),
        (("train", "--graphs", "shapes", "--unlinked", "keep"), "only for one graph"),
        (("train", "--graphs", "shapes", "--source", "a"), "--source and --target belong together"),
        (("train", "--graphs", "shapes", "--features", "height"), "has no node attributes"),
        (("train", "--edges", "shapes"), "for a folder of graphs use --graphs shapes"),
        (("predict", "run", "--graphs", "none"), "none does not exist"),
        (("predict", "run", "--graphs", "new", "--directed"), "the run was trained with log(1 + degree)"),
        (("predict", "run", "--graphs", "new", "--edges", "new/g0.csv"), "--edges: only for one graph"),
        (("predict", "run", "new-y.csv", "--graphs", "xml"), "there are no graphs 'g0', 'g1', 'g2' and 3 more"),
        (("predict", "lp", "--graphs", "new"), "this run is about one graph; name another one with --edges"),
        (("embed", "lp", "--graphs", "new", "--out", "x.csv"), "this run is about one graph"),
        (("evaluate", "lp", "--graphs", "new"), "is about one graph, which it holds"),
        (("inspect", "shapes"), "is a collection of 24 graphs; choose one with --graph"),
        (("inspect", "shapes", "--unlinked", "keep"), "--unlinked: only for one graph"),
    ],
)
def test_a_mistake_is_a_message_and_exit_code_2(learned, trained, arguments, message, at):
    (learned / "one.csv").write_text("".join(f"g{k},a\n" for k in range(6)))
    (learned / "xml").mkdir(exist_ok=True)
    nx.write_graphml(nx.path_graph(3), learned / "xml" / "path.graphml")
    given = [trained / "lp" if argument == "lp" else argument for argument in arguments]
    result = at(learned, *given)
    assert result.returncode == 2, result.stderr
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_attributes_of_new_graphs_are_found_by_name(run, tmp_path):
    for folder, extra in (("old", {}), ("new", {"aa": 1.0})):
        (tmp_path / folder).mkdir()
        for k in range(20):
            graph = nx.path_graph(4) if k % 2 else nx.star_graph(4)
            nx.set_node_attributes(graph, {node: {**extra, "mass": k + node, "charge": node} for node in graph})
            nx.write_graphml(graph, tmp_path / folder / f"{k}.graphml")
    (tmp_path / "y.csv").write_text("".join(f"{k},{k % 2}\n" for k in range(20)))
    command = ("train", "--graphs", "old", "--labels", "y.csv", "--epochs", 1, "--search", "none", "--out", "r")
    result = run(*command)
    assert result.returncode == 0, result.stderr
    assert "node attributes taken as features: mass, charge" in result.stderr
    own, new = (json.loads(run("predict", "r", *more, "--json").stdout) for more in ((), ("--graphs", "new")))
    assert [row["p(0)"] for row in own] == pytest.approx([row["p(0)"] for row in new], abs=1e-6)
    for path in (tmp_path / "new").iterdir():
        path.write_text(path.read_text().replace('"mass"', '"weight"'))
    refused = run("predict", "r", "--graphs", "new")
    assert refused.returncode == 2
    assert "no node has an attribute 'mass'" in refused.stderr
