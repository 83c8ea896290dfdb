"""Several processes that train one model."""

import atexit
import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from h2hgcn.errors import DataError, first_line

# How long processes wait for each other at the start, as PyTorch does, and seconds between two looks of the first one.
_PATIENCE, _PAUSE = timedelta(minutes=30), 0.05

# Seconds between two signs of life of a process, and after how many without one it counts as dead.
_BEAT, _SILENCE = 1.0, 20.0

T = TypeVar("T")


def agreed_name(store: Store, rank: int, size: int) -> str:
    """A name that the processes of one start agree on, and that no earlier start had.

    torchrun keeps its store when it starts the processes again, and with it the addresses of those that died; so every
    start uses a part of the store under a name of its own. The first process makes it up and answers each process by
    the token that it left. What an earlier process of the same rank left is answered, too, and nobody reads that.
    """
    if rank:
        token = uuid4().hex
        store.set(f"h2hgcn/introduction/{rank}", token)
        name = store.get(f"h2hgcn/answer/{token}").decode()
        store.set(f"h2hgcn/presence/{name}/{rank}", "here")
        return name
    name, missing = uuid4().hex, set(range(1, size))
    end = time.monotonic() + _PATIENCE.total_seconds()
    while missing := {other for other in missing if not store.check([f"h2hgcn/presence/{name}/{other}"])}:
        if time.monotonic() > end:
            raise RuntimeError(f"processes {sorted(missing)} of {size} have not come within {_PATIENCE}")
        for other in missing:
            if store.check([f"h2hgcn/introduction/{other}"]):
                store.set(f"h2hgcn/answer/{store.get(f'h2hgcn/introduction/{other}').decode()}", name)
        time.sleep(_PAUSE)
    return name


class Ranks:
    """One process is ``first`` of ``size``, which is 1 where nobody started several.

    Whatever is decided on (weights, metrics, when to stop) is the same in all of them; the first alone writes.
    """

    def __init__(self, rank: int = 0, size: int = 1, life: "_SignsOfLife | None" = None) -> None:
        self.rank = rank
        self.size = size
        self._life = life

    @property
    def first(self) -> bool:
        return self.rank == 0

    def from_first(self, compute: Callable[[], T]) -> T:
        """What the first process computes, in all of them: anything that JSON can hold."""
        if self.size == 1:
            return compute()
        found: T = json.loads(self.bytes_from_first(lambda: json.dumps(compute()).encode()))
        return found

    def bytes_from_first(self, compute: Callable[[], bytes]) -> bytes:
        """The bytes that the first process has, in all of them."""
        if self.size == 1:
            return compute()
        data = _as_tensor(compute() if self.first else b"")
        length = torch.tensor([len(data)], device=data.device)
        self._together(lambda: dist.broadcast(length, 0, async_op=True))
        if not self.first:
            data = data.new_empty(int(length))
        if len(data):
            self._together(lambda: dist.broadcast(data, 0, async_op=True))
        return data.cpu().numpy().tobytes()

    def from_all(self, value: T) -> list[T]:
        """What each process has, anything that JSON can hold, in the order of ranks."""
        if self.size == 1:
            return [value]
        parts = self._from_all(_as_tensor(json.dumps(value).encode()))
        return [json.loads(part.cpu().numpy().tobytes()) for part in parts]

    def check_same(self, value: T, differing: Callable[[T, T], tuple[str, Any, Any] | None]) -> None:
        """Raises, in all processes, if ``differing`` names what the values of two processes differ in. JSON can hold
        the values.
        """
        first, *others = self.from_all(value)
        for rank, other in enumerate(others, 1):
            found = differing(first, other)
            if found is not None:
                raise DataError(
                    f"process {rank} of the job has {found[0]}={found[2]}, process 0 has {found[1]}; start all "
                    "processes with the same settings, data and versions"
                )

    def any(self, ask: Callable[[], bool]) -> bool:
        """Whether the answer is yes in any process."""
        return ask() if self.size == 1 else any(self.from_all(bool(ask())))

    def add_up(self, parameters: Sequence[nn.Parameter], loss: Tensor, share: float) -> Tensor:
        """Replaces gradients by those of the whole batch, of which this process had a ``share``; returns its loss."""
        dense = [loss.reshape(1)]
        for parameter in parameters:
            if parameter.grad is not None and parameter.grad.is_sparse:
                parameter.grad = self._sum_of_rows(parameter.grad * share)
            elif parameter.grad is not None:
                dense.append(parameter.grad)
        self._sum(dense, share)
        return dense[0][0]

    def average(self, buffers: Sequence[Tensor]) -> None:
        """Replaces what each process measured on its part of a batch by the mean of all."""
        if buffers:
            self._sum(buffers)
        for buffer in buffers:
            buffer.div_(self.size)

    def _sum(self, tensors: Sequence[Tensor], factor: float = 1.0) -> None:
        """Replaces tensors by the sums over all processes of what each has times its ``factor``."""
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors]) * factor
        self._together(lambda: dist.all_reduce(flat, async_op=True))
        for tensor, total in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
            tensor.copy_(total.view_as(tensor))

    def _sum_of_rows(self, gradient: Tensor) -> Tensor:
        """The sum of all processes' sparse gradients, in the order of ranks."""
        gradient = gradient.coalesce()
        rows, values = (torch.cat(self._from_all(mine)) for mine in (gradient.indices()[0], gradient.values()))
        return torch.sparse_coo_tensor(rows.unsqueeze(0), values, gradient.shape, check_invariants=False)

    def _from_all(self, mine: Tensor) -> list[Tensor]:
        """What each process has, in the order of ranks: tensors that may differ in their number of rows."""
        count = torch.tensor([len(mine)], device=mine.device)
        counts = [torch.empty_like(count) for _ in range(self.size)]  # out of memory is not the others' fault
        self._together(lambda: dist.all_gather(counts, count, async_op=True))
        padded = mine.new_zeros(max(map(int, counts)), *mine.shape[1:])
        padded[: len(mine)] = mine
        parts = [torch.empty_like(padded) for _ in range(self.size)]
        self._together(lambda: dist.all_gather(parts, padded, async_op=True))
        return [part[: int(count)] for part, count in zip(parts, counts, strict=True)]

    def _together(self, start: Callable[[], Any]) -> None:
        """Waits for what all processes do together, as long as the others are alive."""
        with _peers():
            work = start()
            while self._life is not None and not work.is_completed():
                try:
                    work.wait(timedelta(seconds=_BEAT))
                except RuntimeError:
                    if work.is_completed():
                        raise
                    self._life.check()
            if work is not None:
                work.wait()


