"""Steps of two processes that share each batch, beside steps of one."""

import multiprocessing
import os
import socket
import time
from itertools import islice
from multiprocessing.connection import Connection
from typing import Any

import torch
from scale_epochs import link_training

from h2hgcn.tasks.base import Sampling
from h2hgcn.training.distributed import joined_ranks
from h2hgcn.training.loop import run_epoch
from h2hgcn.training.settings import epoch_random

_FANOUT = (15, 10)

# Steps of a turn, and turns, of which the first is not measured.
_STEPS, _TURNS = 8, 5


def processes_table(num_edges: int, dim: int, batch: int) -> list[dict[str, Any]]:
    """One process with the batch of each of two, one with that of both, and two."""
    choices = ((1, batch), (1, 2 * batch), (2, 2 * batch))
    alone, doubled, two = (_run(num_edges, dim, size, processes) for processes, size in choices)
    apart = max(abs(a - b) / abs(b) for a, b in zip(two["losses"], doubled["losses"], strict=True))
    return [
        {"processes": processes, "links of a batch": size, "seconds a step": found["seconds"],
         "links a second": round(size / found["seconds"]),
         "speed-up": size / found["seconds"] / (batch / alone["seconds"]), "loss": apart if found is two else "-"}
        for (processes, size), found in zip(choices, (alone, doubled, two), strict=True)
    ]  # fmt: skip


def _run(num_edges: int, dim: int, batch: int, processes: int) -> dict[str, Any]:
    """Losses of all turns, and the seconds of a step in the quickest of them."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    port = _free_port()
    started = [
        context.Process(target=_measure, args=(num_edges, dim, batch, rank, processes, port, theirs))
        for rank in range(processes)
    ]
    for process in started:
        process.start()
    theirs.close()
    found: dict[str, Any] = ours.recv()
    for process in started:
        process.join()
    return found


def _measure(num_edges: int, dim: int, batch: int, rank: int, processes: int, port: int, pipe: Connection) -> None:
    torch.set_num_threads(1)
    training = link_training(num_edges, dim)
    os.environ |= {
        "RANK": str(rank),
        "WORLD_SIZE": str(processes),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    training.problem.sampling = Sampling(batch, _FANOUT, rank=rank, ranks=processes)
    losses, seconds = [], []
    with joined_ranks(torch.device("cpu")) as ranks:
        for turn in range(_TURNS):
            batches = islice(training.problem.batches(epoch_random(0, turn)), _STEPS)
            ranks.from_first(lambda: None)  # all begin together
            start = time.perf_counter()
            losses.append(run_epoch(*training, batches, ranks))
            seconds.append((time.perf_counter() - start) / _STEPS)
    if rank == 0:
        pipe.send({"losses": losses, "seconds": min(seconds[1:])})


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
