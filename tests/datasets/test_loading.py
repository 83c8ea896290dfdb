import gzip
import itertools

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.io
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from h2hgcn.datasets import DataError, DataWarning, load_graph, task_features

pytestmark = pytest.mark.filterwarnings("ignore::h2hgcn.datasets.DataWarning")


def write(path, text):
    path.write_text(text)
    return path


def edges_of(graph):
    """The undirected edges, or the directed ones, by id."""
    ids = graph.node_ids.tolist()
    pairs = [(ids[a], ids[b]) for a, b in graph.edge_index.T.tolist()]
    return {pair for pair in pairs if graph.directed or pair[0] < pair[1]}


TEXTS = {
    "no header": "1,2\n2,3\n",
    "header": "source,target\n1,2\n2,3\n",
    "other header": "mother,daughter\n1,2\n2,3\n",
    "swapped header": "target,source\n2,1\n3,2\n",
    "tabs": "1\t2\n2\t3\n",
    "semicolons": "1;2\n2;3\n",
    "blanks": "  1   2\n2 3  \n",
    "comments": "# a\n1,2\n# b\n\n2,3\n#c",
    "comment and header": "# made by hand\nfrom,to\n1,2\n2,3\n",
    "windows": "1,2\r\n2,3\r\n",
    "spaces after commas": "1, 2\n2, 3\n",
    "byte order mark": "\ufeffsource,target\n1,2\n2,3\n",
    "quotes": '"1","2"\n"2","3"\n',
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_delimited_text(tmp_path, text):
    path = tmp_path / "edges.csv"
    path.write_text(text, encoding="utf-8", newline="")
    graph = load_graph(path)
    assert edges_of(graph) == {(1, 2), (2, 3)}
    assert graph.node_ids.tolist() == [1, 2, 3]
    assert graph.edge_index.shape == (2, 4)
    assert graph.name == "edges"


def test_quotes_hold_delimiters_and_line_ends(tmp_path):
    graph = load_graph(write(tmp_path / "q.csv", '"a,b","c\nd"\n"c\nd",e\n'))
    assert edges_of(graph) == {("a,b", "c\nd"), ("c\nd", "e")}


def test_odd_but_clear_files(tmp_path):
    assert load_graph(write(tmp_path / "t.csv", "1,2,\n2,3,\n")).node_ids.tolist() == [1, 2, 3]
    assert load_graph(write(tmp_path / "x.csv", "1e5,2\n3,4\n")).node_ids.tolist() == ["1e5", "2", "3", "4"]
    wide = write(tmp_path / "w.csv", ",".join(map(str, range(300))) + "\n" + ",".join(map(str, range(300))) + "\n")
    assert len(load_graph(wide).notes[0]) < 200


PARQUET = {
    "whole floats": ({"a": [1.0, 2.0], "b": [2.0, 3.0]}, [1, 2, 3]),
    "mixed": ({"a": [1, 2], "b": ["x", "2"]}, ["1", "2", "x"]),
    "large": ({"a": pa.array([2**63, 2], pa.uint64()), "b": [2, 3]}, ["2", "3", str(2**63)]),
    "fractions": ({"a": [1.0, 2.5], "b": [2.0, 3.0]}, "row 2: column 'a' holds a number that is not whole"),
    "lists": ({"a": [[1], [2]], "b": [2, 3]}, "node ids are integers or texts"),
    "gaps": ({"a": [1, None], "b": [2, 3]}, "row 2: no node id"),
}


@pytest.mark.parametrize(("columns", "expected"), PARQUET.values(), ids=PARQUET.keys())
def test_types_of_ids_in_parquet(tmp_path, columns, expected):
    pq.write_table(pa.table(columns), tmp_path / "e.parquet")
    if isinstance(expected, list):
        assert load_graph(tmp_path / "e.parquet").node_ids.tolist() == expected
        return
    with pytest.raises(DataError, match=expected):
        load_graph(tmp_path / "e.parquet")


def test_gzip(tmp_path):
    path = tmp_path / "edges.tsv.gz"
    path.write_bytes(gzip.compress(b"a\tb\nb\tc\n"))
    assert edges_of(load_graph(path)) == {("a", "b"), ("b", "c")}


def test_ids_come_back_as_they_were_written(tmp_path):
    graph = load_graph(write(tmp_path / "e.csv", "007,7\n7,+7\nZürich,007\n"))
    assert graph.node_ids.tolist() == sorted(["007", "7", "+7", "Zürich"])
    assert load_graph(write(tmp_path / "n.csv", "-5,7\n7,12345678901\n")).node_ids.tolist() == [-5, 7, 12345678901]


def test_a_name_above_names_is_no_header_unless_told(tmp_path):
    path = write(tmp_path / "e.csv", "ann,bob\nbob,eve\n")
    assert len(edges_of(load_graph(path))) == 2
    assert edges_of(load_graph(path, header=True)) == {("bob", "eve")}


def test_a_number_that_comes_twice_is_no_header(tmp_path):
    edges = write(tmp_path / "e.csv", "source,target\nroot,1\n1,2\n2,3\n")
    graph = load_graph(edges, features=write(tmp_path / "x.csv", "root,1,1\n1,0,5\n2,1,7\n3,4,4\n"))
    assert graph.x.tolist() == [[0, 5], [1, 7], [4, 4], [1, 1]]


def test_parquet(tmp_path):
    table = pa.table({"kind": ["x", "y"], "src": pa.array([1, 2], pa.int32()), "dst": [2, 3], "weight": [0.5, 2.0]})
    pq.write_table(table, tmp_path / "e.parquet")
    graph = load_graph(tmp_path / "e.parquet")
    assert edges_of(graph) == {(1, 2), (2, 3)}
    assert graph.edge_weight.tolist() == [0.5, 0.5, 2.0, 2.0]
    names = pa.table({"a": pa.array(["x", "y"]).dictionary_encode(), "b": ["y", "z"]})
    pq.write_table(names, tmp_path / "n.parquet")
    assert edges_of(load_graph(tmp_path / "n.parquet")) == {("x", "y"), ("y", "z")}


def networkx_sample(directed=False):
    graph = nx.DiGraph() if directed else nx.Graph()
    graph.add_node("a", size=1.5, kind="leaf")
    graph.add_node("b", size=2, kind="root")
    graph.add_node("lonely", size=0, kind="leaf")
    graph.add_edge("b", "a", weight=3.0)
    return graph


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("suffix", ["graphml", "gexf", None])
def test_networkx_graphs_and_their_files(tmp_path, suffix, directed):
    sample = networkx_sample(directed)
    if suffix is None:
        source = sample
    else:
        source = tmp_path / f"g.{suffix}"
        getattr(nx, f"write_{suffix}")(sample, source)
    graph = load_graph(source, features=["size"], labels="kind")
    assert graph.directed == directed
    assert edges_of(graph) == ({("b", "a")} if directed else {("a", "b")})
    assert graph.node_ids.tolist() == ["a", "b", "lonely"]
    assert graph.x.tolist() == [[1.5], [2.0], [0.0]]
    assert graph.label_names == ["leaf", "root"]
    assert graph.y.tolist() == [0, 1, 0]
    assert set(graph.edge_weight.tolist()) == {3.0}


def test_integer_ids_survive_graphml(tmp_path):
    nx.write_graphml(nx.path_graph(12), tmp_path / "g.graphml")
    assert load_graph(tmp_path / "g.graphml").node_ids.tolist() == list(range(12))


def test_matrices(tmp_path):
    symmetric = sp.coo_array(([1.0, 1.0, 2.0, 2.0], ([0, 1, 1, 2], [1, 0, 2, 1])), shape=(4, 4))
    scipy.io.mmwrite(tmp_path / "m.mtx", symmetric)
    sp.save_npz(tmp_path / "m.npz", symmetric.tocsr())
    for source in (symmetric, tmp_path / "m.mtx", tmp_path / "m.npz"):
        graph = load_graph(source)
        assert not graph.directed
        assert graph.num_nodes == 4
        assert edges_of(graph) == {(0, 1), (1, 2)}
        assert graph.edge_weight.tolist() == [1, 1, 2, 2]
        assert "edge_weight" not in load_graph(source, weights=False)
    zeros = sp.coo_array(([0.0, 1.0, 1.0], ([0, 1, 2], [1, 2, 1])), shape=(3, 3))
    for kept in (zeros, zeros.tocsr()):
        before = kept.nnz
        assert edges_of(load_graph(kept)) == {(1, 2)}
        assert kept.nnz == before
    arrow = sp.csr_array(np.array([[0, 1], [0, 0]]))
    assert edges_of(load_graph(arrow)) == {(0, 1)}
    assert load_graph(arrow).directed


def test_arrays_in_an_npz(tmp_path):
    path = tmp_path / "g.npz"
    np.savez(path, edges=[[0, 1], [1, 2]], x=np.eye(4), y=[0, 1, 1, -1], node_ids=["a", "b", "c", "d"])
    graph = load_graph(path)
    assert edges_of(graph) == {("a", "b"), ("b", "c")}
    assert graph.x.shape == (4, 4)
    assert graph.y.tolist() == [0, 1, 1, -1]


def test_pyg_data_passes_through():
    data = Data(x=torch.randn(4, 2), y=torch.tensor([1, 0, 1, 0]), edge_index=torch.tensor([[0, 1, 2], [1, 0, 1]]))
    graph = load_graph(data)
    assert graph.directed
    torch.testing.assert_close(graph.x, data.x)
    torch.testing.assert_close(graph.y, data.y)
    assert edges_of(graph) == {(0, 1), (1, 0), (2, 1)}
    assert edges_of(load_graph(data, directed=False)) == {(0, 1), (1, 2)}


@given(pairs=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1), directed=st.booleans())
def test_edges_are_counted_once(pairs, directed):
    graph = load_graph(pairs, directed=directed)
    expected = {pair if directed else tuple(sorted(pair)) for pair in pairs if pair[0] != pair[1]}
    assert edges_of(graph) == expected
    assert graph.edge_index.shape[1] == len(expected) * (1 if directed else 2)
    assert graph.num_nodes == len(set(itertools.chain(*pairs)))


