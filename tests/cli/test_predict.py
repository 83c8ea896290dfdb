"""``h2hgcn predict``: files of what to predict, other graphs, and where the result goes."""

import json

import pandas
import pyarrow.csv
import pyarrow.parquet
import pytest

from h2hgcn.training import load_run

PAIRS = "n01,n02\nn03,n30\n"


@pytest.mark.parametrize(
    "text", [PAIRS, f"source,target\n{PAIRS}", f"who,whom\n{PAIRS}", PAIRS.replace(",", "\t"), f"# a comment\n{PAIRS}"]
)
def test_links_of_pairs(run, trained, tmp_path, text):
    (tmp_path / "p.csv").write_text(text)
    result = run("predict", trained / "lp", "p.csv", "--json")
    assert result.returncode == 0, result.stderr
    rows = json.loads(result.stdout)
    assert [(row["source"], row["target"]) for row in rows] == [("n01", "n02"), ("n03", "n30")]
    expected = load_run(trained / "lp").predict([["n01", "n02"], ["n03", "n30"]])
    assert [row["probability"] for row in rows] == pytest.approx(expected.tolist())


@pytest.mark.parametrize("text", ["n01\nn30\n", "id\nn01\nn30\n", "node,class\nn01,red\nn30,blue\n"])
def test_classes_of_nodes(run, trained, tmp_path, text):
    (tmp_path / "n.csv").write_text(text)
    rows = json.loads(run("predict", trained / "nc", "n.csv", "--json").stdout)
    assert [row["node"] for row in rows] == ["n01", "n30"]
    for row in rows:
        probabilities = {name: row[f"p({name})"] for name in ("red", "green", "blue")}
        assert sum(probabilities.values()) == pytest.approx(1)
        assert row["class"] == max(probabilities, key=probabilities.get)
        assert row["probability"] == probabilities[row["class"]]


def test_classes_of_graphs(run, trained, shapes, tmp_path):
    (tmp_path / "g.txt").write_text("graph\n5\n0\n")
    chosen = json.loads(run("predict", trained / "gc", "g.txt", "--json").stdout)
    everything = json.loads(run("predict", trained / "gc", "--json").stdout)
    assert [row["graph"] for row in everything] == list(range(40))
    assert [row["graph"] for row in chosen] == [5, 0]
    for row in chosen:
        assert row["p(1)"] == pytest.approx(everything[row["graph"]]["p(1)"], abs=1e-5)


def test_integer_ids(run, tmp_path):
    (tmp_path / "e.csv").write_text("".join(f"{k},{(k + step) % 30}\n" for k in range(30) for step in (1, 5)))
    (tmp_path / "p.csv").write_text("from,to\n7,1\n12,3\n")
    assert run("train", "--edges", "e.csv", "--epochs", 1, "--out", "r").returncode == 0
    rows = json.loads(run("predict", "r", "p.csv", "--json").stdout)
    assert [(row["source"], row["target"]) for row in rows] == [(7, 1), (12, 3)]
    (tmp_path / "p.csv").write_text("from,to\n7,1\n12,x\n")
    assert "p.csv, line 3: there is no node 'x'; ids go from 0 to 29" in run("predict", "r", "p.csv").stderr


def test_the_same_graph_in_a_file_has_the_same_classes(run, trained):
    """Classifiers see all edges, so that a graph is the same whether a run holds it or a file."""
    other = ("--edges", trained / "my.csv", "--features", trained / "x.csv")
    own, same = (json.loads(run("predict", trained / "nc", *flags, "--json").stdout) for flags in ((), other))
    assert [row["node"] for row in own] == [row["node"] for row in same]
    assert [row["p(red)"] for row in own] == pytest.approx([row["p(red)"] for row in same], abs=1e-5)


def test_edges_of_another_graph_are_read_as_those_of_the_run(run, trained, tmp_path):
    command = ("train", "--edges", trained / "my.csv", "--features", trained / "x.csv", "--labels", trained / "y.csv")
    assert run(*command, "--task", "nc", "--directed", "--epochs", 1, "--out", "r").returncode == 0
    other = ("--edges", trained / "my.csv", "--features", trained / "x.csv")
    own, same, both_ways = (
        json.loads(run("predict", "r", *flags, "--json").stdout) for flags in ((), other, (*other, "--undirected"))
    )
    assert [row["p(red)"] for row in own] == pytest.approx([row["p(red)"] for row in same], abs=1e-5)
    assert [row["p(red)"] for row in own] != pytest.approx([row["p(red)"] for row in both_ways], abs=1e-5)


