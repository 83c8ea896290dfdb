import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys

import numpy as np
import pytest
import safetensors.torch
import torch
from filelock import FileLock, Timeout
from runs import TASKS, Flat, change, curve, same_weights, small_data, small_fit

from h2hgcn.embeddings import read_embeddings
from h2hgcn.errors import DataError, DataWarning
from h2hgcn.files import read_tensors, write_tensors
from h2hgcn.tasks import LinkPrediction
from h2hgcn.training import load_run
from h2hgcn.training.folder import RunFolder

FILES = ["checkpoint", "config.toml", "embeddings.parquet", "graph.safetensors", "metrics.jsonl", "model.safetensors",
         "report.html", "result.json"]  # fmt: skip


def contents(folder):
    """Every file and what is in it, but for the lock."""
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file() and file.name != ".lock"}


def visible(folder):
    """Names of all files but hidden ones, and the layout, which is there if it is better than the projection."""
    return sorted(
        item.name for item in folder.iterdir() if not item.name.startswith(".") and item.name != "layout.safetensors"
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    small_fit(folder=folder)
    return folder


@pytest.mark.parametrize("task", TASKS)
def test_a_finished_run_is_complete_and_only_loaded_again(task, tmp_path):
    folder = tmp_path / "deep" / "run"
    run = small_fit(task, folder=folder)
    assert visible(folder) == [name for name in FILES if task != "gc" or name != "graph.safetensors"]
    before = contents(folder)
    again = small_fit(task, folder=folder, on_epoch=lambda *_: pytest.fail("trained again"))
    assert contents(folder) == before
    assert same_weights(run, again)
    assert again.result == run.result
    assert again.evaluate() == run.metrics["test"]
    written = read_embeddings(folder / "embeddings.parquet")
    np.testing.assert_allclose(written.points, run.embeddings.numpy(), rtol=1e-6)
    labels = small_data(task).y.tolist()
    assert written.labels.tolist() == [str(label) for label in labels]


HOLDER = """
import sys, time
from filelock import FileLock
with FileLock(sys.argv[1]):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_folder_in_use(tmp_path):
    lock = tmp_path / ".lock"
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(lock)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        for force in (False, True):
            with pytest.raises(DataError, match=r"another process trains in .*; wait for it"):
                small_fit(folder=tmp_path, force=force)
        assert not visible(tmp_path)
        os.kill(process.pid, signal.SIGKILL)

    def others_are_kept_out(*_):
        with pytest.raises(Timeout):
            FileLock(lock, timeout=0).acquire()

    assert small_fit(folder=tmp_path, on_epoch=others_are_kept_out).finished


def test_places_that_are_no_folder_for_a_run(tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "thesis.txt").write_text("mine")
    before = contents(tmp_path)
    for name, message in (
        ("file", "is a file; choose a folder"),
        ("file/run", "cannot be written to .*; choose another folder"),
        ("foreign", r"not empty and not a run \(it holds thesis.txt\)"),
    ):
        for force in (False, True):
            with pytest.raises(DataError, match=message):
                small_fit(folder=tmp_path / name, force=force)
        run = small_fit()
        with pytest.raises(DataError, match=message):
            run.save(tmp_path / name)
    assert contents(tmp_path) == before
    assert not list(tmp_path.rglob(".lock"))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="permissions do not bind root")
def test_a_read_only_folder(tmp_path):
    tmp_path.chmod(0o500)
    try:
        for folder in (tmp_path, tmp_path / "run"):
            with pytest.raises(DataError, match="cannot be written to"):
                small_fit(folder=folder)
    finally:
        tmp_path.chmod(0o700)


def other_graph():
    graph = small_data()
    graph.x[0, 0] += 1
    return graph


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": 1}, "seed is 0 there and 1 now"),
        ({"epochs": 3}, "training.epochs is 4 there and 3 now"),
        ({"epochs": 5, "seed": 1}, "training.epochs is 4 there and 5 now"),
        ({"settings": {"clip_norm": 1.0}}, "training.clip_norm is none there and 1.0 now"),
        ({"task": LinkPrediction(message_share=0.25)}, "task.message_share is 0.5 there and 0.25 now"),
        ({"task": "nc"}, "task.name is lp there and nc now"),
        ({"model": Flat}, "model.name is h2h-gcn there and Flat now"),
        ({"data": other_graph(), "source": {"edges": "other.csv"}}, "data.memory is True there and None now"),
    ],
)
def test_other_settings_are_refused_by_name(options, message, finished):
    before = contents(finished)
    with pytest.raises(DataError, match=rf"other settings \({message}.*\); choose another folder, or .*--force"):
        small_fit(folder=finished, **options)
    assert contents(finished) == before


def test_other_data_are_refused(finished):
    before = contents(finished)
    with pytest.raises(DataError, match=r"of other data: edges, features, .*; choose another folder, or .*--force"):
        small_fit(folder=finished, data=other_graph())
    assert contents(finished) == before


@pytest.mark.parametrize("options", [{"seed": 1}, {"task": "nc", "model": Flat}, {"task": "gc"}])
def test_force_replaces_a_run(options, tmp_path):
    small_fit(folder=tmp_path)
    run = small_fit(folder=tmp_path, force=True, **options)
    assert same_weights(run, small_fit(**options))
    assert run.config == RunFolder(tmp_path).read_config()
    assert (tmp_path / "graph.safetensors").exists() is (options.get("task") != "gc")


def test_force_replaces_our_files_only(tmp_path):
    small_fit(folder=tmp_path, tensorboard=True)
    foreign = [tmp_path / "notes.txt", tmp_path / "checkpoint" / "mine", tmp_path / "tensorboard" / "mine"]
    for file in foreign:
        file.write_text("mine")
    run = small_fit(folder=tmp_path, force=True, seed=1, epochs=2)
    assert all(file.read_text() == "mine" for file in foreign)
    assert visible(tmp_path) == sorted([*FILES, "notes.txt", "tensorboard"])
    assert visible(tmp_path / "tensorboard") == ["mine"]
    assert curve(load_run(tmp_path)) == curve(run) == curve(small_fit(seed=1, epochs=2))


def test_a_run_that_is_replaced_leaves_no_mixture(tmp_path):
    """Killed when the old files are gone and the new settings not yet there, the folder is the old run's, begun."""
    small_fit(folder=tmp_path)
    RunFolder(tmp_path)._clear()
    assert visible(tmp_path) == ["checkpoint", "config.toml"]
    assert same_weights(small_fit(folder=tmp_path), small_fit())


DAMAGES = [
    ("config.toml", lambda data: data.replace(b"format = 1", b"format = 99"), "has the format 99, .* reads 1"),
    ("config.toml", lambda data: data.replace(b"format = 1", b""), "damaged: it has no format; restore it, or train"),
    ("config.toml", lambda data: data.replace(b"format = 1", b'format = "1"'), "damaged: it has no format"),
    ("config.toml", lambda data: b"", "damaged: it has no format"),
    ("config.toml", lambda data: b"facts = 'a'\n" + without(data, b"facts"), "facts is 'a', not a section; restore"),
    ("config.toml", lambda data: b"task = 'x'\n" + without(data, b"task"), "task is 'x', not a section; restore it"),
    ("config.toml", lambda data: data.replace(b"seed = 0", b"seed = '0'", 1), "seed is '0', not a whole number"),
    ("config.toml", lambda data: data[: data.index(b"[facts]")], "damaged: facts is missing, not a section"),
    ("config.toml", lambda data: data[: data.index(b"[task]") + 3], "config.toml is damaged: .*; restore it, or train"),
    ("config.toml", lambda data: b"\xff\xfe" + data, "config.toml is damaged"),
    ("result.json", lambda data: data[:-3], "result.json is damaged .*; delete .*result.json and run the same"),
    ("result.json", lambda data: b"", "result.json is damaged"),
    ("result.json", lambda data: b"{}", r"damaged \('selection' is missing .*; delete .*result.json and run the same"),
    ("result.json", lambda data: b"[1, 2]", r"damaged \(it holds a list, no result\); delete .*result.json"),
    ("result.json", lambda data: data.replace(b'"test"', b'"toast"'), r"damaged \(it has no test auc\); delete"),
    (
        "result.json",
        lambda data: data.replace(b'"parameters": ', b'"parameters": 1'),
        "its checksum is not that of its",
    ),
    ("model.safetensors", lambda data: data[:-9], "model.safetensors is damaged .*; delete .*result.json and run"),
    ("model.safetensors", lambda data: b"", "model.safetensors is damaged"),
    ("model.safetensors", None, "model.safetensors is not there; delete .*result.json and run the same"),
]


def without(data, section):
    """A TOML file without a section."""
    before, _, after = data.partition(b"[" + section + b"]")
    return before + b"[" + after.partition(b"\n[")[2]


@pytest.fixture
def copied(finished, tmp_path):
    """A finished run of one's own to spoil."""
    for file, data in contents(finished).items():
        copy = tmp_path / file.relative_to(finished)
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(data)
    return tmp_path


@pytest.mark.parametrize(("name", "edit", "message"), DAMAGES)
def test_damaged_files(name, edit, message, finished, copied):
    if edit is None:
        (copied / name).unlink()
    else:
        change(copied / name, edit)
    for use in (load_run, lambda folder: small_fit(folder=folder)):
        with pytest.raises(DataError, match=message):
            use(copied)
    if "delete" in message:  # the advice is good
        (copied / name).unlink(missing_ok=True)
        (copied / "result.json").unlink(missing_ok=True)
        small_fit(folder=copied, on_epoch=lambda *_: pytest.fail("trained again"))
        assert same_weights(load_run(copied), load_run(finished))
    assert same_weights(small_fit(folder=copied, force=True), load_run(finished))


EDITS = [
    (b"split_seed = 1234", b"split_seed = 1235", "task.split_seed"),
    (b'name = "lp"', b'name = ["a"]', "task.name"),
    (b"in_features = 16", b'in_features = "x"', "facts.in_features"),
    (b"in_features = 16", b"in_features = 16\nnum_classes = 3", "facts.num_classes"),
    (b"dim = 4", b"dim = 5", "model.dim"),
]


@pytest.mark.parametrize(("old", "new", "name"), EDITS, ids=[name for _, _, name in EDITS])
def test_settings_that_were_edited_are_not_those_of_the_weights(old, new, name, copied):
    change(copied / "config.toml", lambda data: data.replace(old, new, 1))
    with pytest.raises(DataError, match=rf"model.safetensors is of another run than .*config.toml: {name} differs"):
        load_run(copied)


def test_files_of_another_run(copied, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    small_fit(folder=other, data=other_graph())
    for name in ("graph.safetensors", "model.safetensors"):
        change(copied / name, lambda _, name=name: (other / name).read_bytes())
        with pytest.raises(DataError, match=rf"{name} is of another run than .*config.toml"):
            load_run(copied)


@pytest.mark.parametrize("edit", [lambda data: data[:-9], lambda data: b"", None], ids=["cut", "empty", "gone"])
def test_what_follows_from_the_rest_is_written_anew(edit, copied):
    names = ["graph.safetensors"] if edit else ["graph.safetensors", "embeddings.parquet", "report.html"]
    for name in names:
        if edit is None:
            (copied / name).unlink()
        else:
            change(copied / name, edit)
    if edit is not None:
        with pytest.raises(DataError, match=r"graph.safetensors is damaged .*; run the same command again"):
            load_run(copied)
    small_fit(folder=copied, on_epoch=lambda *_: pytest.fail("trained again"))
    assert visible(copied) == FILES
    assert load_run(copied).evaluate() == load_run(copied).metrics["test"]


@pytest.mark.parametrize("name", ["embeddings.parquet", "report.html"])
def test_a_damaged_file_beside_the_result_is_written_again_and_keeps_its_mode(name, copied):
    small_fit(folder=copied)
    before = (copied / name).read_bytes()
    (copied / name).chmod(0o640)
    change(copied / name, lambda data: data[:200] + bytes([data[200] ^ 1]) + data[201:])
    small_fit(folder=copied, on_epoch=lambda *_: pytest.fail("trained again"))
    assert (copied / name).read_bytes() == before
    assert stat.S_IMODE((copied / name).stat().st_mode) == 0o640


@pytest.mark.parametrize(
    ("name", "old", "new"), [("config.toml", b"torch =", b"tarch ="), ("metrics.jsonl", b"0", b"1")]
)
def test_a_change_of_what_describes_a_run_is_noted(name, old, new, copied):
    load_run(copied)  # without a warning
    change(copied / name, lambda data: data.replace(old, new, 1))
    with pytest.warns(DataWarning, match=rf"{name} is not as it was when the run finished: it was damaged or edited"):
        load_run(copied)


def test_a_flipped_bit_of_the_weights_is_noticed(copied):
    data = (copied / "model.safetensors").read_bytes()
    for place in random.Random(0).sample(range(len(data)), 100):
        change(copied / "model.safetensors", lambda _, k=place: data[:k] + bytes([data[k] ^ 4]) + data[k + 1 :])
        with pytest.raises(DataError, match=r"model.safetensors"):
            load_run(copied)


def test_weights_without_a_checksum_are_refused(copied):
    tensors, about = read_tensors(copied / "model.safetensors")
    (copied / "model.safetensors").write_bytes(safetensors.torch.save(tensors, {"h2hgcn": json.dumps(about)}))
    with pytest.raises(DataError, match="its checksum is not that of its contents"):
        load_run(copied)


@pytest.mark.parametrize(("section", "line"), [("task", "calibrate = true"), ("training", "patience = 100")])
def test_a_run_of_an_earlier_version_is_refused(copied, section, line):
    name = line.split()[0]
    change(copied / "config.toml", lambda data: data.replace(line.encode() + b"\n", b"", 1))
    tensors, about = read_tensors(copied / "model.safetensors")
    del about["config"][section][name]
    write_tensors(copied / "model.safetensors", tensors, about)
    with pytest.raises(DataError, match=rf"\[{section}\] lacks {name}: it is of an earlier version of h2hgcn"):
        load_run(copied)


LINKS = [*FILES, "checkpoint/latest.safetensors", "index.json", "index.faiss", "layout.safetensors", "tensorboard",
         ".lock", ".search", "final"]  # fmt: skip


@pytest.mark.parametrize("name", LINKS)
def test_links_are_not_followed(name, copied, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "mine"
    if (copied / name).exists():
        (copied / name).rename(outside)
    else:
        outside.mkdir()
    before = contents(outside) if outside.is_dir() else outside.read_bytes()
    (copied / name).symlink_to(outside)
    for force in (False, True):
        with pytest.raises(DataError, match=f"{name} is a symbolic link"):
            small_fit(folder=copied, force=force, seed=1, tensorboard=True)
    assert before == (contents(outside) if outside.is_dir() else outside.read_bytes())


@pytest.mark.parametrize("name", ["config.toml", "graph.safetensors", "checkpoint/latest.safetensors"])
def test_a_folder_in_place_of_a_file(name, copied):
    (copied / name).unlink()
    (copied / name).mkdir()
    before = contents(copied)
    for force in (False, True):
        with pytest.raises(DataError, match=f"{name} is a folder, where a run has a file; move it away"):
            small_fit(folder=copied, force=force)
    assert contents(copied) == before


@pytest.mark.parametrize("take_away", [shutil.rmtree, lambda folder: folder.rename(folder.with_name("moved"))])
@pytest.mark.parametrize("seconds", [0, 1000], ids=["at a checkpoint", "at the end"])
def test_a_folder_that_is_taken_away_is_not_made_again(take_away, seconds, tmp_path):
    folder = tmp_path / "run"

    def meddle(report, _):
        if report.epoch == 2:
            take_away(folder)

    with pytest.raises(OSError, match="deleted or renamed while it was trained") as caught:
        small_fit(folder=folder, settings={"checkpoint_seconds": seconds}, on_epoch=meddle)
    assert caught.value.filename == str(folder)
    assert not folder.exists()


@pytest.mark.parametrize("edit", [lambda data: data[:-9], lambda data: data.replace(b"epoch", b"\n\n", 1), None])
def test_lines_that_a_checkpoint_counts_on(edit, tmp_path):
    small_fit(folder=tmp_path, should_stop=lambda: len(RunFolder(tmp_path).read_history()) == 2)
    if edit is None:
        (tmp_path / "metrics.jsonl").unlink()
    else:
        change(tmp_path / "metrics.jsonl", edit)
    with pytest.warns(DataWarning, match=r"metrics.jsonl is damaged or missing: . of 2 epochs are left out"):
        run = small_fit(folder=tmp_path)
    assert same_weights(run, small_fit())
    whole = [row for row in curve(small_fit()) if row[0] in [epoch for epoch, *_ in curve(run)]]
    assert curve(run) == whole
    with pytest.warns(DataWarning, match=r"of 4 epochs are left out"):
        assert curve(load_run(tmp_path)) == whole


def test_the_record_holds_whatever_a_caller_says_of_the_data(tmp_path):
    source = {"edges": tmp_path / "e.csv", "weights": None, "directed": False}
    for _ in range(2):
        run = small_fit(folder=tmp_path / "run", source=source, seed=np.int64(3))
    there = RunFolder(tmp_path / "run").read_config()
    assert there == run.config
    assert there["seed"] == 3
    assert there["data"]["edges"] == str(tmp_path / "e.csv")


def test_data_that_were_moved_are_the_same(tmp_path):
    stop = iter((False, True))
    small_fit(folder=tmp_path, source={"edges": "here.csv"}, should_stop=lambda: next(stop))
    run = small_fit(folder=tmp_path, source={"edges": "there.csv"})
    assert run.finished
    assert same_weights(run, small_fit())


def test_how_often_checkpoints_are_written_is_no_setting_of_the_run(tmp_path):
    small_fit(folder=tmp_path, should_stop=lambda: RunFolder(tmp_path).checkpoint.exists())
    run = small_fit(folder=tmp_path, settings={"checkpoint_seconds": 7.0})
    assert run.finished
    assert torch.equal(run.embeddings, small_fit().embeddings)


@pytest.mark.parametrize("task", TASKS)
def test_more_epochs_continue_a_finished_run(task, tmp_path):
    settings = {"schedule": "step", "decay_every": 2, "eval_every": 2}
    small_fit(task, folder=tmp_path, settings=settings)
    RunFolder(tmp_path).index[0].write_text("of the old points")
    whole = small_fit(task, epochs=7, settings=settings)
    trained = []
    longer = small_fit(
        task, folder=tmp_path, epochs=7, settings=settings, on_epoch=lambda r, s: trained.append(r.epoch)
    )
    assert trained == [5, 6, 7]
    assert same_weights(longer, whole)
    assert curve(longer) == curve(whole)
    assert longer.result | {"seconds": 0} == whole.result | {"seconds": 0}
    assert same_weights(load_run(tmp_path, small_data(task)), whole)
    assert load_run(tmp_path, small_data(task)).config == longer.config == whole.config
    assert not RunFolder(tmp_path).index[0].exists()


@pytest.mark.parametrize(
    ("settings", "lost", "message"),
    [
        ({"schedule": "cosine"}, None, r"learning rates \(training.schedule=cosine\) depend on the number of epochs"),
        ({"eval_every": 3}, None, r"last epoch was validated out of turn \(training.eval_every=3\)"),
        ({}, "checkpoint", r"latest.safetensors is not there"),
    ],
)
def test_more_epochs_that_would_not_end_the_same_are_refused(settings, lost, message, tmp_path):
    small_fit(folder=tmp_path, settings=settings)
    if lost is not None:
        RunFolder(tmp_path).checkpoint.unlink()
    before = contents(tmp_path)
    with pytest.raises(DataError, match=rf"of 4 epochs that cannot continue to 9: .*{message}; choose another folder"):
        small_fit(folder=tmp_path, epochs=9, settings=settings)
    assert contents(tmp_path) == before


def test_more_epochs_of_a_run_that_stopped_early(tmp_path):
    settings = {"patience": 1, "lr": 1e-6, "stiefel_lr": 1e-6}
    run = small_fit(folder=tmp_path, epochs=50, settings=settings)
    assert run.result["stopped_early"]
    before = contents(tmp_path)
    with pytest.warns(DataWarning, match=rf"stopped early after epoch {run.result['epochs']} \(training.patience=1\)"):
        again = small_fit(folder=tmp_path, epochs=90, settings=settings)
    assert contents(tmp_path) == before
    assert same_weights(again, run)
    assert same_weights(again, small_fit(epochs=90, settings=settings))


def test_a_run_that_gets_more_epochs_is_killed_before_it_is_written_down(tmp_path):
    small_fit(folder=tmp_path)
    RunFolder(tmp_path).result.unlink()
    assert same_weights(small_fit(folder=tmp_path, epochs=6), small_fit(epochs=6))