def test_what_was_left_out_or_made_up_is_said(tmp_path):
    path = write(tmp_path / "e.csv", "source,target,weight\na,a,1\na,b,2\nb,a,3\nb,c,4\n")
    with pytest.warns(DataWarning) as said:
        graph = load_graph(path, labels={"a": "x", "b": "y"})
    notes = "\n".join(graph.notes)
    assert "1 self-loop was left out" in notes
    assert "1 repeated edge was left out" in notes
    assert "1 had another weight than the first" in notes
    assert "column 'weight' is taken for edge weights" in notes
    assert "structural ones were made" in notes
    assert "1 of 3 nodes have no label" in notes
    assert len(said) == len(graph.notes) == 6
    assert graph.edge_weight.tolist() == [2, 2, 4, 4]
    assert graph.y.tolist() == [0, 1, -1]
    assert graph.x.shape == (3, len(graph.feature_names))


def test_weights_and_triples_in_memory():
    pairs = [("a", "b"), ("b", "c")]
    triples = [(a, b, w) for (a, b), w in zip(pairs, [0.5, 2], strict=True)]
    for graph in (load_graph(pairs, weights=[0.5, 2]), load_graph(triples), load_graph([*triples, ("c", "d", 1)])):
        assert graph.edge_weight[:4].tolist() == [0.5, 0.5, 2, 2]
    assert "edge_weight" not in load_graph(triples, weights=False)
    assert load_graph([(0, 1, 5), (1, 2, 7)]).node_ids.tolist() == [0, 1, 2]
    with pytest.raises(DataError, match="3 weights for 2 edges"):
        load_graph(pairs, weights=[1, 2, 3])
    with pytest.raises(DataError, match="int, str; use integers alone, or texts alone"):
        load_graph([("a", 1), (1, "1")])
    with pytest.raises(DataError, match="all be pairs"):
        load_graph([("a", "b"), ("a", "b", 1)])


