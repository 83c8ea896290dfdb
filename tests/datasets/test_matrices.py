"""Sparse matrices whose indices lead outside are refused; SciPy would follow them, and crash."""

import numpy as np
import pytest
import scipy.sparse as sp

from h2hgcn.datasets import DataError, load_graph

pytestmark = pytest.mark.filterwarnings("ignore::h2hgcn.datasets.DataWarning")

FAR = 10**8
COMPRESSED = {"indptr": [0, 1, 2, 3], "indices": [1, FAR, 0], "data": [1.0, 1.0, 1.0], "shape": [3, 3]}
BROKEN = {
    "csr": COMPRESSED,
    "csc": COMPRESSED,
    "csr, pointers": COMPRESSED | {"indptr": [0, -FAR, FAR, 3], "indices": [1, 2, 0]},
    "bsr": COMPRESSED | {"data": np.ones((3, 1, 1))},
    "coo": {"row": [1, FAR], "col": [1, 0], "data": [1.0, 1.0], "shape": [3, 3]},
    "lil": {"data": [1.0], "shape": [3, 3]},
}


@pytest.mark.parametrize(("kind", "arrays"), BROKEN.items(), ids=BROKEN.keys())
def test_broken_files(tmp_path, kind, arrays):
    np.savez(tmp_path / "m.npz", format=kind[:3].encode(), **arrays)
    for given in ({"edges": tmp_path / "m.npz"}, {"edges": [(0, 1), (1, 2)], "features": tmp_path / "m.npz"}):
        with pytest.raises(DataError, match=r"m\.npz .* sparse matrix|m\.npz cannot be read"):
            load_graph(**given)


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo"])
def test_broken_objects(kind):
    matrix = sp.eye_array(3).asformat(kind)
    (matrix.coords[0] if kind == "coo" else matrix.indices)[0] = FAR
    for given in ({"edges": matrix}, {"edges": [(0, 1), (1, 2)], "features": matrix}):
        with pytest.raises(DataError, match="not a valid sparse matrix"):
            load_graph(**given)


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo", "dia"])
def test_files_of_every_format(tmp_path, kind):
    sp.save_npz(tmp_path / "m.npz", sp.diags_array([1.0, 1.0], offsets=1, shape=(3, 3)).asformat(kind))
    graph = load_graph(tmp_path / "m.npz")
    assert graph.edge_index.T.tolist() == [[0, 1], [1, 2]]
    assert load_graph([(0, 1), (1, 2)], tmp_path / "m.npz").x.to_dense().tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]


def test_features_are_real():
    with pytest.raises(DataError, match="complex128"):
        load_graph([(0, 1)], sp.csr_array([[1j], [1]]))


MARKET = {
    "rows": ("coordinate", "1000000000000 1000000000000 1\n1 2 1.0", "claims too many nodes"),
    "entries": ("coordinate", "3 3 1000000000000\n1 2 1.0", "1 entries where its header says 1000000000000"),
    "array": ("array", "1000000 1000000\n1.0", "1 values where its header says 1000000000000"),
}


@pytest.mark.parametrize(("kind", "text", "message"), MARKET.values(), ids=MARKET.keys())
def test_absurd_sizes(tmp_path, kind, text, message):
    (tmp_path / "m.mtx").write_text(f"%%MatrixMarket matrix {kind} real general\n{text}\n")
    with pytest.raises(DataError, match=message):
        load_graph(tmp_path / "m.mtx")
