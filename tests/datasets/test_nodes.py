"""Features and labels of a person's nodes, in files and in memory."""

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import torch

from h2hgcn.datasets import DataError, load_graph

pytestmark = pytest.mark.filterwarnings("ignore::h2hgcn.datasets.DataWarning")


@pytest.fixture
def edges(tmp_path):
    return write(tmp_path / "e.csv", "a,b\nb,c\n")


def write(path, text):
    path.write_text(text)
    return path


def test_the_id_column_is_anywhere(tmp_path, edges):
    graph = load_graph(edges, write(tmp_path / "f.csv", "height,id\n3,c\n1,a\n2,b\n"))
    assert graph.x.tolist() == [[1], [2], [3]]


def test_numbers_of_any_type_in_parquet(tmp_path, edges):
    columns = {"id": ["a", "b", "c"], "texts": ["1", " 2", "+3"], "large": [2**53 + 1, 0, 0]}
    pq.write_table(pa.table(columns | {"decimal": pa.array([1, 2, 3], pa.decimal128(5, 1))}), tmp_path / "f.parquet")
    assert load_graph(edges, tmp_path / "f.parquet").x.tolist() == [[1, 2**53, 1], [2, 0, 2], [3, 0, 3]]


@pytest.mark.parametrize("label", ["01", "TRUE", "1.0"])
def test_labels_of_any_column_stay_as_they_were_written(tmp_path, edges, label):
    graph = load_graph(edges, labels=write(tmp_path / "l.csv", f"x,id,label\n1,a,{label}\n2,b,1\n3,c,1\n"))
    assert graph.label_names == sorted([label, "1"])


LABELS = {
    "odd digits": (["--5", "²", "-0"], ["--5", "-0", "²"]),
    "many digits": (["9" * 5000, "1", "1"], ["1", "9" * 5000]),
    "signs": (["-1", "+1", "-1"], ["+1", "-1"]),
    "minus one": (["-1", "1", "-1"], [-1, 1]),
}


@pytest.mark.parametrize(("labels", "names"), LABELS.values(), ids=LABELS.keys())
def test_labels_in_files(tmp_path, edges, labels, names):
    rows = "".join(f"{node},{label}\n" for node, label in zip("abc", labels, strict=True))
    graph = load_graph(edges, labels=write(tmp_path / "l.csv", f"id,label\n{rows}"))
    assert graph.label_names == names
    assert [str(names[k]) for k in graph.y] == labels
    assert any("the label -1 in" in note for note in graph.notes) == ("-1" in labels)


def test_words_for_no_label_are_noted(tmp_path, edges):
    labels = write(tmp_path / "l.csv", "id,label\na,NA\nb,red\nc,NA\n")
    graph = load_graph(edges, labels=labels)
    assert graph.label_names == ["NA", "red"]
    (note,) = [note for note in graph.notes if "NA" in note]
    assert note == f"'NA', 2 of the labels in {labels}, is taken for a class; leave a gap where it means none"


def test_minus_one_is_no_label_in_arrays():
    pairs = [(0, 1), (1, 2)]
    for labels in ([1, -1, 0], np.array([1.0, -1, 0]), torch.tensor([1, -1, 0]), np.array([1, -1, 0], dtype=object)):
        assert load_graph(pairs, labels=labels).y.tolist() == [1, -1, 0]
    assert load_graph(pairs, labels={0: 1, 1: -1, 2: None}).y.tolist() == [1, 0, -1]


def test_nodes_tell_rows_from_headers(tmp_path, edges):
    graph = load_graph(edges, labels=write(tmp_path / "l.csv", "a,y\nb,n\nc,n\n"))
    assert graph.y.tolist() == [1, 0, 0]
    assert any("l.csv is taken for a row, not for a header" in note for note in graph.notes)
    graph = load_graph(edges, labels=write(tmp_path / "n.csv", "a,high\nb,1\nc,2\n"))
    assert graph.label_names == ["1", "2", "high"]
    graph = load_graph(edges, labels=write(tmp_path / "h.csv", "who,y\nb,n\nc,n\n"))
    assert any("h.csv is taken for a header: who, y" in note for note in graph.notes)
    named = write(tmp_path / "id.csv", "id,b\n")
    graph = load_graph(named, labels=write(tmp_path / "i.csv", "id,label\nid,x\nb,z\n"))
    assert graph.label_names == ["x", "z"]


