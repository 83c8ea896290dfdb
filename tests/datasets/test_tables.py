"""Delimited text and Parquet in all their forms, by both readers."""

import gzip
import resource
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import compare, write_tables

from h2hgcn.datasets import DataError, convert_graph, load_graph

pytestmark = pytest.mark.filterwarnings("ignore::h2hgcn.datasets.DataWarning")


def write(path, text):
    path.write_text(text, encoding="utf-8", newline="")
    return path


def edges_of(graph):
    ids = graph.node_ids.tolist()
    return {(ids[a], ids[b]) for a, b in graph.edge_index.T.tolist() if ids[a] < ids[b]}


def converted(edges, **options):
    with tempfile.TemporaryDirectory() as folder:
        graph = load_graph(convert_graph(edges, Path(folder) / "graph", **options))
        graph.edge_index = graph.edge_index.clone()
        return graph


BOTH = pytest.mark.parametrize("read", [load_graph, converted], ids=["whole", "converted"])


@given(random=st.randoms(use_true_random=False))
def test_both_readers_agree_on_untidy_tables(random):
    """``python benchmarks/tables.py`` does the same for 10,000 tables."""
    with tempfile.TemporaryDirectory() as folder:
        compare(write_tables(random, Path(folder)), Path(folder), random)


CLEAR = {
    "mark before a comment": ("\ufeff# made by hand\n1,2\n3,4\n", {(1, 2), (3, 4)}),
    "lone carriage returns": ("source,target\r1,2\r3,4\n5,6\n", {(1, 2), (3, 4), (5, 6)}),
    "line end in a header": ('"the\nsource","the\ntarget"\n1,2\n3,4\n', {(1, 2), (3, 4)}),
    "line of blanks": ("1,2\n   \n3,4\n \t", {(1, 2), (3, 4)}),
    "quotes between blanks": ('"New  York" Boston\nBoston   Rome \n', {("Boston", "New  York"), ("Boston", "Rome")}),
    "blanks before quotes": ('  "a b" c\n c  d\n', {("a b", "c"), ("c", "d")}),
    "comment sign in quotes": ('a,"x\n# y"\n"x\n# y",b\n', {("a", "x\n# y"), ("b", "x\n# y")}),
    "quote in a comment": ('# 5" wide\n"a",b\n# and 6"\nb,"c"\n', {("a", "b"), ("b", "c")}),
    "inches": ('5" pipe,a\na,b\n', {('5" pipe', "a"), ("a", "b")}),
    "other line ends": ("a\x0bx,b\u2028y\nb\u2028y,c\n", {("a\x0bx", "b\u2028y"), ("b\u2028y", "c")}),
    "delimiter in the second line": ('"a\nb",c\n"d\ne",f\n', {("a\nb", "c"), ("d\ne", "f")}),
}


@BOTH
@pytest.mark.parametrize(("text", "edges"), CLEAR.values(), ids=CLEAR.keys())
def test_forms_of_text(tmp_path, read, text, edges):
    assert edges_of(read(write(tmp_path / "e.csv", text))) == edges


FOUND = {
    "comment above a header": ("# my graph\nsource,target\nann,bob\n", {("ann", "bob")}),
    "blanks behind commas": ("source,target\nann, bob\nbob, eve\n", {("ann", "bob"), ("bob", "eve")}),
    "comments of SNAP": ("# Nodes: 3 Edges: 2\n# From\tTo\n1\t2\n2\t3\n", {(1, 2), (2, 3)}),
    "bars in names": ("user|1,item|2\nuser|2,item|3\n", {("item|2", "user|1"), ("item|3", "user|2")}),
    "semicolons in quotes": (
        '"Smith; J","Doe; J"\n"Doe; J","Roe; A"\n',
        {("Doe; J", "Smith; J"), ("Doe; J", "Roe; A")},
    ),
    "blanks around quotes": ('a , "Doe, J" \n "Doe, J", b\n', {("Doe, J", "a"), ("Doe, J", "b")}),
    "commas between tabs": ("Smith, J\tDoe, J\nDoe, J\tRoe, A\n", {("Doe, J", "Smith, J"), ("Doe, J", "Roe, A")}),
    "commas between semicolons": ("Smith, J;Doe, J\nDoe, J;Roe, A\n", {("Doe, J", "Smith, J"), ("Doe, J", "Roe, A")}),
    "an empty third column": ('\n"a","b",""', {("a", "b")}),
    "a long field": ('a,"' + "b" * 200_000 + '"\n', {("a", "b" * 200_000)}),
}


