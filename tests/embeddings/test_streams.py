import numpy as np
import pytest
from samples import random_points

from h2hgcn.embeddings import read_embeddings
from h2hgcn.embeddings.files import stream_embeddings
from h2hgcn.errors import DataError


@pytest.mark.parametrize("coordinates", [None, "klein"])
def test_blocks_of_a_file_are_read_as_one(tmp_path, coordinates):
    points = random_points(10, 3, 2.0).numpy()
    blocks = [points[:4], points[4:8], points[8:]]
    labels = ["a", None] * 5
    stream_embeddings(tmp_path / "e.parquet", blocks, np.arange(10), labels, coordinates)
    read = read_embeddings(tmp_path / "e.parquet")
    assert read.coordinates == (coordinates or "lorentz")
    assert (read.ids.tolist(), read.labels.tolist()) == (list(range(10)), labels)
    stream_embeddings(tmp_path / "e.npy", blocks, np.arange(10), coordinates=coordinates)
    assert np.array_equal(np.load(tmp_path / "e.npy"), read.points)


def test_other_files_are_not_for_any_number_of_points(tmp_path):
    with pytest.raises(DataError, match="end the name so"):
        stream_embeddings(tmp_path / "e.csv", [], np.arange(0))
