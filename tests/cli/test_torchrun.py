"""Processes are dear to start, so one job has to show much: two that train as one does, and what becomes of them."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
import torch
from runs import last_weights

TRAIN = [
    "train", "--dataset", "disease", "--batch-size", "300", "--fanout", "3,2", "--set", "model.dropout=0",
    "--set", "training.threads=1", "--set", "training.patience=none", "--set", "training.checkpoint_seconds=0",
    "--json",
]  # fmt: skip


def start(folder, arguments, **variables):
    return subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder.parent,
        env=os.environ | variables,
    )  # fmt: skip


def losses(folder):
    return [json.loads(line)["loss"] for line in (folder / "metrics.jsonl").read_text().splitlines()]


def killed_job(folder):
    """Runs two processes by torchrun until one of them is killed; returns what was said."""
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "h2hgcn"]
    job = start(folder, [*launcher, *TRAIN, "--epochs", "500", "--out", str(folder)])
    try:
        while not (folder / "metrics.jsonl").exists() or (folder / "metrics.jsonl").read_bytes().count(b"\n") < 2:
            assert job.poll() is None, job.communicate()[1]
            time.sleep(0.05)
        children = Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
        os.kill(int(children[-1]), signal.SIGKILL)
        _, words = job.communicate(timeout=30)
    finally:
        job.kill()
    assert job.returncode != 0
    return words


def two_processes(folder, run, monkeypatch, *options, command=TRAIN):
    """What the first of two processes says, which is this one; the second is started without torchrun."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
    arguments = [*command, "--out", str(folder), *options]
    second = start(folder, ["-m", "h2hgcn", *arguments], RANK="1", **address)
    with monkeypatch.context() as patch:
        for name, value in ({"RANK": "0"} | address).items():
            patch.setenv(name, value)
        first = run(*arguments)
    words = second.communicate(timeout=60)
    assert (first.returncode, second.returncode, *words) == (0, 0, "", ""), first.stderr
    return first


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds its processes by Linux's /proc")
def test_two_processes_train_as_one_does_and_a_killed_job_goes_on(tmp_path, run, monkeypatch):
    words = killed_job(tmp_path / "two")
    assert "another process of the job has ended" in words
    assert ", by 2 processes" in words
    done = len(losses(tmp_path / "two"))
    assert done < 500
    config = tmp_path / "two" / "config.toml"
    config.write_text(config.read_text().replace("epochs = 500", f"epochs = {done + 2}"))
    shutil.copytree(tmp_path / "two", tmp_path / "two-then-one")
    assert run(*TRAIN, "--out", "two-then-one", "--epochs", done + 2).returncode == 0
    two = two_processes(tmp_path / "two", run, monkeypatch, "--epochs", str(done + 2))
    one = run(*TRAIN, "--out", "one", "--epochs", done + 2)
    assert one.returncode == 0, one.stderr
    for name in ("two", "two-then-one"):
        assert losses(tmp_path / name) == pytest.approx(losses(tmp_path / "one"), rel=1e-3)
    results = [json.loads(text) for text in (one.stdout, two.stdout)]
    assert results[1]["resumed_from"] >= 1
    assert results[1]["metrics"]["test"]["auc"] == pytest.approx(results[0]["metrics"]["test"]["auc"], abs=5e-3)
    weights = [last_weights(tmp_path / name) for name in ("one", "two")]
    for name, values in weights[0].items():
        assert torch.allclose(values, weights[1][name], atol=1e-3), name


def test_two_processes_choose_settings_together_and_share_node_vectors(tmp_path, run, monkeypatch):
    edges = "".join(f"{a},{b}\n" for a in range(60) for b in (a + 1, a + 2, (7 * a) % 60) if a != b)
    (tmp_path / "my.csv").write_text("source,target\n" + edges)
    command = [
        "train", "--edges", str(tmp_path / "my.csv"), "--search", "fast", "--epochs", "3", "--dim", "4",
        "--batch-size", "50", "--set", "model.node_vectors=true", "--set", "model.vector_dropout=0",
        "--set", "model.dropout=0", "--set", "model.feature_dropout=0", "--set", "training.threads=1", "--json",
    ]  # fmt: skip
    two_processes(tmp_path / "two", run, monkeypatch, command=command)
    assert run(*command, "--out", "one").returncode == 0
    one, two = (tomllib.loads((tmp_path / name / "config.toml").read_text())["search"] for name in ("one", "two"))
    assert one == two
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), rel=1e-3)