@BOTH
@pytest.mark.parametrize(("text", "edges"), FOUND.values(), ids=FOUND.keys())
def test_delimiters_and_comments_are_found(tmp_path, read, text, edges):
    assert edges_of(read(write(tmp_path / "e.csv", text))) == edges


@BOTH
def test_delimiters_and_comments_are_given(tmp_path, read):
    path = write(tmp_path / "e.csv", "#python|#ml,x\njava|#python,y\n")
    assert edges_of(read(path, delimiter="pipe", comment="none")) == {("#ml,x", "#python"), ("#python,y", "java")}
    assert edges_of(read(path, delimiter="|")) == {("#python,y", "java")}
    assert edges_of(read(write(tmp_path / "k.tsv", "% sym\n1 2\n2 3\n"), comment="%")) == {(1, 2), (2, 3)}
    assert edges_of(read(write(tmp_path / "b.csv", "a,b  c\nc d\n"), delimiter="space")) == {("a,b", "c"), ("c", "d")}
    with pytest.raises(DataError, match="delimiter='::' is not one ASCII character; give one, or one of tab"):
        read(path, delimiter="::")
    with pytest.raises(DataError, match="has blanks or quotes"):
        read(path, comment="# ")


@BOTH
def test_lines_that_are_left_out_as_comments_are_counted(tmp_path, read):
    notes = read(write(tmp_path / "e.csv", "#python,#ml\n\njava,#python\n  # c\nc,java\n")).notes
    said = "2 lines begin with '#' in e.csv, so left out as comments; pass comment='none' (--comment none)"
    assert [note for note in notes if note.startswith(said)]


@BOTH
def test_features_and_labels_follow_the_same_rules(tmp_path, read):
    edges = write(tmp_path / "e.csv", "#a|b\nb|c\n")
    features = write(tmp_path / "x.csv", "id|v\n#a|1\nb|2\nc|3\n")
    labels = write(tmp_path / "y.csv", "id|label\n#a|x,y\nb|z\nc|z\n")
    graph = read(edges, features=features, labels=labels, delimiter="|", comment="none")
    assert (graph.x.tolist(), graph.label_names) == ([[1], [2], [3]], ["x,y", "z"])


@BOTH
def test_classes_are_numbered_alike(tmp_path, read):
    edges = write(tmp_path / "e.csv", "a,b\nb,c\nc,d\n")
    graph = read(edges, labels=write(tmp_path / "y.csv", "id,label\na,10\nb,9\nc,-1\nd, \n"))
    assert graph.label_names == [-1, 9, 10]
    assert graph.y.tolist() == [2, 1, 0, -1]


@BOTH
def test_splits_are_kept(tmp_path, read):
    edges = write(tmp_path / "e.csv", "a,b\nb,c\n")
    graph = read(edges, labels=write(tmp_path / "y.csv", "id,label,split\na,1,train\nb,0,val\nc,1,test\n"))
    assert [graph[f"{part}_mask"].tolist().index(True) for part in ("train", "val", "test")] == [0, 1, 2]


@BOTH
@pytest.mark.parametrize(
    ("sources", "targets", "ids"),
    [
        (pa.array([1, 2], pa.int64()), pa.array([2, 3], pa.int32()), [1, 2, 3]),
        (pa.array([1.0, 2.0]), pa.array([2, 3], pa.int8()), [1, 2, 3]),
        (pa.array(["x", "y"]).dictionary_encode(), pa.array(["y", "z"]), ["x", "y", "z"]),
        (pa.array([1, 2]), pa.array(["2", "x"]), ["1", "2", "x"]),
    ],
)
def test_types_of_columns_in_parquet(tmp_path, read, sources, targets, ids):
    pq.write_table(pa.table({"source": sources, "target": targets}), tmp_path / "e.parquet")
    assert read(tmp_path / "e.parquet").node_ids.tolist() == ids


