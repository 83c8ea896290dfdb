"""``h2hgcn recommend``."""

import json
from itertools import pairwise

import pytest


@pytest.mark.parametrize("name", ["lp", "nc"])
def test_the_nearest_nodes_without_a_link(run, trained, name):
    rows = json.loads(run("recommend", trained / name, "--node", "n10", "-k", 35, "--json").stdout)
    assert {"n10", "n09", "n11", "n03", "n17"}.isdisjoint(row["node"] for row in rows)
    assert len({row["node"] for row in rows}) == 35
    distances = [row["distance"] for row in rows]
    assert distances == sorted(distances)
    probabilities = [row["probability"] for row in rows]
    assert probabilities == sorted(probabilities, reverse=True)


def test_the_table(run, trained):
    result = run("recommend", trained / "lp", "--node", "n10", "-k", 3)
    assert result.stdout.startswith("likeliest missing links of n10\nnode")
    assert len(result.stdout.splitlines()) == 5
    assert all(line.startswith("note: ") for line in result.stderr.splitlines())


def test_some_nodes_and_all(run, trained, tmp_path):
    (tmp_path / "some.csv").write_text("node\nn10\nn03\n")
    some = json.loads(run("recommend", trained / "lp", "--nodes", "some.csv", "-k", 2, "--json").stdout)
    one = json.loads(run("recommend", trained / "lp", "--node", "n10", "-k", 2, "--json").stdout)
    assert [row["node"] for row in some] == ["n10", "n10", "n03", "n03"]
    assert [row["other"] for row in some][:2] == [row["node"] for row in one]
    result = run("recommend", trained / "lp", "--all", "-k", 2, "--out", "links.csv")
    assert result.returncode == 0
    assert len((tmp_path / "links.csv").read_text().splitlines()) == 1 + 2 * 40


def test_the_likeliest_links_of_the_graph(run, trained, tmp_path):
    rows = json.loads(run("recommend", trained / "lp", "--top", 30, "--json").stdout)
    assert [row["rank"] for row in rows] == list(range(1, 31))
    pairs = [(row["source"], row["target"]) for row in rows]
    assert len({frozenset(pair) for pair in pairs}) == 30
    probabilities = [row["probability"] for row in rows]
    assert probabilities == sorted(probabilities, reverse=True)
    one = json.loads(run("recommend", trained / "lp", "--node", pairs[0][0], "-k", 1, "--json").stdout)
    assert [row["node"] for row in one] == [pairs[0][1]]
    table = run("recommend", trained / "lp", "--top", 30)
    assert table.stdout.split()[:5] == ["rank", "source", "target", "distance", "probability"]
    assert "30 rows and 5 columns in total" in table.stderr
    assert "probabilities are not calibrated: that takes 20 validation links, and there are" in table.stderr
    result = run("recommend", trained / "lp", "--top", 30, "--out", "top.csv")
    assert (result.returncode, result.stderr.splitlines()[-1]) == (0, "30 rows: top.csv")
    lines = (tmp_path / "top.csv").read_text().replace('"', "").splitlines()
    assert [tuple(line.split(",")[1:3]) for line in lines[1:]] == pairs
    assert run("recommend", trained / "lp", "--top", 30, "--out", "top.csv").returncode == 2
    again = run("recommend", trained / "lp", "--top", 30, "--out", "again.csv", "--force")
    assert again.returncode == 0
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "top.csv").read_bytes()


def test_all_links_that_are_left(run, trained):
    """A ring of 40 with chords has 80 edges; 700 of the pairs are none."""
    result = run("recommend", trained / "lp", "--top", 1000, "--json")
    assert len(json.loads(result.stdout)) == 700
    assert "note: 1,000 links were asked for; 700 are left, and these are all" in result.stderr
    result = run("recommend", trained / "lp", "--node", "n10", "-k", 36, "--json")
    assert len(json.loads(result.stdout)) == 35
    assert "note: node n10 has 35 missing links of the 36 asked for" in result.stderr