def test_more_that_is_said(tmp_path):
    words = write(tmp_path / "w.csv", "person,friend\nann,bob\nbob,eve\n")
    assert "the first line is taken for an edge" in load_graph(words).notes[0]
    scores = write(tmp_path / "s.txt", "protein1 protein2 combined_score\na b 3\nb c 4\n")
    assert "not used: column 'combined_score'" in " ".join(load_graph(scores, header=True).notes)
    assert "200 of 203 nodes have no edge" in " ".join(load_graph([(0, 1), (1, 2)], np.zeros((203, 2))).notes)
    matrix = sp.csr_array(np.array([[0, 2], [2, 0]]))
    assert "the values of the matrix are taken for edge weights" in load_graph(matrix).notes
    edges = write(tmp_path / "e.csv", "a,b\n")
    features = write(tmp_path / "f.csv", "id,v\na,1\nb,2\nz,3\n")
    assert "1 nodes with features but no edge were dropped" in load_graph(edges, features, unlinked="drop").notes


def test_numbers_of_two_kinds_of_nodes_are_noted(tmp_path):
    bought = write(tmp_path / "b.csv", "customer,product\n1,2\n2,3\n")
    assert load_graph(bought).notes[0].endswith("'customer' to column 'product'; a number that is in both is one node")
    linked = write(tmp_path / "l.csv", "child,parent\n1,2\n2,3\n")
    assert load_graph(linked).notes[0] == "edges go from column 'parent' to column 'child'"


