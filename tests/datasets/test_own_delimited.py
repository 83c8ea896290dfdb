"""Delimited text in all its forms: lines, quotes, comments, delimiters."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2hgcn.datasets import DataError, load_graph
from h2hgcn.datasets.tables import Layout, _read_at_once, _read_by_records

pytestmark = pytest.mark.filterwarnings("ignore::h2hgcn.datasets.DataWarning")


def write(path, text):
    path.write_text(text, encoding="utf-8", newline="")
    return path


def edges_of(graph):
    ids = graph.node_ids.tolist()
    return {(ids[a], ids[b]) for a, b in graph.edge_index.T.tolist() if ids[a] < ids[b]}


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


@pytest.mark.parametrize(("text", "edges"), CLEAR.values(), ids=CLEAR.keys())
def test_forms_of_text(tmp_path, text, edges):
    assert edges_of(load_graph(write(tmp_path / "e.csv", text))) == edges


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
    "long field": ('a,"' + "b" * 200_000 + '"\n', "line 1: field larger than field limit"),
    "no rows": ("# c\nsource,target\n  \n", "has a header and no rows"),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD.keys())
def test_bad_text(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        load_graph(write(tmp_path / "e.csv", text))


FIELD = st.text(st.sampled_from('ab "#,\n1'), max_size=4)


def quoted(field):
    return '"' + field.replace('"', '""') + '"'


@given(rows=st.lists(st.tuples(FIELD, FIELD), min_size=1), header=st.booleans(), path=st.just("e.csv"))
def test_both_ways_of_reading_agree(rows, header, path):
    text = "".join(f"{quoted(a)},{quoted(b)}\n" for a, b in [("x", "y"), *rows])
    layout = Layout(",", ["x", "y"], header)
    table = _read_by_records(path, text, layout)
    expected = list(rows) if header else [("x", "y"), *rows]
    assert list(zip(*(column.to_pylist() for column in table.columns), strict=True)) == expected
    at_once = _read_at_once(text, layout)
    assert at_once is None or at_once.to_pydict() == table.to_pydict()


@given(text=st.text(st.sampled_from('ab ",\n'), max_size=12))
def test_both_ways_agree_on_any_quotes_that_close(text):
    text, layout = f"x,y\n{text}\na,b", Layout(",", ["x", "y"], False)
    at_once = _read_at_once(text, layout)
    if at_once is not None:
        assert at_once.to_pydict() == _read_by_records("e.csv", text, layout).to_pydict()


def test_columns_that_are_named_make_a_header(tmp_path):
    path = write(tmp_path / "edges.csv", "supplier,customer\nann,bob\nbob,eve\n")
    assert edges_of(load_graph(path, columns=("supplier", "customer"))) == {("ann", "bob"), ("bob", "eve")}
    with pytest.raises(DataError, match=r"has no column 'seller'; it has column 1, column 2"):
        load_graph(path, columns=("seller", "buyer"))
