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
        (["lp", "--node", "zz"], "there is no node zz in the graph"),
        (["lp", "--node", "n10", "-k", "36"], "there are 35 nodes that it is not linked to"),
        (["lp", "--node", "n10", "-k", "0"], "'-k'"),
        (["lp"], "--node ID, --nodes FILE or --all, one of these"),
        (["lp", "--node", "n10", "--all"], "--node ID, --nodes FILE or --all, one of these"),
        (["lp", "--all", "--index", "tree"], "index='tree' is not known"),
        (["lp", "--all", "--out", "links.txt"], "tables are written as .csv or .parquet"),
        (["gc", "--node", "1"], "within one graph"),
    ],
)
def test_a_mistake_is_a_message_and_exit_code_2(run, trained, arguments, message):
    result = run("recommend", trained / arguments[0], *arguments[1:])
    assert result.returncode == 2
    assert message in result.stderr
    assert result.stdout == ""