@BOTH
def test_words_that_never_occur_again_are_a_header(tmp_path, read):
    random = np.random.RandomState(0)
    rows = "".join(f"p{a}x,p{b}x\n" for a, b in random.randint(0, 900, (5000, 2)))
    graph = read(write(tmp_path / "e.csv", f"package,depends\n{rows}"))
    assert "package" not in graph.node_ids
    assert "the first line is taken for a header; pass header=False (--no-header) if it is an edge" in graph.notes
    assert "p1234x" in read(write(tmp_path / "f.csv", f"p1234x,p1235x\n{rows}")).node_ids  # names have no digits
    lone = "".join(f"{letter}{letter},{letter}z\n" for letter in "abcdefghij")
    assert "package" in read(write(tmp_path / "g.csv", f"package,depends\n{lone}")).node_ids


def test_columns_that_differ_in_blanks(tmp_path):
    pq.write_table(pa.table({"id": ["a", "b"], "label": [1, 2], "label ": [2, 1]}), tmp_path / "y.parquet")
    with pytest.raises(DataError, match="names a column twice: id, label, label; rename one"):
        load_graph([("a", "b")], labels=tmp_path / "y.parquet")


@BOTH
def test_one_long_id_does_not_make_all_of_them_long(tmp_path, read):
    rows = "".join(f"n{k},n{k + 1}\n" for k in range(8000))
    path = write(tmp_path / "e.csv", f"{rows}n1,{'x' * 12_000}\n")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DataError, match=r"line 8001: the id 'x{20}'... has 12,000 letters, .* shorten it"):
        read(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB


def test_commas_between_semicolons_are_decimal(tmp_path):
    with pytest.raises(DataError, match="line 1: column 3 holds '0,5', which is not a number"):
        load_graph(write(tmp_path / "e.csv", "1;2;0,5\n2;3;1,5\n"))


def test_suffixes_in_upper_case(tmp_path):
    path = tmp_path / "E.CSV.GZ"
    path.write_bytes(gzip.compress(b"1,2\n"))
    assert edges_of(load_graph(path)) == {(1, 2)}


@pytest.mark.parametrize("quote", ["", '"'])
def test_long_lines(tmp_path, quote):
    names = ",".join(f"{quote}gene {k}; expressed{quote}" for k in range(10_000))
    row = ",".join(f"{quote}{k}{quote}" for k in range(10_000))
    graph = load_graph(write(tmp_path / "e.csv", f"{names}\n{row}\n"))
    assert edges_of(graph) == {(0, 1)}


BAD = {
    "ragged below quoted line ends": ('"a\nb","c\nd"\n\n# c\ne,f,g\n', "line 6: 3 fields where the first line has 2"),
    "no id below quoted line ends": ('"a\nb",c\nd,\n', "line 3: no node id"),
    "open quote": ('a,b\nc,"d e\nf,g h\n', "line 2: a quote is opened and not closed"),
    "open quote in a long file": ('a,b\nc,"d\n' + "e,f\n" * 50_000, "line 2: a quote is opened and not closed"),
    "open quote in the first line": ('x,"a b\ny,c d\n', "line 1: a quote is opened and not closed"),
    "open quote below an inch": ('5","b c\nd,e f\n', "line 1: a quote is opened and not closed"),
    "no rows": ("# c\nsource,target\n  \n", "has a header and no rows"),
}


@BOTH
@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD.keys())
def test_bad_text(tmp_path, read, text, message):
    with pytest.raises(DataError, match=message):
        read(write(tmp_path / "e.csv", text))


