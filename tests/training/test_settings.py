import math
import threading

import numpy as np
import pytest
import torch

from h2hgcn.errors import DataError
from h2hgcn.tasks import GraphClassification, LinkPrediction, NodeClassification
from h2hgcn.training import TrainingSettings
from h2hgcn.training.settings import limited_threads


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": 0}, "training.epochs=0 must be at least 1"),
        ({"epochs": 2.5}, "epochs=2.5 must be a whole number"),
        ({"epochs": "many"}, "epochs='many' must be a whole number"),
        ({"epochs": None}, "epochs=None must be a whole number"),
        ({"epochs": True}, "epochs=True must be a whole number"),
        ({"eval_every": -1}, "eval_every=-1"),
        ({"decay_every": 0}, "decay_every=0"),
        ({"patience": 0}, "patience=0 must be at least 1, or 'none'"),
        ({"threads": 0}, "threads=0 must lie between 1 and 1024, or be 'none'"),
        ({"threads": 10**9}, "threads=1000000000 must lie between 1 and 1024"),
        ({"lr": 0}, "lr=0.0 must be positive, 1e\\+30 at most"),
        ({"lr": math.nan}, "lr=nan"),
        ({"lr": math.inf}, "lr=inf"),
        ({"lr": 10**400}, "must be a number"),
        ({"stiefel_lr": -0.1}, "stiefel_lr=-0.1"),
        ({"clip_norm": 0.0}, "clip_norm=0.0"),
        ({"lr_decay": -0.5}, "lr_decay=-0.5"),
        ({"weight_decay": -1}, "weight_decay=-1.0 must be 0 or more"),
        ({"checkpoint_seconds": math.nan}, "checkpoint_seconds=nan"),
        ({"schedule": "linear"}, "schedule='linear' is not known; use one of constant, cosine, step"),
        ({"dtype": torch.float64}, "dtype=torch.float64 is not known; use one of float32, float64"),
        ({"stiefel_method": "sgd"}, "stiefel_method='sgd' is not known"),
        ({"device": "tpu"}, "device='tpu' is not known"),
    ],
)
def test_bad_settings(options, message):
    with pytest.raises(DataError, match=message):
        TrainingSettings(**options)


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        (LinkPrediction, {"negatives": 0}, "task.negatives=0 must be at least 1"),
        (LinkPrediction, {"message_share": 0}, "message_share=0.0 must lie between 0 and 1"),
        (LinkPrediction, {"t": -1}, "task.t=-1.0"),
        (LinkPrediction, {"protocol": "planetoid"}, "protocol='planetoid' is not known; use one of clean, legacy"),
        (LinkPrediction, {"scaling": "min-max"}, "use one of raw, row, standard, auto"),
        (LinkPrediction, {"val": "some"}, "val='some' must be a number"),
        (NodeClassification, {"num_centroids": 0}, "num_centroids=0"),
        (NodeClassification, {"link_weight": -1}, "link_weight=-1.0 must be 0 or more"),
        (NodeClassification, {"head_dropout": 1}, "head_dropout=1.0"),
        (NodeClassification, {"feature_length": 0}, "feature_length=0.0"),
        (NodeClassification, {"selection": "auc"}, "use one of accuracy, macro_f1, f1"),
        (GraphClassification, {"batch_size": 0}, "batch_size=0 must be at least 1"),
        (GraphClassification, {"fold": "first"}, "fold='first' must be a whole number"),
    ],
)
def test_bad_tasks(task, options, message):
    with pytest.raises(DataError, match=message):
        task(**options)


def test_numbers_of_any_kind_and_texts_are_taken():
    settings = TrainingSettings(epochs=np.int64(3), lr=np.float32(0.5), patience="none", clip_norm="1")
    assert settings == TrainingSettings(epochs=3, lr=0.5, patience=None, clip_norm=1.0)
    assert type(settings.epochs) is int
    assert type(settings.lr) is float


def test_a_processor_has_so_many_threads_at_most(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    with limited_threads(1024, 1):
        assert torch.get_num_threads() == 4
    assert torch.get_num_threads() == 1


def test_learning_rates_by_epoch():
    cosine = TrainingSettings(epochs=10, schedule="cosine")
    factors = [cosine.rate_factor(epoch) for epoch in range(10)]
    assert factors[0] == 1
    assert factors == sorted(factors, reverse=True)
    assert factors[5] == pytest.approx(0.5)
    step = TrainingSettings(schedule="step", lr_decay=0.1, decay_every=2)
    assert [step.rate_factor(epoch) for epoch in range(5)] == pytest.approx([1, 1, 0.1, 0.1, 0.01])


def test_mps_is_never_chosen(monkeypatch):
    """It has no float64."""
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert TrainingSettings(device="auto").torch_device() == torch.device("cpu")
    with pytest.raises(DataError, match="MPS has no float64"):
        TrainingSettings(device="mps").torch_device()


def test_threads_of_overlapping_users_are_restored():
    before, entered, leave = torch.get_num_threads(), threading.Event(), threading.Event()

    def first():
        with limited_threads(before + 1, 0):
            entered.set()
            leave.wait(10)

    def second():
        with limited_threads(before + 2, 0):
            pass

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    threads[0].start()
    entered.wait(10)
    threads[1].start()
    threads[1].join(0.2)  # it waits for the first one
    leave.set()
    for thread in threads:
        thread.join()
    assert torch.get_num_threads() == before


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_there():
    with pytest.raises(DataError, match="device='cuda' is not there; use 'auto' or 'cpu'"):
        TrainingSettings(device="cuda").torch_device()
    assert TrainingSettings(device="cpu").torch_device() == torch.device("cpu")


@pytest.mark.parametrize("device", ["auto", "cuda"])
def test_each_process_of_a_machine_has_a_gpu_of_its_own(device, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    settings = TrainingSettings(device=device)
    assert settings.torch_device() == torch.device("cuda")
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert settings.torch_device() == torch.device("cuda", 1)
    assert TrainingSettings(device="cpu").torch_device() == torch.device("cpu")
    for rank in ("2", "-1", "first"):
        monkeypatch.setenv("LOCAL_RANK", rank)
        with pytest.raises(DataError, match=f"LOCAL_RANK={rank}, with 2 GPUs here: .* --nproc-per-node 2"):
            settings.torch_device()
