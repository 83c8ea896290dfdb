"""Processes that find each other, also on a store that knows dead ones."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import torch.distributed as dist

from h2hgcn.training import distributed as meeting
from h2hgcn.training.distributed import agreed_name

# Rank 1 comes late, and dies at its first start, once both have met.
SCRIPT = """
import os, signal, time
import torch
from h2hgcn.training.distributed import joined_ranks

if os.environ["RANK"] == "1":
    time.sleep(3)
with joined_ranks(torch.device("cpu")) as ranks:
    assert ranks.add_up([], torch.tensor(float(ranks.rank)), 1.0) == 1
    if ranks.rank and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        os.kill(os.getpid(), signal.SIGKILL)
    ranks.add_up([], torch.tensor(1.0), 1.0)
    os.write(1, b"met at start %s\\n" % os.environ["TORCHELASTIC_RESTART_COUNT"].encode())
"""


@pytest.fixture
def store():
    return dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, timeout=timedelta(seconds=20))


def test_every_start_has_a_name_of_its_own(store):
    names = []
    for _ in range(3):
        with ThreadPoolExecutor(3) as pool:
            clients = [dist.TCPStore("127.0.0.1", store.port, is_master=False) for _ in range(3)]
            found = list(pool.map(agreed_name, clients, range(3), [3] * 3))
        assert len(set(found)) == 1
        names.append(found[0])
    assert len(set(names)) == 3


def test_one_that_does_not_come(store, monkeypatch):
    monkeypatch.setattr(meeting, "_PATIENCE", timedelta(seconds=0.2))
    store.set("h2hgcn/introduction/1", "of an earlier start")
    with pytest.raises(RuntimeError, match=r"processes \[1\] of 2 have not come"):
        agreed_name(store, 0, 2)


def test_torchrun_starts_a_job_again_whose_processes_come_at_different_times(tmp_path):
    (tmp_path / "job.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    run = subprocess.run(
        [*command, "--max-restarts", "1", "job.py"], cwd=tmp_path, env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True, text=True, timeout=180,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    assert run.stdout.count("met at start 1") == 2
