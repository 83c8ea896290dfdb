import json

import pytest

from h2hgcn.datasets.shape import random_taxonomy

FAST = ("--epochs", 20, "--set", "training.eval_every=10", "--dim", 4)


@pytest.fixture
def taxonomy(tmp_path):
    rows = [f"t{child},t{parent}" for child, parent in random_taxonomy(60).tolist()]
    (tmp_path / "taxonomy.csv").write_text("\n".join(["child,parent", *rows]) + "\n")
    return "taxonomy.csv"


def test_a_taxonomy_goes_through_all_commands(run, taxonomy, tmp_path):
    command = ("train", "--task", "embed", "--edges", taxonomy, "--closure", *FAST)
    trained = run(*command, "--out", "run", "--json")
    assert trained.returncode == 0, trained.stderr
    result = json.loads(trained.stdout)
    assert result["selection"] == "map"
    assert list(result["metrics"]) == ["reconstruction"]
    assert {"map", "mean_rank", "ancestors_map", "edges_map", "distortion"} <= result["metrics"][
        "reconstruction"
    ].keys()
    assert "hyp for embed on taxonomy, all links" in trained.stderr
    again = run(*command, "--out", "run")
    assert "finished already" in again.stderr
    assert "reconstruction" in again.stdout
    evaluated = run("evaluate", "run", "--json")
    assert json.loads(evaluated.stdout)["metrics"] == result["metrics"]
    assert run("embed", "run", "--out", "points.csv").returncode == 0
    recommended = run("recommend", "run", "--node", "t7", "--json")
    assert recommended.returncode == 0, recommended.stderr
    assert run("explore", "run", "--export", "page.html").returncode == 0
    predicted = run("predict", "run")
    assert predicted.returncode == 2
    assert "no probabilities; use h2hgcn recommend" in predicted.stderr
    configured = run("train", "--config", "run/config.toml", "--out", "other", "--json")
    assert json.loads(configured.stdout)["metrics"] == result["metrics"]


def test_a_cycle_is_named(run, tmp_path):
    (tmp_path / "ring.csv").write_text("source,target\na,b\nb,c\nc,a\n")
    found = run("train", "--task", "embed", "--closure", "--edges", "ring.csv")
    assert found.returncode == 2
    assert "has a cycle" in found.stderr
    assert "a -> b -> c -> a" in found.stderr
    undirected = run("train", "--task", "embed", "--closure", "--edges", "ring.csv", "--undirected")
    assert undirected.returncode == 2
    assert "needs directed edges" in undirected.stderr
    other = run("train", "--task", "lp", "--closure", "--edges", "ring.csv")
    assert other.returncode == 2
    assert "closure is an option of the task embed, not of lp; add --task embed" in " ".join(other.stderr.split())


def test_link_prediction_on_a_tree_is_warned_of(run, taxonomy, tmp_path):
    warned = run("train", "--edges", taxonomy, "--epochs", 1)
    assert "100% of the edges are bridges" in warned.stderr
    assert "--task embed" in warned.stderr
    ring = [f"{k},{(k + d) % 40}" for k in range(40) for d in (1, 2)]
    (tmp_path / "ring.csv").write_text("\n".join(["a,b", *ring]) + "\n")
    assert "bridges" not in run("train", "--edges", "ring.csv", "--epochs", 1).stderr


@pytest.mark.parametrize("command", [("compare", "--models", "hyp,euc"), ("tune",)])
def test_commands_that_need_held_out_data(run, taxonomy, command):
    found = run(*command, "--task", "embed", "--edges", taxonomy)
    assert found.returncode == 2
    assert "holds nothing out" in found.stderr