def test_new_nodes(run, files, trained):
    new = ("--edges", "new.csv", "--features", "newx.csv")
    (files / "p.csv").write_text("n01,new1\nnew1,new2\n")
    links = run("predict", trained / "lp", "p.csv", *new, "--json")
    assert [row["target"] for row in json.loads(links.stdout)] == ["new1", "new2"]
    classes = json.loads(run("predict", trained / "nc", *new, "--json").stdout)
    assert [row["node"] for row in classes] == ["n01", "n02", "new1", "new2"]


@pytest.mark.parametrize("model", ["euc", "hyp-mixed"])
def test_shallow_models_know_their_own_nodes_only(run, files, model):
    assert run("train", "--edges", "my.csv", "--model", model, "--epochs", 2, "--out", "r").returncode == 0
    assert len(json.loads(run("predict", "r", "pairs.csv", "--json").stdout)) == 2
    (files / "newpairs.csv").write_text("n01,new1\n")
    refused = run("predict", "r", "newpairs.csv", "--edges", "new.csv")
    assert refused.returncode == 2
    assert f"{model} has learned a vector for each node of its graph and knows no others" in refused.stderr


def test_one_graph_of_ones_own(run, trained, tmp_path):
    (tmp_path / "star.csv").write_text("".join(f"hub,{k}\n" for k in range(5)))
    (tmp_path / "x.csv").write_text("id,a,b,c,d,e\nhub,0,0,0,0,1\n" + "".join(f"{k},0,1,0,0,0\n" for k in range(5)))
    result = run("predict", trained / "gc", "--edges", "star.csv", "--features", "x.csv", "--json")
    (row,) = json.loads(result.stdout)
    assert row["graph"] == "star"
    assert row["p(0)"] + row["p(1)"] == pytest.approx(1)


@pytest.mark.parametrize(("name", "read"), [("s.csv", pyarrow.csv.read_csv), ("s.parquet", pyarrow.parquet.read_table)])
def test_output_files(run, trained, tmp_path, name, read):
    command = ("predict", trained / "lp", trained / "pairs.csv", "--out", name)
    result = run(*command)
    *notes, last = result.stderr.splitlines()
    assert (result.stdout, last) == ("", f"2 rows: {name}")
    assert all(note.startswith("note: ") for note in notes)
    table = read(tmp_path / name).to_pydict()
    assert table["source"] == ["n01", "n03"]
    assert all(0 < probability < 1 for probability in table["probability"])
    before = (tmp_path / name).read_bytes()
    refused = run(*command)
    assert refused.returncode == 2
    assert f"{name} is there already; name another file, or use --force" in refused.stderr
    assert (tmp_path / name).read_bytes() == before
    assert run(*command, "--force").returncode == 0


@pytest.mark.parametrize(("name", "classes"), [("nc", ["blue", "green", "red"]), ("gc", ["0", "1"])])
@pytest.mark.parametrize(("file", "read"), [("c.csv", pyarrow.csv.read_csv), ("c.parquet", pyarrow.parquet.read_table)])
def test_output_files_have_the_probability_of_every_class(run, trained, shapes, tmp_path, name, classes, file, read):
    assert run("predict", trained / name, "--out", file).returncode == 0
    table = read(tmp_path / file)
    assert table.column_names[1:] == ["class", "probability", *(f"p({one})" for one in classes)]
    rows = json.loads(run("predict", trained / name, "--json").stdout)
    assert list(rows[0]) == table.column_names
    assert [row["probability"] for row in rows] == pytest.approx(table["probability"].to_pylist(), abs=1e-5)
    for row in table.to_pylist():
        chances = [row[f"p({one})"] for one in classes]
        assert sum(chances) == pytest.approx(1)
        assert row["probability"] == pytest.approx(max(chances))


def test_several_unknown_ids_are_named_with_similar_ones(run, trained, tmp_path):
    (tmp_path / "p.csv").write_text("source,target\nn01,N02\nm03,n 4\nxyz,n05\nuvw,n05\nm03,n06\n")
    result = run("predict", trained / "lp", "p.csv")
    assert result.returncode == 2
    assert (
        "p.csv, line 2: there are no nodes 'N02' (did you mean 'n02'?), 'm03' (did you mean 'n03'?), 'n 4' (did you "
        "mean 'n34'?) and 2 more" in result.stderr
    )


