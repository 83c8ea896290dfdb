"""Files that are damaged, or claim more than they hold: an error that names the file, in little memory."""

import gzip
import json
import os
import re
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.io
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from h2hgcn.datasets import DataError, convert_graph, load_graph
from h2hgcn.datasets.formats import edges_from_market
from h2hgcn.datasets.tables import Arrays
from h2hgcn.files import stamped, unstamped

pytestmark = pytest.mark.filterwarnings("ignore::h2hgcn.datasets.DataWarning")

HEADER = "%%MatrixMarket matrix "


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("coordinate pattern general\n3 3 1\n1 2 7\n", "line 3: '1 2 7' is not a row and a column from 1 to 3;"),
        (
            "coordinate integer general\n3 3 1\n1 2 1.0\n",
            "line 3: '1 2 1.0' is not a row and a column .* and a value of type integer",
        ),
        (
            "coordinate real general\n3 3 1\n1 4 1\n",
            "line 3: '1 4 1' is not a row and a column from 1 to 3 and a value",
        ),
        ("coordinate real general\n3 3 2\n1 2 1\n", "1 entries where its header says 2"),
        ("coordinate real general\n3 x 2\n1 2 1\n", "line 2: '3 x 2' is not a line of 3 whole numbers, the sizes"),
        ("array real symmetric\n3 3\n1\n0\n", "2 values where its header says 6"),
        ("array real general\n1000000000 1000000000\n1\n", "1 values"),
        ("coordinate pattern general\n10000000 10000000 1\n1 2\n", "limit is 1,000,000.*H2HGCN_LIMITS"),
        ("coordinate complex general\n2 2 1\n1 2 1 0\n", "complex"),
        ("nonsense\n", "line 1"),
    ],
)
def test_a_damaged_matrix_market_file_is_an_error(tmp_path, content, message):
    path = tmp_path / "graph.mtx"
    path.write_text(HEADER + content)
    with pytest.raises(DataError, match=message):
        load_graph(path)


def test_a_blank_at_the_end_of_a_matrix_market_file_is_harmless(tmp_path):
    path = tmp_path / "graph.mtx"
    path.write_text(f"{HEADER}coordinate pattern general\n3 3 1\n1 2 ")
    assert load_graph(path).edge_index.tolist() == [[0], [1]]


@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
@pytest.mark.parametrize("form", ["array", "coordinate"])
def test_matrix_market_files_hold_what_scipy_wrote(tmp_path, form, symmetry):
    random = np.random.default_rng(0)
    dense = random.integers(0, 3, (7, 7)) * (random.random((7, 7)) < 0.5)
    dense = np.triu(dense, 1) + (np.triu(dense, 1).T if symmetry == "symmetric" else 0)
    scipy.io.mmwrite(tmp_path / "a.mtx", dense if form == "array" else sp.coo_array(dense), symmetry=symmetry)
    read, expected = load_graph(tmp_path / "a.mtx", weights=True), load_graph(sp.coo_array(dense), weights=True)
    assert read.edge_index.tolist() == expected.edge_index.tolist()
    assert read.edge_weight.tolist() == expected.edge_weight.tolist()
    assert read.directed == expected.directed


UNTIDY = {
    "blanks": " 1\t2   0.5 \n\n  2 3 1e0\n",
    "comments": "% between\n1 2 .5\n  % again\n2 3 1.\n",
    "signs": "1 2 +0.5\n2 3 +1\n",
    "line ends": "1 2 0.5\r\n2 3 1\r\n",
    "no end": "1 2 5e-1\n2 3 1",
}


@pytest.mark.parametrize("entries", UNTIDY.values(), ids=UNTIDY.keys())
def test_untidy_matrix_market_files(tmp_path, entries):
    (tmp_path / "a.mtx").write_text(f"{HEADER}coordinate real general\n% a comment\n\n3 3 2\n{entries}", newline="")
    graph = load_graph(tmp_path / "a.mtx")
    assert graph.edge_index.tolist() == [[0, 1], [1, 2]]
    assert graph.edge_weight.tolist() == [0.5, 1.0]