ALONE = Ranks()


def _as_tensor(data: bytes) -> Tensor:
    """Bytes where processes can exchange them."""
    device = "cuda" if dist.get_backend() == "nccl" else "cpu"
    return torch.from_numpy(np.frombuffer(data, np.uint8).copy()).to(device)


class _SignsOfLife(threading.Thread):
    """Tells the other processes every second that this one is alive, and listens to them: a machine that is gone does
    not close its connections.
    """

    def __init__(self, store: Store, rank: int, size: int) -> None:
        super().__init__(daemon=True)
        self._store = store
        self._rank, self._others = rank, [other for other in range(size) if other != rank]
        self._ended = threading.Event()
        self._problem: str | None = None

    def run(self) -> None:
        heard = {other: (b"", time.monotonic()) for other in self._others}
        try:
            while not self._ended.wait(_BEAT):
                self._store.set(f"alive/{self._rank}", uuid4().hex)
                for other, (last, when) in heard.items():
                    sign = self._store.get(f"alive/{other}") if self._store.check([f"alive/{other}"]) else b""
                    if sign != last:
                        heard[other] = sign, time.monotonic()
                    elif time.monotonic() - when > _SILENCE:
                        self._problem = f"process {other} is silent"
        except RuntimeError:
            self._problem = "the process that they meet at is gone"

    def check(self) -> None:
        """Raises if a process is dead."""
        if self._problem is not None:
            # what the process group waits for never comes, and so it would never be destroyed
            atexit.register(_leave)
            raise RuntimeError(self._problem)

    def end(self) -> bool:
        """Ends the signs; False if a process is dead."""
        self._ended.set()
        return self._problem is None


def _leave() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


_joined: list[_SignsOfLife] = []  # one, while processes work together


@contextmanager
def joined_ranks(device: torch.device) -> Iterator[Ranks]:
    """The processes that torchrun started, for as long as they work together; this one alone, if it did not."""
    if dist.is_available() and dist.is_initialized():  # within, they have joined already
        yield Ranks(dist.get_rank(), dist.get_world_size(), *_joined)
        return
    rank, size = _given()
    if size == 1:
        yield ALONE
        return
    if device.type == "cuda":
        torch.cuda.set_device(device)  # what NCCL sends objects with
    with _peers():
        kept, _, _ = next(rendezvous("env://", rank, size, timeout=_PATIENCE))
        name = agreed_name(kept, rank, size)
        store = PrefixStore(name, kept)
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo", store=store, rank=rank, world_size=size)
        # a connection of its own, since the other one may be busy
        address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        own = dist.TCPStore(address, port, wait_for_workers=False)  # type: ignore[attr-defined]
    life = _SignsOfLife(PrefixStore(name, own), rank, size)
    life.start()
    _joined.append(life)
    try:
        yield Ranks(rank, size, life)
    finally:
        _joined.remove(life)
        if life.end():
            dist.destroy_process_group()


def _given() -> tuple[int, int]:
    """Rank and number of processes, by the variables that torchrun sets."""
    given = {name: os.environ.get(name) for name in ("RANK", "WORLD_SIZE")}
    if all(text is None for text in given.values()):
        return 0, 1
    start = "start with torchrun, which sets them"
    rank, size = (int(text) if text is not None and text.isdecimal() else -1 for text in given.values())
    if not 0 <= rank < size:
        shown = ", ".join(f"{name} is not set" if text is None else f"{name}={text}" for name, text in given.items())
        raise DataError(f"{shown}: both have to be whole numbers, RANK from 0 to WORLD_SIZE less 1, or unset; {start}")
    missing = [name for name in ("MASTER_ADDR", "MASTER_PORT") if not os.environ.get(name)]
    if size > 1 and missing:
        raise DataError(f"WORLD_SIZE={size}, but without {' and '.join(missing)}; {start}")
    return rank, size


@contextmanager
def _peers() -> Iterator[None]:
    """Within, it is noticed if another process ends."""
    try:
        yield
    except RuntimeError as error:
        words = re.sub(r"^(\[[^\]]*\]\s*)+", "", first_line(error)).split(". ")[0]
        raise ChildProcessError(
            f"another process of the job has ended or cannot be reached ({words}); if it printed an error, fix that; "
            "the same command then resumes from the last checkpoint, if there is one"
        ) from error
