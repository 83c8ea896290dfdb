import pytest
import safetensors.torch
import torch
from hypothesis import given
from hypothesis import strategies as st

from h2hgcn.errors import DataError
from h2hgcn.files import part_of, read_tensors, write_tensors

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8, torch.bool]
words = st.text('ab._ä日🦊\n"', max_size=5)
SHAPES = [(), (0,), (3,), (2, 0), (2, 3)]


@given(
    tensors=st.dictionaries(words, st.tuples(st.sampled_from(DTYPES), st.sampled_from(SHAPES))),
    about=st.dictionaries(words, st.none() | st.integers() | words | st.lists(st.booleans())),
)
def test_tensors_and_words_come_back(tensors, about, tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "file.safetensors"
    given = {name: torch.ones(shape).to(dtype) for name, (dtype, shape) in tensors.items()}
    write_tensors(path, given, about)
    read, said = read_tensors(path)
    assert said == about
    assert read.keys() == given.keys()
    assert all(torch.equal(read[name], given[name]) and read[name].dtype == given[name].dtype for name in given)


def test_views_slices_and_gradients(tmp_path):
    table = torch.arange(12.0).view(3, 4)
    given = {"same": table, "again": table, "row": table[1], "column": table[:, 1], "turned": table.T}
    given["learnt"] = torch.nn.Parameter(table)
    write_tensors(tmp_path / "file", given, {})
    read, _ = read_tensors(tmp_path / "file")
    assert all(torch.equal(read[name], given[name]) for name in given)
    assert not any(value.requires_grad for value in read.values())


def test_what_was_read_is_independent_of_the_file(tmp_path):
    write_tensors(tmp_path / "file", {"a": torch.ones(3), "b": torch.ones(5, dtype=torch.float64)}, {})
    read, _ = read_tensors(tmp_path / "file")
    (tmp_path / "file").write_bytes(b"")
    assert read["a"].sum() == 3
    assert all(value.data_ptr() % 64 == 0 for value in read.values())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x" * 100,
        (2**62).to_bytes(8, "little") + b"{}",
        safetensors.torch.save({"a": torch.ones(3)}, {"h2hgcn": "{}"})[:-1],
        safetensors.torch.save({"a": torch.ones(3)}, {"h2hgcn": "{}"})[:20],
        safetensors.torch.save({"a": torch.ones(3)}),
        safetensors.torch.save({"a": torch.ones(3)}, {"h2hgcn": "{"}),
    ],
)
def test_damaged_files(data, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"file is damaged or was not written by h2hgcn .*; make it anew"):
        read_tensors(path, "make it anew")


def test_files_that_are_none(tmp_path):
    with pytest.raises(DataError, match="is not there"):
        read_tensors(tmp_path / "none")
    with pytest.raises(DataError, match="is damaged or was not written"):
        read_tensors(tmp_path)


def test_parts():
    tensors = {"a.x": torch.ones(1), "a.y.z": torch.ones(2), "b.x": torch.ones(3)}
    assert {name: len(value) for name, value in part_of(tensors, "a.").items()} == {"x": 1, "y.z": 2}
