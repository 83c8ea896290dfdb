"""NumPy's files, whole and broken."""

import io
import zipfile

import numpy as np
import pytest

from h2hgcn.datasets import DataError, load_graph

pytestmark = pytest.mark.filterwarnings("ignore::h2hgcn.datasets.DataWarning")


def saved(path, **arrays):
    np.savez(path / "g.npz", **arrays)
    return path / "g.npz"


@pytest.mark.parametrize(("name", "expected"), [("edges", [[0, 1], [5, 6]]), ("edge_index", [[0, 5], [1, 6]])])
def test_the_name_says_which_way_a_square_is_read(tmp_path, name, expected):
    graph = load_graph(saved(tmp_path, **{name: [[0, 1], [5, 6]]}), directed=True)
    assert graph.node_ids[graph.edge_index.T.numpy()].tolist() == expected


def test_the_content_decides_between_the_two_formats(tmp_path):
    np.save(tmp_path / "a.npy", [[0, 1], [1, 2], [2, 3]])
    (tmp_path / "a.npz").write_bytes((tmp_path / "a.npy").read_bytes())
    (tmp_path / "b.npy").write_bytes(saved(tmp_path, edges=[[0, 1], [1, 2]]).read_bytes())
    assert load_graph(tmp_path / "a.npz").num_nodes == 4
    assert load_graph(tmp_path / "b.npy").num_nodes == 3


def test_masks_and_what_is_not_used(tmp_path):
    graph = load_graph(saved(tmp_path, edges=[[0, 1]], node_ids=["b", "a"], train_mask=[True, False], colour=[1, 2]))
    assert graph.train_mask.tolist() == [False, True]
    assert graph.notes[0] == "not used: colour"


BESIDE = {
    "fewer features": ({"node_ids": list("abcd"), "x": np.ones((3, 2))}, "x has 3 rows for 4 nodes"),
    "more features": ({"node_ids": list("abc"), "x": np.ones((4, 2))}, "x has 4 rows for 3 nodes"),
    "more labels": ({"x": np.ones((3, 2)), "y": [0, 1, 1, 0]}, "y has 4 rows for 3 nodes"),
    "a number": ({"x": 5.0}, "x is a single value"),
    "ids in columns": ({"node_ids": [[1, 2], [2, 3], [3, 4]]}, "give one id each"),
    "fractions": ({"node_ids": [0.5, 1, 2]}, "float64; node ids are integers or text"),
    "bytes": ({"node_ids": np.array([b"a", b"b", b"c"])}, "node ids are integers or text"),
}


@pytest.mark.parametrize(("arrays", "message"), BESIDE.values(), ids=BESIDE.keys())
def test_rows_that_do_not_fit_together(tmp_path, arrays, message):
    with pytest.raises(DataError, match=message):
        load_graph(saved(tmp_path, edges=[[0, 1], [1, 2]], **arrays))


def test_large_ids_become_texts(tmp_path):
    ids = np.array([2**63, 1], dtype=np.uint64)
    assert load_graph(saved(tmp_path, edges=[[0, 1]], node_ids=ids)).node_ids.tolist() == ["1", str(2**63)]


def header(text):
    return b"\x93NUMPY\x01\x00" + (len(text) + 1).to_bytes(2, "little") + text.encode() + b"\n"


MEMBERS = {
    "more than memory": header("{'descr': '<i8', 'fortran_order': False, 'shape': (1000000000000, 2)}"),
    "no end": header("{'descr': '<i8', 'fortran_order': False, 'shape': (10, 2"),
    "no shape": header("{'descr': '<i8', 'fortran_order': False}"),
    "no type": header("{'descr': ['x'], 'fortran_order': False, 'shape': (1, 2)}"),
}


@pytest.mark.parametrize("content", MEMBERS.values(), ids=MEMBERS.keys())
def test_broken_headers(tmp_path, content):
    with zipfile.ZipFile(tmp_path / "g.npz", "w") as archive:
        archive.writestr("edges.npy", content)
    with pytest.raises(DataError, match=r"g\.npz cannot be read as NumPy arrays"):
        load_graph(tmp_path / "g.npz")


def test_members_that_are_no_arrays(tmp_path):
    with zipfile.ZipFile(tmp_path / "g.npz", "w") as archive:
        archive.writestr("edges", b"hello")
    with pytest.raises(DataError, match="holds no arrays"):
        load_graph(tmp_path / "g.npz")


def test_broken_compression(tmp_path):
    buffer = io.BytesIO()
    np.savez_compressed(buffer, edges=np.arange(2000).reshape(-1, 2))
    for place in range(100, 401, 100):
        content = bytearray(buffer.getvalue())
        content[place] ^= 0xFF
        (tmp_path / "g.npz").write_bytes(content)
        with pytest.raises(DataError, match=r"g\.npz"):
            load_graph(tmp_path / "g.npz")
