"""Training, loading and predicting on an accelerator, for the three tasks."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from runs import SMALL, TASKS, small_data

from h2hgcn.models import H2HGCN
from h2hgcn.training import TrainingSettings, fit, load_run
from h2hgcn.training.building import build_model
from h2hgcn.training.loop import run_epoch
from h2hgcn.training.optimizers import build_optimizer_of

FULL = TrainingSettings(epochs=2, batch_size="full")
SAMPLED = TrainingSettings(epochs=2, batch_size=32, fanout="3,2", workers=1)
MODELS = {"features": SMALL, "vectors": partial(H2HGCN, dim=4, node_vectors=True)}


def data_for(task, features="dense"):
    """Small data; sparse features are wide and mostly 0, which tasks keep as a sparse tensor."""
    data = small_data(task)
    if features != "dense":
        data.x = torch.zeros(data.num_nodes, 200)
        data.x[torch.arange(data.num_nodes), torch.arange(data.num_nodes) % 200] = 1
        data.feature_names = None
    return data


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("features", ["dense", "sparse"])
@pytest.mark.parametrize("settings", [FULL, SAMPLED], ids=["full", "sampled"])
@pytest.mark.parametrize("task", ["lp", "nc"])
def test_a_run_is_trained_and_loaded(task, settings, features, model, on_device, tmp_path):
    task = replace(TASKS[task], scaling="raw")
    data = data_for(task.name, features)
    run = fit(task, data, MODELS[model], settings=settings, folder=tmp_path / "run")
    assert run.device.type == on_device.type
    items = [[0, 1], [0, 9]] if task.name == "lp" else [0, 1, 2]
    predicted = np.asarray(run.predict(items))
    loaded = load_run(tmp_path / "run", device=str(on_device))
    assert loaded.device.type == on_device.type
    assert loaded.evaluate("test") == pytest.approx(run.metrics["test"], abs=1e-6)
    assert np.allclose(np.asarray(loaded.predict(items)), predicted, atol=1e-6)
    assert np.allclose(np.asarray(load_run(tmp_path / "run").predict(items)), predicted, atol=1e-4)
    assert len(run.embeddings) == data.num_nodes
    if task.name == "lp":
        assert len(run.recommend(node=7, k=3)) == len(loaded.recommend(node=7, k=3)) == 3
        assert len(run.recommend_top(5)) == 5


def test_graphs_are_learnt(on_device, tmp_path):
    data = small_data("gc")
    run = fit(TASKS["gc"], data, SMALL, settings=FULL, folder=tmp_path / "run")
    loaded = load_run(tmp_path / "run", data, device=str(on_device))
    assert loaded.evaluate("test") == pytest.approx(run.metrics["test"], abs=1e-6)
    assert np.allclose(np.asarray(loaded.predict([0, 1])), np.asarray(run.predict([0, 1])), atol=1e-6)


@pytest.mark.parametrize("task", ["lp", "nc"])
def test_data_may_come_on_the_device(task, on_device, tmp_path):
    data = data_for(task)
    run = fit(TASKS[task], data.to(on_device), SMALL, settings=FULL, folder=tmp_path / "run")
    same = fit(TASKS[task], data_for(task), SMALL, settings=FULL)
    assert run.metrics["test"] == pytest.approx(same.metrics["test"], abs=1e-6)


@pytest.mark.parametrize("task", ["lp", "nc", "gc"])
def test_a_step_waits_for_the_device_twice(task, on_device, host_syncs):
    problem = TASKS[task].bind(data_for(task))
    model = build_model(SMALL, problem, FULL, 0).to(on_device)
    problem.to(on_device)
    optimizer = build_optimizer_of(model, FULL)
    for _ in range(2):  # caches are filled in the first
        batches = list(problem.batches(np.random.RandomState(0)))
        with host_syncs() as syncs:
            run_epoch(problem, model, optimizer, FULL, batches)
    assert len(syncs.found) <= 2 * len(batches), str(syncs)