def test_texts_that_look_alike_are_noted(tmp_path):
    edges = write(tmp_path / "e.csv", "source,target\nAcme Corp,Bolt  Ltd\nacme corp,Cog\nBolt Ltd,Cog\nCog,Dyno\n")
    labels = write(tmp_path / "l.csv", "id,label\nCog,Red\nDyno,red\nacme corp,blue\n")
    notes = [note for note in load_graph(edges, labels=labels).notes if "differ" in note]
    assert notes == [
        "'Acme Corp' and 'acme corp' differ in case or blanks only, but are different nodes, and 1 more do",
        "'Red' and 'red' differ in case or blanks only, but are different classes",
    ]


def test_decimal_commas(tmp_path):
    edges = write(tmp_path / "e.csv", "source;target;weight\na;b;1,5\n")
    with pytest.raises(DataError, match="'1,5', which is not a number; write numbers without commas"):
        load_graph(edges)


def test_the_name_of_the_weights_makes_a_header(tmp_path):
    edges = write(tmp_path / "e.csv", "supplier,customer,volume\nann,bob,3\nbob,eve,\n")
    with pytest.raises(DataError, match="line 3: no finite number in column 'volume'"):
        load_graph(edges, weights="volume")


def test_a_header_of_any_words_above_known_ids(tmp_path):
    edges = write(tmp_path / "e.csv", "ann,bob\nbob,eve\n")
    labels = write(tmp_path / "l.csv", "company,risk\nann,high\nbob,low\neve,low\n")
    graph = load_graph(edges, labels=labels)
    assert graph.label_names == ["high", "low"]
    assert graph.y.tolist() == [0, 1, 1]
    numbered = write(tmp_path / "n.csv", "1,2\n")
    codes = write(tmp_path / "c.csv", "who,what\n1,x\n2,y\n")
    assert load_graph(numbered, labels=codes).y.tolist() == [0, 1]


def test_made_up_features_do_not_tell_of_hidden_edges():
    graph = load_graph([(0, 1), (1, 2), (2, 3)])
    fewer = torch.tensor([[0, 1], [1, 0]])
    torch.testing.assert_close(task_features(graph, "lp", fewer)[3], task_features(graph, "lp", fewer)[2])
    assert not torch.equal(task_features(graph, "lp", fewer), graph.x)
    torch.testing.assert_close(task_features(graph, "nc"), graph.x)
    with pytest.raises(DataError, match="task='foo' is not known"):
        task_features(graph, "foo")


def test_the_hub_of_a_directed_star_has_its_degree():
    graph = load_graph([(0, 1), (0, 2), (0, 3)], directed=True)
    out_degree = graph.feature_names.index("log(1 + out-degree)")
    assert graph.x[0, out_degree] == pytest.approx(np.log(4))


def test_a_list_of_both_directions_is_not_a_list_of_repetitions():
    graph = load_graph([(0, 1), (1, 0), (1, 2), (2, 1)])
    assert graph.notes[0] == "every edge is listed in both directions: 2 undirected edges"


def test_features_and_labels_by_id_in_any_order(tmp_path):
    edges = write(tmp_path / "e.csv", "b,c\na,b\n")
    features = write(tmp_path / "f.csv", "id,height,old\nc,3,true\na,1,false\nb,2,true\n")
    labels = write(tmp_path / "l.tsv", "node\tlabel\nb\tright\nc\tleft\na\tleft\n")
    graph = load_graph(edges, features, labels)
    assert graph.x.tolist() == [[1, 0], [2, 1], [3, 1]]
    assert graph.feature_names == ["height", "old"]
    assert graph.label_names == ["left", "right"]
    assert graph.y.tolist() == [0, 1, 0]


