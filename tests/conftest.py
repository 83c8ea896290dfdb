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
