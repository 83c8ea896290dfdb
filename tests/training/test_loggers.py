"""Each logger gets every epoch once, by its real library and without a network."""

import struct
import sys
import time

import pytest
from runs import small_data, small_fit
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import h2hgcn
from h2hgcn.errors import DataError, DataWarning
from h2hgcn.training import Logger
from h2hgcn.training.folder import RunFolder


def scalars(folder, name):
    events = EventAccumulator(str(folder / "tensorboard"))
    events.Reload()
    return [(event.step, event.value) for event in events.Scalars(name)]


def wandb_records(folder):
    """The records of the files that offline mode writes: blocks of 32 KB, as LevelDB's log has them."""
    from wandb.proto.wandb_internal_pb2 import Record

    records = []
    for file in sorted(folder.glob("wandb/offline-run-*/*.wandb")):
        data, place, body = file.read_bytes(), 7, b""
        while place + 7 <= len(data):
            left = 32768 - place % 32768
            if left < 7:
                place += left
                continue
            _, length, kind = struct.unpack("<IHB", data[place : place + 7])
            body += data[place + 7 : place + 7 + length]
            place += 7 + length
            if kind in (1, 4):  # whole, or the last part
                records.append(Record.FromString(body))
                body = b""
    return records


def wandb_values(folder, name):
    found = []
    for record in wandb_records(folder):
        row = {item.key or "/".join(item.nested_key): item.value_json for item in record.history.item}
        if name in row:
            found.append((int(row["_step"]), float(row[name])))
    return found


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    """MLflow's client on a folder of files."""
    module = pytest.importorskip("mlflow", reason="the extra mlflow is not installed")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.delenv("MLFLOW_EXPERIMENT_NAME", raising=False)
    before = module.get_tracking_uri()
    module.set_tracking_uri((tmp_path / "mlruns").as_uri())
    yield module
    module.set_tracking_uri(before)