@pytest.mark.parametrize(
    "entry", ["0x1 2 1", '"1" 2 1', "1 2 1_0", "1 2 0x1p3", "1 2 1,5", "1.0 2 1", "1 2", "0 1 1", "-1 2 1"]
)
def test_entries_that_are_no_numbers_name_their_line(tmp_path, entry):
    (tmp_path / "a.mtx").write_text(f"{HEADER}coordinate real general\n3 3 3\n1 2 1\n{entry}\n2 3 1\n")
    with pytest.raises(DataError, match=r"a\.mtx, line 4: "):
        load_graph(tmp_path / "a.mtx")


def test_a_large_matrix_market_file_is_read_in_blocks(tmp_path):
    random = np.random.default_rng(0)
    ends, values = random.integers(1, 100_001, (1_000_000, 2)), random.random(1_000_000)
    lines = [f"{a} {b} {value:.6f}" for (a, b), value in zip(ends.tolist(), values.tolist(), strict=True)]
    header = f"{HEADER}coordinate real general\n100000 100000 {len(lines)}\n"
    (tmp_path / "a.mtx").write_text(header + "\n".join(lines))
    edges = edges_from_market(tmp_path / "a.mtx", True)
    expected = sp.coo_array((values.round(6), (ends.T - 1)), shape=(100_000, 100_000)).tocsr()
    found = sp.coo_array((edges.weights, (edges.source, edges.target)), shape=expected.shape).tocsr()
    assert abs(found - expected).max() < 1e-9


NODES = '<node id="a"/><node id="b"/>'
BROKEN_XML = {
    "unknown end": (f'{NODES}<edge source="a" target="c"/>', "names the node 'c', which the file does not have"),
    "no end": (f'{NODES}<edge source="a"/>', "an edge has no target"),
    "a node twice": (f'{NODES}<node id="a"/><edge source="a" target="b"/>', "the node 'a' comes twice"),
    "no id": (f'{NODES}<node/><edge source="a" target="b"/>', "a node has no id"),
}


@pytest.mark.parametrize(("body", "message"), BROKEN_XML.values(), ids=BROKEN_XML.keys())
@pytest.mark.parametrize("kind", ["graphml", "gexf"])
def test_damaged_xml_is_an_error(tmp_path, kind, body, message):
    namespace = {"graphml": "http://graphml.graphdrawing.org/xmlns", "gexf": "http://www.gexf.net/1.2draft"}[kind]
    if kind == "gexf":
        nodes, edges = re.findall("<node[^>]*>", body), re.findall("<edge[^>]*>", body)
        body = f"<nodes>{''.join(nodes)}</nodes><edges>{''.join(edges)}</edges>"
    path = tmp_path / f"e.{kind}"
    path.write_text(f'<{kind} xmlns="{namespace}"><graph edgedefault="directed">{body}</graph></{kind}>')
    with pytest.raises(DataError, match=rf"e\.{kind}: .*{message}"):
        load_graph(path)


def test_graphml_says_whether_it_is_directed(tmp_path):
    path = tmp_path / "e.graphml"
    nx.write_graphml(nx.path_graph(3), path)
    path.write_text(path.read_text().replace("undirected", "undirectex"))
    with pytest.raises(DataError, match="edgedefault='undirectex' is neither directed nor undirected"):
        load_graph(path)


def write_edges(folder: Path) -> Path:
    path = folder / "edges.csv"
    path.write_text("source,target\n1,2\n2,3\n")
    return path


@pytest.mark.parametrize("values", [[datetime(2020, 1, 1)] * 3, pa.array([1] * 3, pa.timestamp("ns"))])
def test_times_can_be_labels(tmp_path, values):
    pq.write_table(pa.table({"id": [1, 2, 3], "label": values}), tmp_path / "labels.parquet")
    assert load_graph(write_edges(tmp_path), labels=tmp_path / "labels.parquet").y.tolist() == [0, 0, 0]


@pytest.mark.parametrize("values", [[{"a": 1}] * 3, [[1]] * 3, [b"\xff"] * 3])
def test_labels_of_other_types_name_their_column(tmp_path, values):
    pq.write_table(pa.table({"id": [1, 2, 3], "label": values}), tmp_path / "labels.parquet")
    with pytest.raises(DataError, match=r"labels\.parquet, row 1: column 'label' is of type"):
        load_graph(write_edges(tmp_path), labels=tmp_path / "labels.parquet")


