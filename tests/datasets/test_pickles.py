import copyreg
import pickle
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from h2hgcn.datasets.benchmarks import _ALLOWED, load_pickle
from h2hgcn.errors import DataError


def test_pickles_of_arrays_and_containers(tmp_path):
    values = {1: [2, 3], "matrix": sp.csr_matrix(np.eye(3)), "array": np.arange(3)}
    path = tmp_path / "p"
    path.write_bytes(pickle.dumps(values, protocol=4))
    loaded = load_pickle(path)
    assert loaded[1] == [2, 3]
    np.testing.assert_array_equal(loaded["matrix"].toarray(), np.eye(3))
    np.testing.assert_array_equal(loaded["array"], np.arange(3))


class Malicious:
    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return Path.touch, (self.target,)


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_that_asks_for_more_is_refused_before_it_runs(tmp_path, protocol):
    target = tmp_path / "touched"
    path = tmp_path / "p"
    path.write_bytes(pickle.dumps([Malicious(target)], protocol=protocol))
    with pytest.raises(DataError, match=r"asks for .*, which is not on the list of what data may hold; it was not run"):
        load_pickle(path)
    assert not target.exists()


def test_a_pickle_of_too_much(tmp_path):
    path = tmp_path / "p"
    path.write_bytes(b"cnumpy\nndarray\n(L1000000000000L\ntR.")
    with pytest.raises(DataError, match="not a whole pickle"):
        load_pickle(path)


def refused(path, content, message):
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        load_pickle(path)


@pytest.mark.parametrize("name", ["\n".join(name) for name in _ALLOWED])
def test_a_pickle_cannot_change_a_class(tmp_path, name):
    """(None, {"h2hgcn": 1}) as the state of the class itself, by the opcode BUILD."""
    set_attribute = f"c{name}\n".encode() + b"(N(dVh2hgcn\nI1\nstb."
    refused(tmp_path / "p", set_attribute, "not a whole pickle")
    assert not any(hasattr(kind, "h2hgcn") for kind in (*_ALLOWED.values(), sp.csr_matrix, np.ndarray, np.dtype))


class Dtype:
    """Pickled as a dtype of any name, order and flags."""

    def __init__(self, name, order="<", flags=0):
        self.reduced = (np.dtype, (name, False, True), (3, order, None, None, None, -1, -1, flags))

    def __reduce__(self):
        return self.reduced


class Array:
    """Pickled as an array of any state."""

    def __init__(self, *state):
        self.state = state

    def __reduce__(self):
        return np.empty(0).__reduce__()[0], (np.ndarray, (0,), b"b"), self.state


@pytest.mark.parametrize(
    "array",
    [
        Array(1, (1,), Dtype("O"), False, b"12345678"),
        Array(1, (1,), Dtype("O8", "|", 0), False, b"12345678"),
        Array(1, (1,), Dtype("i8", "?"), False, b"12345678"),
        Array(1, (2**62, 4), Dtype("i8"), False, b""),
        Array(1, (-1, -1), Dtype("i8"), False, b"12345678"),
        Array(1, (3,), Dtype("i8"), False, b"12345678"),
        Array(1, (1,), Dtype("i8"), False, [None] * 8),
        Array(1, (1,), "i8", False, b"12345678"),
    ],
)
def test_forged_arrays(tmp_path, array):
    refused(tmp_path / "p", pickle.dumps(array, protocol=4), "not a whole pickle")


def test_flags_of_a_dtype_are_not_believed(tmp_path):
    (tmp_path / "p").write_bytes(pickle.dumps(Array(1, (2,), Dtype("i2", ">", 0x3F), False, b"\0\1\0\2"), protocol=4))
    assert load_pickle(tmp_path / "p").tolist() == [1, 2]


def test_a_matrix_whose_indices_lie_outside(tmp_path):
    matrix = sp.csr_matrix(np.eye(2))
    matrix.indices[:] = 9
    refused(tmp_path / "p", pickle.dumps(matrix, protocol=4), "not a whole pickle")


def test_extension_codes_do_not_pass_the_list(tmp_path):
    touched = tmp_path / "touched"
    copyreg.add_extension("os", "mkdir", 0x7F)
    try:
        content = b"\x80\x02\x82\x7f" + pickle.dumps(str(touched), protocol=2)[2:-1] + b"\x85R."
        pickle.loads(b"\x80\x02\x82\x7f.")  # others may have filled the cache
        refused(tmp_path / "p", content, "asks for os.mkdir")
        assert not touched.exists()
    finally:
        copyreg.remove_extension("os", "mkdir", 0x7F)
        copyreg.clear_extension_cache()


def test_a_truncated_pickle(tmp_path):
    path = tmp_path / "p"
    for size in (0, 10, 40):
        path.write_bytes(pickle.dumps(np.arange(100))[:size])
        with pytest.raises(DataError, match="not a whole pickle"):
            load_pickle(path)
