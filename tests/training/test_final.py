"""Final fits: the settings of a run, trained again on all of its data."""

import multiprocessing
import os
import signal
import time
from dataclasses import replace

import pytest
import torch
from runs import SMALL, TASKS, Flat, curve, same_weights, small_data, small_fit

from h2hgcn.errors import DataError
from h2hgcn.tasks import Embedding
from h2hgcn.tasks.heads import fit_regression
from h2hgcn.training import TrainingSettings, fit, load_run
from h2hgcn.training.fit import finalize
from h2hgcn.training.folder import RunFolder
from h2hgcn.training.loading import load_final


@pytest.mark.parametrize("task", TASKS)
def test_all_data_for_as_many_epochs_as_were_best(task, tmp_path):
    run = small_fit(task, folder=tmp_path / "run")
    final = run.finalize()
    epochs = run.result["best_epoch"]
    alone = fit(
        replace(TASKS[task], final=True),
        small_data(task),
        SMALL,
        settings=TrainingSettings(epochs=epochs, device="cpu"),
    )
    parameters = dict(alone.model.named_parameters())  # what was fitted on validation data is taken over from the run
    assert all(torch.equal(value, parameters[name]) for name, value in final.model.named_parameters())
    assert torch.equal(final.embeddings, alone.embeddings)
    assert curve(final) == curve(alone)
    assert final.result["best_epoch"] == final.result["epochs"] == epochs
    split = run.problem.split
    assert len(final.problem.split.train) == len(split.train) + len(split.val) + len(split.test)
    assert final.metrics == {}
    assert final.result["of_run"] == {name: run.result[name] for name in ("metrics", "trivial", "baselines")}
    assert run.final is final
    data = small_data(task) if task == "gc" else None
    loaded = load_run(tmp_path / "run", data)
    assert same_weights(loaded, run)
    assert same_weights(loaded.final, final)
    assert loaded.final.config == final.config
    assert loaded.final.config["final"]["run"] == str((tmp_path / "run").resolve())
    assert same_weights(small_fit(task).finalize(), final)  # in memory
    with pytest.raises(DataError, match="nothing was held out of a final fit"):
        loaded.final.evaluate()


def test_messages_go_along_all_edges_and_predictions_are_the_final_ones():
    run = small_fit()
    final = run.finalize()
    assert torch.equal(final.problem.split.train_edge_index().unique(dim=1), run.data.edge_index.unique(dim=1))
    assert not torch.equal(final.predict([[0, 1]]), run.predict([[0, 1]]))
    assert len(final.recommend(0, k=3)) == 3


def test_learning_rates_are_those_of_the_run():
    run = small_fit(settings={"schedule": "cosine"}, epochs=12)
    run.result["best_epoch"] = 5
    final = run.finalize()
    assert [row["lr"] for row in final.history] == [row["lr"] for row in run.history[:5]]


def test_what_was_fitted_on_validation_links_is_taken_over():
    run = small_fit(replace(TASKS["lp"], neighborhood_terms=True))
    terms = run.model.head.neighborhood
    terms.weights.copy_(torch.arange(1.0, 11.0).view(2, 5))
    terms.slopes.fill_(2.0)
    final = run.finalize()
    assert all(
        torch.equal(terms.state_dict()[name], value)
        for name, value in final.model.head.neighborhood.state_dict().items()
    )
    pairs = torch.tensor([[0, 1], [3, 9]])
    added = final.model.head.neighborhood(
        final.model.head(final.embeddings, pairs, final.model.distance_scale), final.neighborhoods, pairs
    )
    torch.testing.assert_close(final.predict(pairs), added.sigmoid())


def test_feature_terms_are_fitted_again_on_all_labels():
    run = small_fit(replace(TASKS["nc"], feature_terms=True))
    terms = run.model.head.features
    terms.mix.copy_(torch.tensor([1.5, 0.5]))
    final, split, problem = run.finalize(), run.problem.split, run.problem
    fitted = final.model.head.features
    assert torch.equal(fitted.mix, terms.mix)
    everything = final.problem.split.train
    weights, bias, _ = fit_regression(problem.x, problem.y.numpy(), split.train, split.val, 2, everything)
    torch.testing.assert_close(fitted.weights, torch.from_numpy(weights).float())
    torch.testing.assert_close(fitted.bias, torch.from_numpy(bias).float())