def test_columns_that_are_named_make_a_header(tmp_path):
    path = write(tmp_path / "edges.csv", "supplier,customer\nann,bob\nbob,eve\n")
    assert edges_of(load_graph(path, columns=("supplier", "customer"))) == {("ann", "bob"), ("bob", "eve")}
    with pytest.raises(DataError, match=r"has no column 'seller'; it has column 1, column 2"):
        load_graph(path, columns=("seller", "buyer"))


@pytest.mark.parametrize(("first", "second"), [("007", "7"), ("TRUE", "false"), ("1.0", "1"), ("NA", "x")])
def test_ids_of_any_column_come_back_as_they_were_written(tmp_path, first, second):
    path = write(tmp_path / "e.csv", f"k,l,source,target\n1,2,{first},{second}\n")
    assert load_graph(path).node_ids.tolist() == sorted([first, second])


@pytest.mark.parametrize("text", ["u,v\nv,w\n", "from,b,3\na,from,4\n", "x,y,z\na,x,1\n"])
def test_a_header_whose_words_are_nodes_is_in_doubt(tmp_path, text):
    path = write(tmp_path / "e.csv", text)
    with pytest.raises(DataError, match=r"looks like a header, but its '\w+' is also a node further down; .*--header"):
        load_graph(path, weights=False)
    assert load_graph(path, header=False, weights=False).edge_index.shape == (2, 4)
    assert load_graph(path, header=True, weights=False).edge_index.shape == (2, 2)


def test_named_columns_leave_no_doubt(tmp_path):
    path = write(tmp_path / "e.csv", "u,v\nv,w\n")
    assert load_graph(path, columns=("u", "v")).node_ids.tolist() == ["v", "w"]


def test_letters_that_are_taken_for_a_header_are_said(tmp_path):
    notes = load_graph(write(tmp_path / "e.csv", "u,v\na,b\n")).notes
    assert "edges go from column 'u' to column 'v'" in notes


@pytest.mark.parametrize("weight", ["1e39", "1e-50"])
def test_weights_beyond_single_precision(tmp_path, weight):
    path = write(tmp_path / "e.csv", f"a,b,1\nb,c,{weight}\n")
    with pytest.raises(DataError, match=r"line 2: the weight .* is beyond what single precision holds"):
        load_graph(path)


NUMBERS = {
    "as Python writes them": ("+1 ,1_000, .5", [1, 1000, 0.5]),
    "truth values": ("TRUE,false,1", [1, 0, 1]),
    "beyond whole floats": ("9007199254740993,1,2", [2**53, 1, 2]),
}


@pytest.mark.parametrize(("text", "expected"), NUMBERS.values(), ids=NUMBERS.keys())
def test_numbers_in_text(tmp_path, text, expected):
    rows = "".join(f"{a},{b},{value}\n" for a, b, value in zip("abc", "bcd", text.split(","), strict=True))
    graph = load_graph(write(tmp_path / "e.csv", f"source,target,weight\n{rows}"))
    assert graph.edge_weight[::2].tolist() == expected


PARQUET = {
    "too large for a float": ([9007199254740993.0, 1.0], "row 1: column 'a' holds a floating-point number too large"),
    "much too large": ([2.0, 1e22], "row 2: column 'a' holds a floating-point number too large"),
    "infinite": ([2.0, float("inf")], "row 2: column 'a' holds a floating-point number too large"),
    "bytes": ([b"\xff", b"a"], "column 'a' is of type binary; node ids are integers or texts"),
}


@pytest.mark.parametrize(("ids", "message"), PARQUET.values(), ids=PARQUET.keys())
def test_ids_in_parquet_that_are_none(tmp_path, ids, message):
    pq.write_table(pa.table({"a": ids, "b": [2, 3]}), tmp_path / "e.parquet")
    with pytest.raises(DataError, match=message):
        load_graph(tmp_path / "e.parquet")


def test_odd_digits_are_no_column_number(tmp_path):
    with pytest.raises(DataError, match="has no column '²'"):
        load_graph(write(tmp_path / "e.csv", "1,2\n"), columns=("²", "1"))