def test_a_hub_does_not_stop_the_others(run, tmp_path):
    names = [f"n{k}" for k in range(12)]
    edges = [("n0", name) for name in names[1:]] + list(pairwise(names[1:]))
    (tmp_path / "hub.csv").write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in edges))
    train = ["--epochs", 2, "--search", "none", "--set", "task.val=0.2", "--set", "task.test=0.2"]
    assert run("train", "--edges", "hub.csv", "--out", "hub", *train).returncode == 0
    result = run("recommend", "hub", "--all", "-k", 9, "--out", "links.csv")
    assert result.returncode == 0
    assert "note: node n0 has 0 missing links of the 9 asked for; 9 more nodes have fewer than 9" in result.stderr
    rows = [line.split(",")[0].strip('"') for line in (tmp_path / "links.csv").read_text().splitlines()[1:]]
    assert {name: rows.count(name) for name in names} == {
        name: {"n0": 0, "n1": 9, "n11": 9}.get(name, 8) for name in names
    }
    (tmp_path / "some.csv").write_text("node\nn0\nn1\n")
    some = run("recommend", "hub", "--nodes", "some.csv", "-k", 2, "--json")
    assert [row["node"] for row in json.loads(some.stdout)] == ["n1", "n1"]
    for options in (["--node", "n0"], ["--node", "n0", "--out", "one.csv"]):
        alone = run("recommend", "hub", *options)
        assert (alone.returncode, alone.stdout) == (2, "")
        assert "node n0 is linked to all other nodes; there is no link to recommend" in alone.stderr
    assert not (tmp_path / "one.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lp", "--node", "zz"], "there is no node 'zz'; ids go from n00 to n39"),
        (["lp", "--node", "n10", "-k", "0"], "'-k'"),
        (["lp"], "choose one of --node ID, --nodes FILE, --all and --top K"),
        (["lp", "--node", "n10", "--all"], "choose one of --node ID, --nodes FILE, --all and --top K"),
        (["lp", "--all", "--index", "tree"], "'tree' is not one of 'exact', 'hnsw', 'ivf'"),
        (["lp", "--all", "--out", "links.txt"], "tables are written as .csv or .parquet"),
        (["gc", "--node", "1"], "within one graph"),
        (["lp", "--node", "n10", "--direction", "in"], "the graph of this run is undirected"),
        (["lp", "--all", "--direction", "out"], "the graph of this run is undirected"),
        (["lp", "--top", "0"], "'--top'"),
        (["lp", "--top", "5", "--all"], "choose one of --node ID, --nodes FILE, --all and --top K"),
        (["lp", "--top", "5", "--direction", "out"], "--direction: only with --node, --nodes or --all"),
        (["lp", "--top", "5", "-k", "3"], "--top is the number of links of the whole graph, -k of each node"),
        (["lp", "--top", "5", "--index", "tree"], "'tree' is not one of 'exact', 'hnsw', 'ivf'"),
        (["lp", "--top", "5", "--out", "top.txt"], "tables are written as .csv or .parquet"),
        (["gc", "--top", "5"], "within one graph"),
    ],
)
def test_a_mistake_is_a_message_and_exit_code_2(run, trained, arguments, message):
    result = run("recommend", trained / arguments[0], *arguments[1:])
    assert result.returncode == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_links_from_a_node_and_to_it(run, files):
    graph = ["--edges", "my.csv", "--features", "x.csv", "--directed"]
    assert run("train", "--epochs", 3, "--out", "directed", *graph).returncode == 0
    targets, sources = {"n11", "n17"}, {"n09", "n03"}
    found = {
        direction: json.loads(run("recommend", "directed", "--node", "n10", "-k", 37, "--json", *direction).stdout)
        for direction in ((), ("--direction", "out"), ("--direction", "in"))
    }
    outgoing, incoming = ({row["node"] for row in found["--direction", way]} for way in ("out", "in"))
    assert found[()] == found["--direction", "out"]
    assert (outgoing & targets, incoming & sources) == (set(), set())
    assert (outgoing & sources, incoming & targets) == (sources, targets)
    for rows in found.values():
        probabilities = [row["probability"] for row in rows]
        assert probabilities == sorted(probabilities, reverse=True)
    many = run("recommend", "directed", "--all", "-k", 2, "--direction", "in", "--json")
    rows = [row for row in json.loads(many.stdout) if row["node"] == "n10"]
    assert [row["other"] for row in rows] == [row["node"] for row in found["--direction", "in"][:2]]
    assert run("recommend", "directed", "--node", "n10", "--direction", "in").stdout.startswith(
        "likeliest missing links to n10\n"
    )
    unknown = run("recommend", "directed", "--node", "n10", "--direction", "up")
    assert unknown.returncode == 2
    assert "'up' is not one of 'out', 'in'" in unknown.stderr
