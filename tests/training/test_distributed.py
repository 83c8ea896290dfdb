"""Jobs of several processes: other settings, dead and silent processes, signals."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

# Two processes of a job, each with its own settings; a beat is short, so that a silent one is noticed soon.
SCRIPT = """
import json, os, sys, warnings
import torch
sys.path.insert(0, {tests!r})
from h2hgcn.training import distributed
from h2hgcn.errors import DataError
from h2hgcn.cli.console import StopAfterEpoch
distributed._BEAT, distributed._SILENCE = 0.2, 3.0
from runs import small_fit
torch.set_num_threads(1)
options = json.loads(sys.argv[1])
seed = options.pop("seed", 0)
def say(report, state):
    print(report.epoch, flush=True)
try:
    with StopAfterEpoch() as stop:
        run = small_fit(epochs=options.pop("epochs", 3), seed=seed, settings=dict(batch_size=60) | options,
                        on_epoch=say, should_stop=stop.wanted)
    print("finished" if run.finished else "stopped", flush=True)
except (DataError, ChildProcessError) as error:
    print(type(error).__name__, error, flush=True)
    sys.exit(2)
"""


@pytest.fixture
def job(tmp_path):
    """Starts two processes, each with the settings of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    started = []

    def start(*options):
        for rank, text in enumerate(options):
            variables = {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
            command = [sys.executable, "-c", SCRIPT.format(tests=str(Path(__file__).parent.parent)), text]
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
            started.append(subprocess.Popen(command, cwd=tmp_path, env=os.environ | variables, **pipes))
        return started

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ('{"lr": 0.5}', "process 1 of the job has training.lr=0.5, process 0 has 0.01; start all processes with"),
        ('{"epochs": 2}', "process 1 of the job has training.epochs=2, process 0 has 3"),
        ('{"seed": 4, "batch_size": 50}', "process 1 of the job has training.batch_size=50, process 0 has 60"),
    ],
)
def test_processes_with_other_settings_are_refused_in_all_of_them(job, options, message):
    for process in job("{}", options):
        words, errors = process.communicate(timeout=120)
        assert process.returncode == 2, errors
        assert message in words


def test_a_signal_to_any_process_stops_the_job(job):
    processes = job(*['{"epochs": 100000, "patience": null}'] * 2)
    assert processes[1].stdout.readline() == "1\n"
    processes[1].send_signal(signal.SIGTERM)
    words = [process.communicate(timeout=60)[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert words[0][-1] == words[1][-1] == "stopped"
    assert words[0][-2] == ["1", *words[1]][-2]  # the same epoch; the first of the other process was read above


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="there is no such signal")
def test_a_silent_process_is_given_up(job):
    processes = job(*['{"epochs": 100000, "patience": null}'] * 2)
    assert processes[0].stdout.readline() == "1\n"
    processes[1].send_signal(signal.SIGSTOP)  # its connections stay open, as those of a machine that is gone
    start = time.monotonic()
    words, _ = processes[0].communicate(timeout=30)
    assert time.monotonic() - start < 20
    assert "process 1 is silent" in words
    assert processes[0].returncode != 0
