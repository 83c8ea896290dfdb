import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # of children, too: threads of several processes wait for each other

from pathlib import Path

import hypothesis
import pytest
import torch

hypothesis.settings.register_profile("suite", deadline=None, derandomize=True, max_examples=40)
hypothesis.settings.load_profile("suite")


@pytest.fixture(autouse=True)
def _one_thread_and_one_seed():
    torch.set_num_threads(1)
    torch.manual_seed(0)


@pytest.fixture(params=[torch.float32, torch.float64], ids=["float32", "float64"])
def dtype(request):
    return request.param


@pytest.fixture(scope="session")
def benchmark_data():
    folder = os.environ.get("H2HGCN_DATA")
    if not folder:
        pytest.skip("the benchmark data are not here: set H2HGCN_DATA to their folder")
    return Path(folder).resolve()