def test_features_without_ids_belong_to_the_numbers(tmp_path):
    edges = write(tmp_path / "e.csv", "0,2\n2,3\n")
    np.save(tmp_path / "f.npy", np.arange(10.0).reshape(5, 2))
    graph = load_graph(edges, tmp_path / "f.npy", np.array([0, 1, 0, 1, -1]))
    assert graph.num_nodes == 5
    assert graph.x[4].tolist() == [8, 9]
    assert graph.y.tolist() == [0, 1, 0, 1, -1]
    sp.save_npz(tmp_path / "s.npz", sp.csr_array(np.eye(5)))
    sparse = load_graph(edges, tmp_path / "s.npz")
    assert sparse.x.is_sparse
    torch.testing.assert_close(sparse.x.to_dense(), torch.eye(5))


@pytest.mark.parametrize(("unlinked", "ids"), [("keep", ["a", "b", "z"]), ("drop", ["a", "b"])])
def test_nodes_without_edges(tmp_path, unlinked, ids):
    edges = write(tmp_path / "e.csv", "a,b\n")
    features = write(tmp_path / "f.csv", "id,v\na,1\nb,2\nz,3\n")
    assert load_graph(edges, features, unlinked=unlinked).node_ids.tolist() == ids


BAD_EDGES = {
    "": "is empty",
    "# nothing\n\n": "has only lines that begin with .#.; pass comment=.none.",
    "source,target\n": "has a header and no rows",
    "1,2\n3;4\n": "line 2: 1 field where the first line has 2",
    "1,2\n# c\n\n3,4,5\n": "line 4: 3 fields where the first line has 2",
    "1,2\n3,\n": "line 2: no node id",
    "source,target,weight\na,b,1\nb,c,\n": "line 3: no finite number in column 'weight'",
    "a,b,1\nb,c,-2\n": "line 2: the weight -2.0 must be finite and not negative",
    "a,b,1\nb,c,inf\n": "line 2: no finite number",
    "source,target,weight\na,b,1\nb,c,heavy\n": "line 3: column 'weight' holds 'heavy', which is not a number",
    "a,b\n\0,c\n": "line 2: there is a NUL byte",
    "just\nwords\n": "line 1: one column, but an edge needs two nodes",
    "a,a\nx,y\n": None,
    "source,source\n1,2\n": "names a column twice",
}


@pytest.mark.parametrize(("text", "message"), BAD_EDGES.items())
def test_bad_edges(tmp_path, text, message):
    path = write(tmp_path / "bad.csv", text)
    if message is None:
        load_graph(path)
        return
    with pytest.raises(DataError, match=message) as error:
        load_graph(path)
    assert str(path) in str(error.value)


def test_a_header_that_was_not_expected(tmp_path):
    path = write(tmp_path / "e.csv", "# c\nfrom,to\n1,2\n2,3\n")
    with pytest.raises(DataError, match="line 2: 'from' looks like a header"):
        load_graph(path, header=False)


@pytest.mark.parametrize("options", [{"columns": ("source", "goal")}, {"weights": "goal"}])
def test_unknown_columns(tmp_path, options):
    path = write(tmp_path / "e.csv", "source,target,weight\n1,2,3\n")
    with pytest.raises(DataError, match="has no column 'goal'; it has source, target, weight"):
        load_graph(path, **options)


BAD_FEATURES = {
    "id,v\na,1\n": "node 'b' has no features",
    "id,v\na,1\nb,2\nb,3\n": "line 4: the id 'b' comes a second time",
    "id,v\na,1\nb,nan\n": "line 3: no finite number in column 'v'",
    "id,v\na,1\nb,2\nz,3\n": "line 4: 'z' has features, but no edge",
    "id,v\na,1\nb,blue\n": "line 3: column 'v' holds 'blue'",
    "id\na\nb\n": "features need an id and numbers beside it",
}


@pytest.mark.parametrize(("text", "message"), BAD_FEATURES.items())
def test_bad_features(tmp_path, text, message):
    edges = write(tmp_path / "e.csv", "a,b\n")
    with pytest.raises(DataError, match=message):
        load_graph(edges, write(tmp_path / "f.csv", text))


def test_bad_labels(tmp_path):
    edges = write(tmp_path / "e.csv", "a,b\n")
    with pytest.raises(DataError, match="line 4: the id 'a' comes a second time"):
        load_graph(edges, labels=write(tmp_path / "l.csv", "id,label\na,1\nb,2\na,1\n"))
    with pytest.raises(DataError, match="'z' has a label, but no edge"):
        load_graph(edges, labels={"a": 0, "z": 1})
    with pytest.raises(DataError, match="neither an integer nor a text"):
        load_graph(edges, labels={"a": 0.5, "b": 1})
    with pytest.raises(DataError, match="called 'label' if there are more"):
        load_graph(edges, labels=write(tmp_path / "m.csv", "id,u,w\na,1,2\nb,2,2\n"))
    with pytest.raises(DataError, match="no node has a label"):
        load_graph(edges, labels=write(tmp_path / "n.csv", "id,label\na,\nb,\n"))


