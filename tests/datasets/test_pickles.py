import hashlib
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

from h2hgcn.datasets import DataError, load_dataset
from h2hgcn.datasets.benchmarks import load_pickle


class Malicious:
    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return Path.touch, (self.target,)


@pytest.mark.parametrize("sha256", ["", "0" * 64])
def test_a_pickle_of_another_checksum_is_not_read(tmp_path, sha256):
    (tmp_path / "p").write_bytes(pickle.dumps(Malicious(tmp_path / "touched")))
    with pytest.raises(DataError, match="p is not the published file, so its pickle was not read; put the original"):
        load_pickle(tmp_path / "p", sha256)
    assert not (tmp_path / "touched").exists()


def test_a_pickle_of_the_known_checksum_is_read(tmp_path):
    content = pickle.dumps({1: [2], "array": np.arange(3)}, protocol=2)
    (tmp_path / "p").write_bytes(content)
    loaded = load_pickle(tmp_path / "p", hashlib.sha256(content).hexdigest())
    assert (loaded[1], loaded["array"].tolist()) == ([2], [0, 1, 2])


def test_a_changed_file_of_a_dataset_is_refused(benchmark_data, tmp_path):
    folder = shutil.copytree(benchmark_data / "planetoid/Cora/raw", tmp_path / "planetoid/Cora/raw")
    (folder / "ind.cora.graph").write_bytes(pickle.dumps(Malicious(tmp_path / "touched")))
    with pytest.raises(DataError, match="it is damaged or another version"):
        load_dataset("cora", tmp_path)
    assert not (tmp_path / "touched").exists()