def test_a_screen_of_many_rows(run, trained):
    result = run("predict", trained / "nc")
    assert len(result.stdout.splitlines()) == 21
    assert result.stderr.splitlines()[-1] == "40 rows and 6 columns in total; use --out FILE or --json to get all"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lp"], "name the pairs"),
        (["lp", "none.csv"], "none.csv does not exist"),
        (["lp", "one.csv"], "one.csv has one column; a pair needs two nodes"),
        (["lp", "bad.csv"], "bad.csv, line 3: there is no node 'zz'; ids go from n00 to n39"),
        (
            ["lp", "head.csv"],
            "head.csv, line 1: there are no nodes 'who', 'whom'; ids go from n00 to n39; if the line is a header",
        ),
        (
            ["nc", "bad.csv", "--edges", "new.csv", "--features", "newx.csv"],
            "there is no node 'n03'; did you mean 'n02'?",
        ),
        (["gc", "bad.csv"], "there are no graphs 'source', 'n01', 'n03'; ids go from 0 to 39"),
        (["gc", "bad.csv", "--edges", "new.csv"], "leave the file out"),
        (["gc", "--edges", "new.csv", "--features", "newx.csv"], "the model was trained with 5"),
        (["nc", "--features", "newx.csv"], "--features: only with --edges"),
        (["nc", "--header"], "--header: only with --edges"),
        (["nc", "--edges", "new.csv"], "the features of new are log(1 + degree)"),
        (["nc", "--edges", "new.csv", "--features", "order.csv"], "the features of new are size, age, height"),
        (["nc", "--edges", "none.csv"], "none.csv does not exist"),
        (["nc", "--edges", "cora"], "that is a named dataset"),
        (["lp", "self.csv"], "self.csv, line 3: the pair is the node 'n03' with itself; leave the row out"),
        (["lp", "pairs.csv", "--out", "s.txt"], "tables are written as .csv or .parquet"),
        (["lp", "pairs.csv", "--out", "."], "is a folder"),
    ],
)
def test_a_mistake_is_a_message_and_exit_code_2(run, files, trained, shapes, arguments, message):
    (files / "one.csv").write_text("id\nn01\n")
    (files / "bad.csv").write_text("source,target\nn01,n02\nn03,zz\n")
    (files / "head.csv").write_text("who,whom\n")
    (files / "self.csv").write_text("source,target\nn01,n02\nn03,n03\n")
    (files / "order.csv").write_text("id,size,age,height\nn01,1,2,3\nn02,1,2,3\nnew1,1,2,3\nnew2,1,2,3\n")
    before = sorted(files.rglob("*"))
    result = run("predict", trained / arguments[0], *arguments[1:])
    assert result.returncode == 2, result.stdout
    assert message in result.stderr
    assert result.stdout == ""
    assert sorted(files.rglob("*")) == before


@pytest.fixture(scope="module")
def hostile(tmp_path_factory, at):
    """A folder with a run on a graph whose ids are escape sequences and formulas."""
    folder = tmp_path_factory.mktemp("hostile")
    lines = [f'"\x1b]0;title\x07{k}","={k // 2}+1"' for k in range(2, 40)]
    (folder / "e.csv").write_text("\n".join(["source,target", *lines]) + "\n")
    result = at(folder, "train", "--edges", "e.csv", "--epochs", 1, "--dim", 3, "--search", "none", "--out", "r")
    assert result.returncode == 0, result.stderr
    return folder


def test_control_characters_of_ids_are_printed_as_escapes(at, hostile):
    for arguments in (("--top", 3), ("--all",), ("--node", "\x1b]0;title\x077"), ("--node", "nobody")):
        result = at(hostile, "recommend", "r", *arguments)
        assert result.returncode == (2 if "nobody" in arguments else 0), result.stderr
        assert r"\x1b]0;title\x07" in result.stdout + result.stderr
        assert not set(result.stdout + result.stderr) & {"\x1b", "\x07"}


def test_texts_can_be_made_safe_for_spreadsheets(at, hostile):
    for name, safe in (("plain.csv", ()), ("safe.csv", ("--safe-csv",)), ("safe.parquet", ("--safe-csv",))):
        assert at(hostile, "recommend", "r", "--top", 5, "--out", name, *safe).returncode == 0
    plain, safe = (pandas.read_csv(hostile / name) for name in ("plain.csv", "safe.csv"))
    formulas = plain.target.str.startswith("=")
    assert formulas.any()
    assert safe.target[formulas].tolist() == ("'" + plain.target[formulas]).tolist()
    assert safe.target[~formulas].tolist() == plain.target[~formulas].tolist()
    assert pandas.read_parquet(hostile / "safe.parquet").target.tolist() == plain.target.tolist()
