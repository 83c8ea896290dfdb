"""The command line as a person runs it, on real files."""

import json
import subprocess
import sys

import networkx as nx
import pytest


def test_a_real_process(process, tmp_path):
    (tmp_path / "bad.csv").write_text("1,2\n2,3\n3;4\n")
    stdout, stderr = process("inspect", "bad.csv").communicate()
    assert stdout == ""
    assert stderr.startswith("error: bad.csv, line 3: 1 field")
    assert "Traceback" not in stderr


def test_datasets(run, tmp_path):
    result = run("datasets")
    assert result.returncode == 0
    for name in ("disease", "cora", "synthetic", "enzymes"):
        assert name in result.stdout
    listed = json.loads(run("datasets", "--json").stdout)
    assert [row["name"] for row in listed][:2] == ["disease", "disease_lp"]
    generated = {"disease", "synthetic", *(f"hyperbolic-{size}" for size in ("10k", "100k", "1m", "10m"))}
    assert {row["name"] for row in listed if row["here"]} == generated
    assert not (tmp_path / "cache").exists()


def test_inspect_the_disease_tree(run, tmp_path):
    result = run("inspect", "disease", "--plot", tmp_path / "shape.png")
    assert result.returncode == 0, result.stderr
    assert "This graph is a tree (δ = 0)" in result.stdout
    assert (tmp_path / "shape.png").read_bytes().startswith(b"\x89PNG")


def test_inspect_a_file_as_json(run, tmp_path):
    edges = tmp_path / "e.csv"
    edges.write_text("source,target\na,b\nb,c\nc,a\nc,d\nd,d\n")
    (tmp_path / "l.csv").write_text("id,label\na,x\nb,x\nc,y\n")
    result = run("inspect", edges, "--labels", tmp_path / "l.csv", "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["size"]["nodes"] == 4
    assert report["size"]["edges"] == 4
    assert report["tree_likeness"]["independent_cycles"] == 1
    assert report["homophily"]["labelled_nodes"] == 3
    assert "1 self-loop was left out" in result.stderr
    assert "1 of 4 nodes have no label" in result.stderr


def test_node_attributes_of_a_graphml_file(run, tmp_path):
    graph = nx.path_graph(6)
    nx.set_node_attributes(graph, {k: "even" if k % 2 == 0 else "odd" for k in graph}, "kind")
    nx.set_node_attributes(graph, {k: float(k) for k in graph}, "size")
    nx.write_graphml(graph, tmp_path / "g.graphml")
    result = run("inspect", "g.graphml", "--labels", "kind", "--features", "size", "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["homophily"]["homophily"] == 0


def test_inspect_a_dense_graph_says_something_else(run, tmp_path):
    lines = [f"{i},{j}" for i in range(120) for j in range(i) if (i * 7919 + j * 104729) % 13 < 6]
    (tmp_path / "dense.csv").write_text("\n".join(lines))
    result = run("inspect", "dense.csv")
    assert result.returncode == 0, result.stderr
    assert "unlikely to help" in result.stdout
    assert "tree" not in result.stdout.split("Verdict")[1].split("Try first")[0]


def test_inspect_cora(run, benchmark_data):
    result = run("inspect", "Cora", "--data", benchmark_data)  # names are case-insensitive
    assert result.returncode == 0, result.stderr
    assert "This graph is a tree" not in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["inspect", "nothing"], "'nothing' is neither a file nor a named dataset; there are: disease, "),
        (["inspect", "cora"], "ind.cora.allx"),
        (["inspect", "g.graphml", "--features", "missing.csv"], "missing.csv does not exist"),
        (["inspect", "disease", "--labels", "bad.csv"], "--labels: only for a graph of your own"),
        (["inspect", "disease", "--unlinked", "keep"], "--unlinked: only for"),
        (["inspect", "disease", "--graph", "3"], "--graph is for collections"),
        (["inspect", "bad.csv"], "bad.csv, line 3: 1 field where the first line has 2"),
        (["inspect", "bad.csv", "--source", "a"], "--source and --target belong together"),
        (["inspect", "good.csv", "--weights", "w"], "has no column 'w'"),
        (["inspect", "good.csv", "--unlinked", "x"], "is not one of 'error', 'keep', 'drop'"),
        (["inspect", "good.csv", "--features", "none.csv"], "none.csv does not exist"),
        (["inspect", "disease", "--plot", "p.xyz"], "p.xyz"),
        (["inspect", "disease", "--data", "nowhere"], None),
        (["inspect"], "Missing argument"),
        (["datasets", "--data", "nowhere"], "the data folder nowhere does not exist"),
        (["nonsense"], "nonsense"),
    ],
)
def test_a_mistake_is_a_message_and_exit_code_2(run, tmp_path, arguments, message):
    (tmp_path / "bad.csv").write_text("1,2\n2,3\n3;4\n")
    (tmp_path / "good.csv").write_text("1,2\n2,3\n")
    nx.write_graphml(nx.path_graph(3), tmp_path / "g.graphml")
    before = sorted(tmp_path.rglob("*"))
    result = run(*arguments)
    if message is None:
        assert result.returncode == 0
        return
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("command", [["inspect", "e.csv"], ["convert", "--edges", "e.csv", "--out", "big"]])
def test_delimiter_and_comment(run, tmp_path, command):
    (tmp_path / "e.csv").write_text("#a|b,1\nb,1|c\nc|#a\n")
    result = run(*command, "--delimiter", "pipe", "--comment", "none")
    assert result.returncode == 0, result.stderr
    assert "3 nodes, 3 edges" in result.stdout or "nodes            3" in " ".join(result.stdout.split("\n"))
    assert "comments" not in result.stdout + result.stderr
    counted = run(*command, "--delimiter", "pipe")
    assert "1 line begins with '#' in e.csv, so left out as comments" in counted.stdout + counted.stderr