def test_parquet_texts_that_are_not_utf_8_name_the_file(tmp_path):
    offsets = pa.py_buffer(np.array([0, 1, 2], np.int32))
    texts = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"\xff\xfe")])
    pq.write_table(pa.table({"a": texts, "b": texts}), tmp_path / "e.parquet")
    with pytest.raises(DataError, match=r"e\.parquet.*UTF8"):
        load_graph(tmp_path / "e.parquet")


def test_float16_ids_are_integers(tmp_path):
    table = pa.table({"a": np.array([1, 2], np.float16), "b": np.array([2, 3], np.float16)})
    pq.write_table(table, tmp_path / "e.parquet")
    assert load_graph(tmp_path / "e.parquet").node_ids.tolist() == [1, 2, 3]


def test_an_unknown_home_folder_is_an_error():
    with pytest.raises(DataError, match=r"~nosuchuser/e\.csv"):
        load_graph("~nosuchuser/e.csv")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("bomb.csv.gz", lambda: gzip.compress(b"1,2\n" * (40 << 20), 1), "unpacks to too many bytes"),
        ("line.csv", lambda: b"1" * (40 << 20), "too long a line"),
        ("columns.csv", lambda: b"1," * 200_000, "too many columns"),
    ],
)
def test_memory_is_bounded_and_the_message_says_how_to_raise_it(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content())
    with pytest.raises(DataError, match=rf"{message}.*limit is.*H2HGCN_LIMITS=10"):
        load_graph(tmp_path / name)


def test_compressed_arrays_are_bounded(tmp_path):
    np.savez_compressed(tmp_path / "e.npz", edges=np.zeros((20_000_000, 2), np.int64))
    with pytest.raises(DataError, match=r"e\.npz unpacks to too many bytes"):
        load_graph(tmp_path / "e.npz")


def test_a_parquet_file_of_few_bytes_cannot_claim_many_rows(tmp_path):
    column = pa.DictionaryArray.from_arrays(np.zeros(11_000_000, np.int8), pa.array([1]))
    pq.write_table(pa.table({"a": column, "b": column}), tmp_path / "e.parquet")
    with pytest.raises(DataError, match=r"e\.parquet claims too many rows"):
        load_graph(tmp_path / "e.parquet")


def test_limits_can_be_raised(tmp_path, monkeypatch):
    path = tmp_path / "graph.mtx"
    path.write_text(f"{HEADER}coordinate pattern general\n1500000 1500000 1\n1 2\n")
    monkeypatch.setenv("H2HGCN_LIMITS", "2")
    assert load_graph(path).num_nodes == 1_500_000
    monkeypatch.setenv("H2HGCN_LIMITS", "many")
    with pytest.raises(DataError, match="'many' is not a number"):
        load_graph(path)


MANY = 1_100_000  # nodes without an edge, more than a file may claim


@pytest.mark.parametrize(
    "source",
    [
        lambda: Data(edge_index=torch.tensor([[0], [1]]), num_nodes=MANY),
        lambda: sp.coo_array(([1.0], ([0], [1])), shape=(MANY, MANY)),
        lambda: nx.empty_graph(MANY),
        lambda: pa.table({"source": np.arange(MANY), "target": np.arange(MANY)}),
    ],
    ids=["PyG", "SciPy", "networkx", "Arrow"],
)
def test_objects_in_memory_have_no_limits(monkeypatch, source):
    monkeypatch.setenv("H2HGCN_LIMITS", "0.001")
    assert load_graph(source()).num_nodes == MANY


def converted(folder: Path) -> Path:
    return convert_graph(write_edges(folder), folder / "graph")


@pytest.mark.parametrize("content", ["[" * 100_000, "[]", '{"format": 1}', "{"])
def test_a_damaged_description_of_a_folder_is_an_error(tmp_path, content):
    (converted(tmp_path) / "graph.json").write_text(content)
    with pytest.raises(DataError, match="is damaged"):
        load_graph(tmp_path / "graph")


