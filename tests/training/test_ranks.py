import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from runs import last_weights

from h2hgcn.errors import DataError
from h2hgcn.layers import prepare_adjacency
from h2hgcn.layers.sampled_adjacency import sample_adjacency
from h2hgcn.models import ENCODERS
from h2hgcn.tasks.sampling import Sampling
from h2hgcn.training.ranks import ALONE, joined_ranks

TWO = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
TRAIN = [
    "-m", "h2hgcn", "train", "--dataset", "disease", "--batch-size", "300", "--fanout", "3,2",
    "--set", "model.dropout=0", "--set", "training.threads=1", "--set", "training.patience=none",
]  # fmt: skip


def command(launcher, folder, epochs, *options):
    return [sys.executable, *launcher, *TRAIN, "--epochs", str(epochs), "--out", str(folder), *options]


def run(launcher, folder, epochs, *options):
    return subprocess.run(
        command(launcher, folder, epochs, *options), capture_output=True, text=True, timeout=240, cwd=folder.parent
    )


def losses(folder):
    return [json.loads(line)["loss"] for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("task", ["lp", "nc"])
def test_two_processes_train_as_one_does(tmp_path, task):
    one, two = (run(start, tmp_path / name, 3, "--task", task, "--json") for start, name in (([], "one"), (TWO, "two")))
    assert one.returncode == 0, one.stderr
    assert two.returncode == 0, two.stderr
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), rel=1e-4)
    results = [json.loads(result.stdout) for result in (one, two)]  # one of the two speaks
    name = results[0]["selection"]
    assert results[1]["metrics"]["test"][name] == pytest.approx(results[0]["metrics"]["test"][name], abs=2e-3)
    assert ", by 2 processes" in two.stderr
    first, second = (last_weights(tmp_path / name) for name in ("one", "two"))
    for key in first:
        assert torch.allclose(first[key], second[key], atol=1e-4), key


def test_a_process_that_is_killed_ends_the_job_which_then_goes_on_with_any_number(tmp_path):
    folder = tmp_path / "killed"
    options = ("--set", "training.checkpoint_seconds=0")
    job = subprocess.Popen(
        command(TWO, folder, 500, *options), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, cwd=tmp_path
    )
    try:
        while not (folder / "metrics.jsonl").exists() or (folder / "metrics.jsonl").read_bytes().count(b"\n") < 2:
            assert job.poll() is None, job.stderr.read()
            time.sleep(0.05)
        children = Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
        os.kill(int(children[-1]), signal.SIGKILL)
        start = time.monotonic()
        _, words = job.communicate(timeout=60)
        assert time.monotonic() - start < 30
    finally:
        job.kill()
    assert job.returncode != 0
    assert "another process of the job has ended" in words
    done = len(losses(folder))
    assert done < 500
    config = folder / "config.toml"
    config.write_text(config.read_text().replace("epochs = 500", f"epochs = {done + 2}"))
    went_on = run([], folder, done + 2, *options)
    assert went_on.returncode == 0, went_on.stderr
    whole = run([], tmp_path / "whole", done + 2, *options)
    assert whole.returncode == 0, whole.stderr
    assert losses(folder) == pytest.approx(losses(tmp_path / "whole"), rel=1e-3)


@pytest.mark.parametrize("name", [name for name, kind in ENCODERS.items() if kind.inductive and "lp" in kind.tasks])
def test_a_node_has_the_same_points_whoever_draws_for_it(name):
    index = torch.randint(300, (2, 1200), generator=torch.Generator().manual_seed(0))
    graph = prepare_adjacency(index, None, 300)
    x, model = torch.randn(300, 4), ENCODERS[name](4, 3)
    whole = sample_adjacency(graph, np.arange(0, 300, 7), [3, 2], 5)
    part = sample_adjacency(graph, [7, 28, 210], [3, 2], 5)
    assert part.num_nodes < whole.num_nodes
    assert torch.allclose(model(x[part.nodes], part)[:3], model(x[whole.nodes], whole)[[1, 4, 30]], atol=1e-6)


def test_batches_are_shared_out():
    parts = [Sampling(6, (2,), rank=rank, ranks=4) for rank in range(4)]
    batches = [list(part.shares(14, np.random.RandomState(0))) for part in parts]
    assert [len(chosen) for chosen, _ in batches[0]] == [6, 8]  # two at the end would leave two processes idle
    for number in range(2):
        chosen, seed = batches[0][number]
        assert all(each[number][1] == seed for each in batches)
        mine = [each[number][0][part.mine] for part, each in zip(parts, batches, strict=True)]
        assert sorted(np.concatenate(mine)) == sorted(chosen)


def test_alone_nothing_is_shared():
    with joined_ranks(torch.device("cpu")) as ranks:
        assert ranks is ALONE
        assert ranks.from_first(lambda: 7) == 7
        assert ranks.add_up([], torch.tensor(2.0), 0.5) == 2.0


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"RANK": "2", "WORLD_SIZE": "2"}, "RANK=2 is not below WORLD_SIZE=2"),
        ({"RANK": "-1", "WORLD_SIZE": "2"}, "RANK=-1"),
        ({"RANK": "0"}, "WORLD_SIZE=None: both"),
        ({"WORLD_SIZE": "two", "RANK": "0"}, "WORLD_SIZE=two: both have to be whole numbers"),
        ({"RANK": "0", "WORLD_SIZE": "2"}, "MASTER_ADDR and MASTER_PORT is not set"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(monkeypatch, variables, message):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(DataError, match=message), joined_ranks(torch.device("cpu")):
        pass