LARGE = {
    "array": np.array([[1.0], [1e39]]),
    "matrix": sp.csr_array(np.array([[1.0], [1e39]])),
    "tensor": torch.tensor([[1.0], [1e39]], dtype=torch.float64),
    "mapping": {0: 1.0, 1: 1e39},
    "file": "id,v\n0,1\n1,1e39\n",
}


@pytest.mark.parametrize("features", LARGE.values(), ids=LARGE.keys())
def test_features_beyond_single_precision(tmp_path, features):
    if isinstance(features, str):
        features = write(tmp_path / "f.csv", features)
    with pytest.raises(DataError, match=r"(row 1|of 1|line 3): NaN or infinity, or a number beyond what single"):
        load_graph([(0, 1)], features)


TENSORS = {
    "sparse": torch.eye(2).to_sparse(),
    "with a gradient": torch.eye(2, requires_grad=True),
    "bfloat16": torch.eye(2, dtype=torch.bfloat16),
    "all of it": torch.eye(2, dtype=torch.bfloat16).to_sparse().requires_grad_(),
    "integers": torch.eye(2, dtype=torch.int32),
}


@pytest.mark.parametrize("tensor", TENSORS.values(), ids=TENSORS.keys())
def test_tensors_as_features(tensor):
    graph = load_graph([(0, 1)], tensor)
    assert graph.x.is_sparse == tensor.is_sparse
    assert graph.x.dtype == torch.float32
    assert not graph.x.requires_grad
    again = load_graph(graph)
    for x in (graph.x, again.x):
        torch.testing.assert_close(x.to_dense(), torch.eye(2))
    rows = dict(enumerate(tensor.detach().to_dense()))
    torch.testing.assert_close(load_graph([(0, 1)], rows).x, torch.eye(2))


def test_keys_name_nodes_as_the_graph_does():
    grid = nx.grid_2d_graph(2, 1)
    graph = load_graph(grid, features={(1, 0): 1.0, (0, 0): 0.0}, labels={(1, 0): "x", (0, 0): "y"})
    assert graph.node_ids.tolist() == ["(0, 0)", "(1, 0)"]
    assert graph.x.tolist() == [[0], [1]]
    assert graph.y.tolist() == [1, 0]


BAD = {
    "tuples as keys": ({"features": {(0, 0): 1, (0, 1): 2}}, r"the id '\(0, 0\)' is not an integer"),
    "no keys": ({"features": {}}, "the features are empty"),
    "large keys": ({"features": {2**70: 1, 1: 2}}, "is not an integer, but those of the edges are"),
    "ragged features": ({"features": [[1], [1, 2]]}, "the features are no rows of equal length"),
    "complex features": ({"features": sp.csr_array(np.array([[1j], [1]]))}, "must be real numbers"),
    "no labels": ({"labels": {}}, "no node has a label"),
    "ragged labels": ({"labels": [[0], [1, 2]]}, "the labels are no rows of equal length"),
    "lists as labels": ({"labels": {0: [1], 1: [2]}}, r"the label \[1\] is neither an integer nor a text"),
}


@pytest.mark.parametrize(("given", "message"), BAD.values(), ids=BAD.keys())
def test_what_is_refused(given, message):
    with pytest.raises(DataError, match=message):
        load_graph([(0, 1)], **given)


def test_many_columns_take_no_longer_than_their_number(tmp_path, edges):
    names = ",".join(f"feature {k}" for k in range(10_000))
    rows = "".join(node + ",0.5" * 10_000 + "\n" for node in "abc")
    # rebuilding the names for each column would take longer than a test may
    assert load_graph(edges, write(tmp_path / "f.csv", f"id,{names}\n{rows}")).x.shape == (3, 10_000)