def test_a_changed_description_of_a_folder_is_an_error(tmp_path):
    path = converted(tmp_path) / "graph.json"
    path.write_text(path.read_text().replace('"directed": false', '"directed": true'))
    with pytest.raises(DataError, match=r"is damaged .*its checksum is not that of its contents"):
        load_graph(tmp_path / "graph")


@pytest.mark.parametrize("part", ["sources", "arrays"])
def test_a_folder_cannot_name_a_device(tmp_path, part):
    facts = unstamped(json.loads((converted(tmp_path) / "graph.json").read_text()))
    stamp = {"path": "/dev/zero", "bytes": 1, "changed": 1, "sha256": ""}
    facts[part] = [stamp] if part == "sources" else {"/dev/zero": stamp}
    (tmp_path / "graph" / "graph.json").write_text(json.dumps(stamped(facts)))
    if part == "sources":
        assert load_graph(tmp_path / "graph").num_nodes == 3
    else:
        with pytest.raises(DataError, match="is damaged"):
            load_graph(tmp_path / "graph")


KILLED = """
import os, sys
from pathlib import Path
from h2hgcn.datasets.on_disk import new_folder
at, out = sys.argv[1:]
if at == "aside":  # between the two renames
    rename = Path.rename
    Path.rename = lambda path, other: os._exit(9) if str(path).endswith(".part") else rename(path, other)
with new_folder(Path(out)) as part:
    (part / "graph.json").write_text("{}")
    if at == "part":
        os._exit(9)
"""


@pytest.mark.parametrize("at", ["part", "aside"])
def test_what_a_killed_convert_left_is_cleaned_up(tmp_path, at):
    before = (converted(tmp_path) / "graph.json").read_text()
    ended = subprocess.run([sys.executable, "-c", KILLED, at, tmp_path / "graph"], env={**os.environ}, check=False)
    assert ended.returncode == 9
    assert len(list(tmp_path.iterdir())) > 2 or at == "aside"
    kept = (tmp_path / "graph" if at == "part" else next(tmp_path.glob(".graph.*.old"))) / "graph.json"
    assert kept.read_text() == before
    with pytest.raises(DataError):  # whether the next one succeeds or not, the old folder is back
        convert_graph(tmp_path / "missing.csv", tmp_path / "graph")
    assert (tmp_path / "graph" / "graph.json").read_text() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["edges.csv", "graph"]


def test_arrays_are_allocated_before_they_are_mapped(tmp_path):
    Arrays(tmp_path).empty("x", (1 << 20,), np.int64)
    status = (tmp_path / "x.npy").stat()
    assert status.st_blocks * 512 >= 8 << 20  # a sparse file would end the process when the disk is full


@pytest.mark.parametrize("entries", ["0 1 0\n1 0 2\n0 2 0\n", "0 1 0 1 0 2 0 2 0\n"])
def test_dense_matrix_market_files_may_have_several_values_on_a_line(tmp_path, entries):
    (tmp_path / "a.mtx").write_text(f"{HEADER}array real general\n3 3\n{entries}")
    assert load_graph(tmp_path / "a.mtx", weights=True).edge_weight.tolist() == [1.0, 1.0, 2.0, 2.0]


def test_one_very_long_id_is_refused_wherever_it_comes_from(tmp_path):
    graph = nx.path_graph(3000)
    nx.write_graphml(nx.relabel_nodes(graph, {0: "x" * 30_000}), tmp_path / "a.graphml")
    pairs = [(f"n{a}", f"n{a + 1}") for a in range(3000)] + [("n0", "x" * 30_000)]
    for source in (tmp_path / "a.graphml", pairs):
        with pytest.raises(DataError, match="has 30,000 letters, all ids have"):
            load_graph(source)


def test_different_nodes_of_one_name_are_named():
    with pytest.raises(DataError, match="several nodes have the name '1' when written as text; rename them"):
        load_graph(nx.Graph([(1, "1"), ("1", "b")]))


def test_an_absurd_number_of_nodes_does_not_fit():
    with pytest.raises(DataError, match="1,000,000,000,000,000 nodes, which do not fit into memory"):
        load_graph(Data(edge_index=torch.tensor([[0], [1]]), num_nodes=10**15))
