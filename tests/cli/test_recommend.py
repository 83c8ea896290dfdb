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
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lp", "--node", "zz"], "there is no node zz in the graph"),
        (["lp", "--node", "n10", "-k", "36"], "there are 35 nodes that it is not linked to"),
        (["lp", "--node", "n10", "-k", "0"], "'-k'"),
        (["lp"], "Missing option '--node'"),
        (["gc", "--node", "1"], "within one graph"),
    ],
)
def test_a_mistake_is_a_message_and_exit_code_2(run, trained, arguments, message):
    result = run("recommend", trained / arguments[0], *arguments[1:])
    assert result.returncode == 2
    assert message in result.stderr
    assert result.stdout == ""