def test_statistics_of_batches_are_those_of_the_final_fit():
    run = small_fit("gc")
    final = run.finalize()
    assert not torch.equal(final.model.head.norm.module.running_mean, run.model.head.norm.module.running_mean)


def test_more_epochs_that_change_a_run_make_its_final_fit_outdated(tmp_path):
    run = small_fit(folder=tmp_path)
    run.finalize()
    run.model.head.decoder.r.data.add_(1)
    run.write_model(RunFolder(tmp_path))
    changed = load_run(tmp_path)
    final, problem = load_final(changed)
    assert final is None
    assert changed.final is None
    assert "is of other weights than the run; h2hgcn finalize fits it again" in problem
    changed.finalize()
    assert load_run(tmp_path).final is not None


def test_a_final_fit_that_is_stopped_is_not_used_and_resumes(tmp_path):
    run = small_fit(folder=tmp_path, epochs=9)
    run.result["best_epoch"] = 6
    stops = iter([False] * 3 + [True])
    assert not finalize(run, should_stop=lambda: next(stops)).finished
    final, problem = load_final(run)
    assert final is None
    assert "is not finished; h2hgcn finalize resumes it" in problem
    trained = []
    resumed = finalize(run, on_epoch=lambda report, state: trained.append(report.epoch))
    assert trained == [4, 5, 6]
    whole = small_fit(epochs=9)
    whole.result["best_epoch"] = 6
    assert same_weights(resumed, whole.finalize())


def finalize_slowly(folder):
    torch.set_num_threads(1)
    run = load_run(folder)
    run.result["best_epoch"] = 30
    finalize(run, on_epoch=lambda *_: time.sleep(0.02))


def test_killed_and_the_same_in_the_end(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    children = multiprocessing.get_context("forkserver")
    children.set_forkserver_preload(["h2hgcn.training"])
    run = small_fit(folder=tmp_path, epochs=31)
    child = children.Process(target=finalize_slowly, args=(tmp_path,))
    child.start()
    metrics = tmp_path / "final" / "metrics.jsonl"
    deadline = time.monotonic() + 60
    while child.is_alive() and not (metrics.exists() and metrics.read_bytes().count(b"\n") > 3):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    assert child.exitcode == -signal.SIGKILL
    assert load_run(tmp_path).final is None
    run.result["best_epoch"] = 30
    again = small_fit(epochs=31)
    again.result["best_epoch"] = 30
    assert same_weights(run.finalize(), again.finalize())


def test_runs_that_have_no_final_fit(tmp_path):
    run = small_fit(folder=tmp_path)
    with pytest.raises(DataError, match="is a final fit already"):
        run.finalize().finalize()
    with pytest.raises(DataError, match="--task embed holds nothing out"):
        small_fit(Embedding(), model=None, epochs=2).finalize()
    stops = iter([False, True])
    with pytest.raises(DataError, match="the run is not finished, so its number of epochs is not chosen"):
        small_fit(should_stop=lambda: next(stops)).finalize()
    run = load_run(tmp_path)
    run.data = None
    with pytest.raises(DataError, match="the run does not hold its data; run its command again"):
        run.finalize()
    with pytest.raises(DataError, match="holds a run with other settings"):
        small_fit(seed=1).finalize(tmp_path)


def test_an_encoder_of_ones_own():
    run = small_fit(model=Flat)
    with pytest.raises(DataError, match="the model Flat is your own; pass what makes it as model="):
        run.finalize()
    assert run.finalize(model=Flat).finished


@pytest.mark.parametrize("task", ["lp", "nc"])
@pytest.mark.parametrize("part", ["val", "test"])
def test_shares_of_nothing_lead_to_the_final_fit(task, part):
    with pytest.raises(DataError, match=rf"task.{part}=0 leaves nothing to .* --final \(final=True\) afterwards"):
        small_fit(replace(TASKS[task], **{part: 0}))