@pytest.fixture
def offline(monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.delenv("WANDB_PROJECT", raising=False)
    return pytest.importorskip("wandb", reason="the extra wandb is not installed")


def test_curves_for_tensorboard(tmp_path):
    run = small_fit(folder=tmp_path, tensorboard=True, settings={"eval_every": 2, "schedule": "cosine"})
    for name, key in (("train/loss", "loss"), ("train/lr", "lr")):
        assert scalars(tmp_path, name) == [(row["epoch"], pytest.approx(row[key])) for row in run.history]
    validated = [(row["epoch"], row["val"]) for row in run.history if "val" in row]
    assert [epoch for epoch, _ in validated] == [2, 4]
    for metric in ("auc", "ap", "mrr"):
        assert scalars(tmp_path, f"val/{metric}") == [(epoch, pytest.approx(val[metric])) for epoch, val in validated]


def kill_at(last):
    def kill(report, state):
        if report.epoch == last:
            raise KeyboardInterrupt

    return kill


def train_in_three_parts(folder, **options):
    """Epochs 3 and 4 are run twice, since no checkpoint knows of them."""
    there = RunFolder(folder)
    small_fit(folder=folder, epochs=6, should_stop=lambda: len(there.read_history()) == 2, **options)
    with pytest.raises(KeyboardInterrupt):
        small_fit(folder=folder, epochs=6, on_epoch=kill_at(4), settings={"checkpoint_seconds": 1000}, **options)
    return small_fit(folder=folder, epochs=6, **options)


def losses(run):
    return [(row["epoch"], pytest.approx(row["loss"])) for row in run.history]


def test_a_resumed_run_repeats_no_step_in_tensorboard(tmp_path):
    run = train_in_three_parts(tmp_path, loggers="tensorboard")
    assert scalars(tmp_path, "train/loss") == losses(run)


def test_a_resumed_run_stays_one_run_of_mlflow(tmp_path, mlflow):
    run = train_in_three_parts(tmp_path / "run", loggers=["mlflow"])
    client = mlflow.MlflowClient()
    (experiment,) = client.search_experiments(filter_string="name = 'h2hgcn'")
    (logged,) = client.search_runs([experiment.experiment_id])
    assert (logged.info.status, logged.info.run_name) == ("FINISHED", "run")
    history = client.get_metric_history(logged.info.run_id, "train/loss")
    assert [(metric.step, metric.value) for metric in history] == losses(run)
    assert logged.data.metrics["result/test/auc"] == run.metrics["test"]["auc"]
    (at,) = (name for name in run.metrics["test"] if name.startswith("precision@"))  # @ is not allowed there
    assert logged.data.metrics[f"result/test/{at.replace('@', '_')}"] == run.metrics["test"][at]
    assert logged.data.params["model.dim"] == "4"
    longer = small_fit(folder=tmp_path / "run", epochs=7, loggers=["mlflow"])  # parameters cannot change
    assert len(client.get_metric_history(logged.info.run_id, "train/loss")) == len(longer.history) == 7


def test_a_run_of_your_own_is_used_and_not_ended(tmp_path, mlflow):
    with mlflow.start_run() as own:
        run = small_fit(loggers="mlflow")  # in memory
        assert mlflow.active_run().info.run_id == own.info.run_id
    client = mlflow.MlflowClient()
    assert [(m.step, m.value) for m in client.get_metric_history(own.info.run_id, "train/loss")] == losses(run)
    assert client.get_experiment_by_name("h2hgcn") is None


def test_a_server_that_fails_costs_no_run(tmp_path, mlflow, monkeypatch):
    def fail(client, run_id, metrics=(), params=(), **options):
        if metrics and metrics[0].step == 2:
            raise mlflow.exceptions.MlflowException("the server is gone")

    monkeypatch.setattr(mlflow.MlflowClient, "log_batch", fail)
    with pytest.warns(DataWarning, match=r"MLflow failed \(the server is gone\); the run continues"):
        run = small_fit(folder=tmp_path / "run", loggers="mlflow")
    assert run.finished
    assert len(run.history) == 4


def test_a_logger_that_cannot_start_says_so_before_training(tmp_path, mlflow):
    mlflow.set_tracking_uri("sqlite:////nowhere/at/all.db")
    with pytest.raises(DataError, match=r"MLflow cannot start: .*; fix it, or leave it out"):
        small_fit(folder=tmp_path / "run", loggers="mlflow")
    assert not RunFolder(tmp_path / "run").read_history()


def test_weights_and_biases_offline(tmp_path, offline):
    run = train_in_three_parts(tmp_path, loggers="wandb")
    assert offline.run is None  # it was finished
    records, summary, end = [], {}, time.monotonic() + 60
    while "result/test/auc" not in summary and time.monotonic() < end:  # W&B's process still writes
        time.sleep(0.2)
        records = wandb_records(tmp_path)
        items = [item for record in records for item in record.summary.update]
        summary = {item.key or item.nested_key[0]: item.value_json for item in items}
    assert float(summary["result/test/auc"]) == run.metrics["test"]["auc"]
    logged = dict(wandb_values(tmp_path, "train/loss"))  # epochs that were run twice have the same loss
    assert sorted(logged.items()) == losses(run)
    assert len({record.run.run_id for record in records if record.run.run_id}) == 1
    assert {record.run.project for record in records if record.run.run_id} == {"h2hgcn"}


class Kept(Logger):
    def __init__(self):
        self.calls = []

    def start(self, config, folder, epoch):
        self.calls.append(("start", config["model"]["name"], folder, epoch))

    def log(self, epoch, values):
        self.calls.append((epoch, *values))

    def finish(self, result):
        self.calls.append(("finish", result and result["metrics"]["test"]["auc"]))


def test_a_logger_of_your_own():
    kept = Kept()
    run = small_fit(loggers=kept, settings={"eval_every": 4})
    loss = ("train/loss", "train/lr")
    start, *epochs, end = kept.calls
    assert start == ("start", "h2h-gcn", None, 0)
    assert epochs[:3] == [(epoch, *loss) for epoch in (1, 2, 3)]
    assert epochs[3][:3] == (4, *loss)
    assert "val/auc" in epochs[3]
    assert end == ("finish", run.metrics["test"]["auc"])


def test_its_errors_are_not_hidden_and_every_logger_is_finished():
    class Broken(Logger):
        def log(self, epoch, values):
            raise ZeroDivisionError

    kept = Kept()
    with pytest.raises(ZeroDivisionError):
        small_fit(loggers=[kept, Broken()])
    assert kept.calls[-1] == ("finish", None)


@pytest.mark.parametrize(
    ("module", "name"), [("torch.utils.tensorboard", "tensorboard"), ("wandb", "wandb"), ("mlflow", "mlflow")]
)
def test_without_the_package(module, name, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    folder = tmp_path / "run"
    with pytest.raises(DataError, match=rf"pip install 'h2hgcn\[{name}\]'"):
        small_fit(folder=folder, loggers=name)
    with pytest.raises(DataError, match=rf"pip install 'h2hgcn\[{name}\]'"):  # before the settings are searched
        h2hgcn.train(small_data(), loggers=name, out=folder)
    assert not folder.exists()


@pytest.mark.parametrize(
    ("loggers", "message"),
    [("wandbb", "did you mean 'wandb'"), ([3], "loggers holds 3"), ("tensorboard", "pass folder=")],
)
def test_bad_loggers(loggers, message):
    with pytest.raises(DataError, match=message):
        small_fit(loggers=loggers)