def test_names_are_printed_as_they_are(run, tmp_path):
    """Brackets are markup to the library that prints, colons and backslashes are special, too."""
    name = "odd[/b]:fire:\\[red].csv"
    (tmp_path / "odd[").mkdir()
    (tmp_path / name).write_text("1,2\n2,3\n")
    report = run("inspect", name, "--plot", "[bold].png")
    assert report.returncode == 0, report.stderr
    assert report.stdout.startswith(f"{name}\n")
    assert f"note: {name}: " in report.stderr
    assert "Picture: [bold].png" in report.stderr
    (tmp_path / name).write_text("1,2\n2,3\n3;4\n")
    assert run("inspect", name).stderr.startswith(f"error: {name}, line 3: 1 field")


def test_version(run):
    assert run("--version").stdout.startswith("h2hgcn ")


def test_a_reader_that_leaves_early_is_no_error(tmp_path):
    command = f"{sys.executable} -W ignore -m h2hgcn datasets | head -n 1"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path)
    assert "Traceback" not in result.stderr


def test_convert_and_use_what_was_converted(run, tmp_path):
    (tmp_path / "edges.csv").write_text("source,target\n" + "\n".join(f"{n},{(n * 7 + 1) % 50}" for n in range(50)))
    result = run("convert", "--edges", "edges.csv", "--out", "big")
    assert result.returncode == 0
    assert result.stdout.startswith("big: 50 nodes, ")
    assert run("inspect", "big").returncode == 0
    trained = run(
        "train", "--edges", "big", "--epochs", "2", "--out", "r", "--batch-size", "8", "--fanout", "3,2", "--json"
    )
    assert trained.returncode == 0, trained.stderr
    assert "batches of 8 of " in trained.stderr
    (tmp_path / "edges.csv").write_text("source,target\n1,2\n")
    changed = run("train", "--edges", "big", "--epochs", "2", "--out", "other")
    assert changed.returncode == 2
    assert "has changed since it was converted" in changed.stderr