def test_sparse_features_as_a_long_table(tmp_path, edges):
    text = "id,feature,value\na,red,1\nb,blue,2.5\nb,red,-1\n"
    dense = torch.tensor([[0, 1], [2.5, -1], [0, 0]])
    table = {"Value": [1, 2.5, -1], "node": ["a", "b", "b"], "Feature": ["red", "blue", "red"]}
    pq.write_table(pa.table(table), tmp_path / "f.parquet")
    for features in (write(tmp_path / "f.csv", text), tmp_path / "f.parquet", pa.table(table)):
        graph = load_graph(edges, features)
        assert graph.x.is_sparse
        assert torch.equal(graph.x.to_dense(), dense)
        assert graph.feature_names == ["blue", "red"]
    assert (
        f"1 of 3 nodes have no row in {tmp_path / 'f.csv'}; their features are 0"
        in load_graph(edges, tmp_path / "f.csv").notes
    )


def test_features_by_number_in_a_long_table(tmp_path):
    edges = write(tmp_path / "e.csv", "0,1\n1,2\n")
    graph = load_graph(edges, write(tmp_path / "f.csv", "id,feature,value\n2,10,1\n0,9,3\n1,10,4\n"))
    assert graph.feature_names == ["9", "10"]
    assert graph.x.to_dense().tolist() == [[3, 0], [0, 4], [0, 1]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,red,1\nb,red,2\na,red,3\n", "f.csv, line 4: the feature 'red' of 'a' comes a second time; keep one row"),
        ("a,red,1\nb,,2\n", "f.csv, line 3: no feature; give every row one"),
        ("a,red,1\n,red,2\n", "f.csv, line 3: no node id"),
        ("a,red,1\nb,red,much\n", "f.csv, line 3: column 'value' holds 'much', which is not a number"),
        ("a,red,1\nb,red,\n", "f.csv, line 3: no finite number in column 'value'"),
        ("a,red,1\nb,red,1\nB1,red,1\nB1,blue,1\n", "f.csv, line 4: 'B1' has features, but no edge; did you mean 'b'"),
    ],
)
def test_long_tables_that_cannot_be_read(tmp_path, edges, text, message):
    with pytest.raises(DataError, match=message):
        load_graph(edges, write(tmp_path / "f.csv", f"id,feature,value\n{text}"))


def test_a_split_beside_labels(tmp_path, edges):
    text = "id{0}label{0}split\nc{0}x{0}test\na{0}y{0} Train\nb{0}x{0}validation\n"
    table = {"split": ["test", None, "valid"], "label": ["x", "y", "x"], "id": ["c", "a", "b"]}
    expected = {"train_mask": [True, False, False], "val_mask": [False, True, False], "test_mask": [False, False, True]}
    sources = [write(tmp_path / f"y{k}.csv", text.format(mark)) for k, mark in enumerate((",", "\t", ";"))]
    for labels in sources:
        graph = load_graph(edges, labels=labels)
        assert {name: graph[name].tolist() for name in expected} == expected
        assert graph.y.tolist() == [1, 0, 0]
    unused = load_graph(edges, labels=pa.table(table))
    assert {name: unused[name].tolist() for name in expected} == {**expected, "train_mask": [False] * 3}
    assert "taken for the split of nodes: 0 train, 1 val, 1 test" in unused.notes[-1]


def test_a_column_of_labels_may_be_called_split(tmp_path, edges):
    graph = load_graph(edges, labels=write(tmp_path / "y.csv", "id,split\na,x\nb,y\nc,x\n"))
    assert graph.y.tolist() == [0, 1, 0]
    assert "train_mask" not in graph


def test_similar_ids_of_nodes_without_edges(tmp_path):
    edges = write(tmp_path / "e.csv", "acme-corp,bolt\nbolt,cog\n")
    with pytest.raises(
        DataError, match=r"'Acme' has a label, but no edge; did you mean 'acme-corp'\? Else pass unlinked"
    ):
        load_graph(edges, labels={"Acme": 1, "bolt": 0})
