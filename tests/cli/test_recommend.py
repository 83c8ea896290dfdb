"""``h2hgcn recommend``."""

import json

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
    assert all("do not rely on its predictions" in line for line in result.stderr.splitlines())


def test_some_nodes_and_all(run, trained, tmp_path):
    (tmp_path / "some.csv").write_text("node\nn10\nn03\n")
    some = json.loads(run("recommend", trained / "lp", "--nodes", "some.csv", "-k", 2, "--json").stdout)
    one = json.loads(run("recommend", trained / "lp", "--node", "n10", "-k", 2, "--json").stdout)
    assert [row["node"] for row in some] == ["n10", "n10", "n03", "n03"]
    assert [row["other"] for row in some][:2] == [row["node"] for row in one]
    result = run("recommend", trained / "lp", "--all", "-k", 2, "--out", "links.csv")
    assert result.returncode == 0
    assert len((tmp_path / "links.csv").read_text().splitlines()) == 1 + 2 * 40


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lp", "--node", "zz"], "there is no node 'zz'; ids go from n00 to n39"),
        (["lp", "--node", "n10", "-k", "36"], "there are 35 nodes that it is not linked to"),
        (["lp", "--node", "n10", "-k", "0"], "'-k'"),
        (["lp"], "--node ID, --nodes FILE or --all, one of these"),
        (["lp", "--node", "n10", "--all"], "--node ID, --nodes FILE or --all, one of these"),
        (["lp", "--all", "--index", "tree"], "index='tree' is not known"),
        (["lp", "--all", "--out", "links.txt"], "tables are written as .csv or .parquet"),
        (["gc", "--node", "1"], "within one graph"),
        (["lp", "--node", "n10", "--direction", "in"], "the graph of this run is undirected"),
        (["lp", "--all", "--direction", "out"], "the graph of this run is undirected"),
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
    assert "direction='up' is not known" in unknown.stderr
