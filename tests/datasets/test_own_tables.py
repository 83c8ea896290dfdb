"""What tables of edges say: ids in any column, headers in doubt, numbers that are too large."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from h2hgcn.datasets import DataError, load_graph

pytestmark = pytest.mark.filterwarnings("ignore::h2hgcn.datasets.DataWarning")


def write(path, text):
    path.write_text(text)
    return path


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