def test_bad_arrays(tmp_path):
    edges = write(tmp_path / "e.csv", "0,1\n1,5\n")
    with pytest.raises(DataError, match="line 2: the edge names node 5, but the features has 3 rows"):
        load_graph(edges, np.ones((3, 2)))
    with pytest.raises(DataError, match="row 1: NaN or infinity"):
        load_graph([(0, 1)], np.array([[1.0], [np.nan]]))
    with pytest.raises(DataError, match="rows without ids"):
        load_graph([("a", "b")], np.ones((2, 2)))
    with pytest.raises(DataError, match=r"shape \(3, 3\); .* an adjacency matrix goes in as"):
        load_graph(np.ones((3, 3), dtype=int))
    with pytest.raises(DataError, match="float64; node ids are integers or text"):
        load_graph(np.ones((3, 2)))
    np.savez(tmp_path / "o.npz", edges=np.array([[0, 1]], dtype=object))
    with pytest.raises(DataError, match="cannot be read as NumPy arrays"):
        load_graph(tmp_path / "o.npz")


@pytest.mark.parametrize("name", ["e.parquet", "e.npz", "e.graphml", "e.gexf", "e.mtx", "e.csv.gz"])
def test_truncated_files(tmp_path, name):
    whole = tmp_path / f"whole-{name}"
    if name == "e.parquet":
        pq.write_table(pa.table({"a": [1], "b": [2]}), whole)
    elif name == "e.npz":
        np.savez(whole, edges=[[0, 1]])
    elif name == "e.mtx":
        scipy.io.mmwrite(whole, sp.coo_array(np.ones((3, 3))))
    elif name == "e.csv.gz":
        whole.write_bytes(gzip.compress(b"1,2\n" * 100))
    else:
        getattr(nx, f"write_{name[2:]}")(nx.path_graph(3), whole)
    content = whole.read_bytes()
    for size in (0, len(content) // 2):
        path = tmp_path / name
        path.write_bytes(content[:size])
        with pytest.raises(DataError, match=r"e\."):
            load_graph(path)


def test_other_bad_sources(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        load_graph(tmp_path / "nowhere.csv")
    with pytest.raises(DataError, match="is a folder"):
        load_graph(tmp_path)
    with pytest.raises(DataError, match=r"not from \.xlsx"):
        load_graph(write(tmp_path / "e.xlsx", "1,2"))
    latin = tmp_path / "latin.csv"
    latin.write_bytes("1,2\nZürich,3\n".encode("latin-1"))
    with pytest.raises(DataError, match="line 2: this is not UTF-8"):
        load_graph(latin)
    with pytest.raises(DataError, match="unlinked='maybe'"):
        load_graph([(0, 1)], unlinked="maybe")
    with pytest.raises(DataError, match="an adjacency matrix is square"):
        load_graph(sp.csr_array(np.ones((2, 3))))
    heavy = nx.Graph()
    heavy.add_edge(0, 1, weight="heavy")
    with pytest.raises(DataError, match="not all numbers"):
        load_graph(heavy)
    with pytest.raises(DataError, match="not all numbers"):
        load_graph([(0, 1)], weights=["heavy"])
    with pytest.raises(DataError, match="complex"):
        load_graph(sp.csr_array(np.array([[0, 1j], [1j, 0]])))
    with pytest.raises(DataError, match="not from an object of type NoneType"):
        load_graph(None)
    with pytest.raises(DataError, match="features of 'a' are 'x', which are not numbers"):
        load_graph([("a", "b")], features={"a": "x", "b": 1})
    with pytest.raises(DataError, match="weights are one each"):
        load_graph(
            Data(edge_index=torch.tensor([[0], [1]]), edge_attr=torch.ones(1, 3), num_nodes=2), weights="edge_attr"
        )
    with pytest.raises(DataError, match="no node has an attribute 'colour'"):
        load_graph(networkx_sample(), labels="colour")
    with pytest.raises(DataError, match="holds 'leaf', not a number"):
        load_graph(networkx_sample(), features=["kind"])
