"""``--new-edges`` and ``--new-features`` of predict, recommend and embed."""

import json

import numpy as np
import pytest

from h2hgcn.embeddings import read_embeddings

NEW = ("--new-edges", "e.csv", "--new-features", "x1.csv")


@pytest.fixture
def new(files):
    """The new nodes beside the graph, and the whole graph with them."""
    (files / "e.csv").write_text("source,target\nnew1,n01\nnew1,n02\nnew2,new1\n")
    (files / "x1.csv").write_text("id,height,age,size\nnew1,0.1,0.2,0.3\nnew2,-1,0,2\n")
    (files / "p.csv").write_text("source,target\nnew1,n10\nn05,new2\n")
    (files / "whole.csv").write_text((files / "my.csv").read_text() + "new1,n01\nnew1,n02\nnew2,new1\n")
    (files / "wholex.csv").write_text((files / "x.csv").read_text() + "new1,0.1,0.2,0.3\nnew2,-1,0,2\n")
    return files


def test_links_as_in_the_whole_graph(run, new, trained):
    joined = run("predict", trained / "lp", "p.csv", *NEW, "--json")
    assert joined.returncode == 0, joined.stderr
    whole = run("predict", trained / "lp", "p.csv", "--edges", "whole.csv", "--features", "wholex.csv", "--json")
    rows, expected = json.loads(joined.stdout), json.loads(whole.stdout)
    assert [(row["source"], row["target"]) for row in rows] == [("new1", "n10"), ("n05", "new2")]
    assert [row["probability"] for row in rows] == pytest.approx([row["probability"] for row in expected], abs=1e-5)


def test_classes_of_the_new_nodes_or_of_some(run, new, trained):
    whole = run("predict", trained / "nc", "--edges", "whole.csv", "--features", "wholex.csv", "--json")
    expected = {row["node"]: row["p(red)"] for row in json.loads(whole.stdout)}
    rows = json.loads(run("predict", trained / "nc", *NEW, "--json").stdout)
    assert [row["node"] for row in rows] == ["new1", "new2"]
    assert [row["p(red)"] for row in rows] == pytest.approx([expected[row["node"]] for row in rows], abs=1e-5)
    (new / "some.csv").write_text("n01\nnew2\n")
    some = json.loads(run("predict", trained / "nc", "some.csv", *NEW, "--json").stdout)
    assert [row["node"] for row in some] == ["n01", "new2"]


def test_recommended_links(run, new, trained):
    result = run("recommend", trained / "lp", "--node", "new1", "-k", 38, *NEW, "--json")
    rows = json.loads(result.stdout)
    assert {row["node"] for row in rows} == {f"n{k:02}" for k in range(40)} - {"n01", "n02"}
    (new / "p.csv").write_text("".join(f"new1,{row['node']}\n" for row in rows[:3]))
    again = json.loads(run("predict", trained / "lp", "p.csv", *NEW, "--json").stdout)
    assert [row["probability"] for row in rows[:3]] == pytest.approx([row["probability"] for row in again], abs=1e-5)
    (new / "some.csv").write_text("new1\nnew2\n")
    many = json.loads(run("recommend", trained / "lp", "--nodes", "some.csv", "-k", 2, *NEW, "--json").stdout)
    assert [row["node"] for row in many] == ["new1", "new1", "new2", "new2"]
    assert [row["other"] for row in many[:2]] == [row["node"] for row in rows[:2]]


@pytest.mark.parametrize("suffix", ["csv", "npy"])
def test_points_come_after_those_of_the_run(run, new, trained, suffix):
    assert run("embed", trained / "lp", *NEW, "--out", f"j.{suffix}").returncode == 0
    whole = ("--edges", "whole.csv", "--features", "wholex.csv", "--out", "w.csv")
    assert run("embed", trained / "lp", *whole).returncode == 0
    expected = read_embeddings(new / "w.csv")  # n00, ..., new1, new2: the same order
    if suffix == "npy":
        points = np.load(new / "j.npy")
    else:
        joined = read_embeddings(new / "j.csv")
        assert joined.ids.tolist() == expected.ids.tolist()
        points = joined.points
    np.testing.assert_allclose(points, expected.points, atol=1e-5)


def test_new_edges_are_read_as_those_of_the_run(run, new):
    (new / "w.csv").write_text("amount,seller,buyer\n" + "".join(
        f"{1 + k % 3},n{k:02},n{(k + step) % 40:02}\n" for step in (1, 7) for k in range(40)
    ))  # fmt: skip
    flags = ("--weights", "amount", "--source", "seller", "--target", "buyer", "--directed")
    assert run("train", "--edges", "w.csv", *flags, "--epochs", 1, "--search", "none", "--out", "r").returncode == 0
    (new / "e.csv").write_text("buyer,amount,seller\nn03,2,zoe\n")
    (new / "p.csv").write_text("zoe,n10\n")
    assert run("predict", "r", "p.csv", "--new-edges", "e.csv").returncode == 0
    (new / "e.csv").write_text("a,b,weight\nzoe,n03,2\n")
    refused = run("predict", "r", "p.csv", "--new-edges", "e.csv")
    assert (refused.returncode, "has no column 'seller'" in refused.stderr) == (2, True)
    named = ("--source", "a", "--target", "b", "--weights", "weight")
    assert run("predict", "r", "p.csv", "--new-edges", "e.csv", *named).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["predict", "nc", "--new-edges", "e.csv"], "node 'new1' is new and has no features, which the model needs"),
        (["predict", "nc", *NEW[:3], "x.csv"], "x.csv, line 2: 'n00' is a node of the run, which has its features"),
        (["predict", "nc", *NEW[:3], "names.csv"], "the features of names.csv are size, age, mass"),
        (["predict", "nc", *NEW, "--edges", "whole.csv"], "--edges is another graph"),
        (["predict", "nc", *NEW, "--directed"], "--directed: not with --new-edges"),
        (["predict", "nc", *NEW, "--source", "source"], "--source and --target belong together"),
        (["predict", "nc", "--new-edges", "none.csv"], "none.csv does not exist"),
        (["predict", "gc", *NEW], "graphs of a collection, which have no new nodes"),
        (["recommend", "lp", "--node", "new3", *NEW], "there is no node 'new3'; did you mean 'new2'?"),
        (["recommend", "gc", "--node", "1", *NEW], "graphs of a collection, which have no new nodes"),
        (["embed", "lp", "--out", "o.csv", *NEW, "--labels", "y.csv"], "--labels: not with --new-edges"),
    ],
)
def test_a_mistake_is_a_message_and_exit_code_2(run, new, trained, shapes, arguments, message):
    (new / "names.csv").write_text("id,size,age,mass\nnew1,1,2,3\nnew2,1,2,3\n")
    command, name, *others = arguments
    result = run(command, trained / name, *others)
    assert result.returncode == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_edges_that_lead_nowhere(run, files):
    assert run("train", "--edges", "my.csv", "--epochs", 1, "--search", "none", "--out", "r").returncode == 0
    (files / "e.csv").write_text("N01 x,zoe\n")
    result = run("recommend", "r", "--node", "zoe", "--new-edges", "e.csv")
    assert result.returncode == 2
    assert (
        "e.csv: no edge leads to a node of the run: there are no nodes 'N01 x' (did you mean 'n01'?)" in result.stderr
    )
