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

from h2hgcn.errors import DataError

# How long processes wait for those that have not come, as PyTorch does.
_PATIENCE = timedelta(minutes=30)

# Seconds between two looks of the first process.
_PAUSE = 0.05

# Seconds between two signs of life of a process, and after how many without one it counts as dead.
_BEAT, _SILENCE = 1.0, 20.0


def meeting_store(rank: int, size: int) -> Store:
    """What this process and the others of the same start share, by the variables that torchrun sets.

    torchrun keeps its store when it starts the processes again, and with it the addresses of those that died: whoever
    is early would try to reach them. So every start has a part of the store to itself.
    """
    store, _, _ = next(rendezvous("env://", rank, size, timeout=_PATIENCE))
    return PrefixStore(agreed_name(store, rank, size), store)


def agreed_name(store: Store, rank: int, size: int) -> str:
    """A name that the processes of one start agree on, and that no earlier start had.

    The first process makes it up and answers whoever introduces itself by a token of its own; what an earlier process
    of the same rank left in the store is answered, too, and nobody reads that answer. Numbers of restarts would not do:
    on several machines they differ.
    """
    if rank:
        token = uuid4().hex
        store.set(_introduction(rank), token)
        name = store.get(f"h2hgcn/answer/{token}").decode()
        store.set(_presence(name, rank), "here")
        return name
    name, answered, missing = uuid4().hex, set(), set(range(1, size))
    end = time.monotonic() + _PATIENCE.total_seconds()
    while missing:
        missing = {other for other in missing if not store.check([_presence(name, other)])}
        for other in missing:
            if store.check([_introduction(other)]):
                token = store.get(_introduction(other)).decode()
                if token not in answered:
                    store.set(f"h2hgcn/answer/{token}", name)
                    answered.add(token)
        if missing and time.monotonic() > end:
            raise RuntimeError(f"processes {sorted(missing)} of {size} have not come within {_PATIENCE}")
        time.sleep(_PAUSE if missing else 0)
    return name


def _introduction(rank: int) -> str:
    return f"h2hgcn/introduction/{rank}"


def _presence(name: str, rank: int) -> str:
    return f"h2hgcn/presence/{name}/{rank}"


T = TypeVar("T")


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
        data = _as_tensor(json.dumps(value).encode())
        counts = [int(count) for count in self._from_all(torch.tensor([len(data)], device=data.device))]
        padded = data.new_zeros(max(counts))
        padded[: len(data)] = data
        parts = zip(self._from_all(padded), counts, strict=True)
        return [json.loads(part[:count].cpu().numpy().tobytes()) for part, count in parts]

    def check_same(self, what: str, value: Any) -> None:
        """Raises, in all processes, unless they have the same value, anything that JSON can hold."""
        every = self.from_all(value)
        for rank, other in enumerate(every):
            if other != every[0]:
                raise DataError(
                    f"process {rank} of the job has {what}={other}, process 0 has {every[0]}; start all processes with "
                    "the same settings, data and versions"
                )

    def any(self, ask: Callable[[], bool]) -> bool:
        """Whether the answer is yes in any process."""
        if self.size == 1:
            return ask()
        answer = _as_tensor(bytes([ask()]))
        self._together(lambda: dist.all_reduce(answer, dist.ReduceOp.MAX, async_op=True))
        return bool(answer)

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

    def add_up(self, parameters: Sequence[nn.Parameter], loss: Tensor, share: float) -> Tensor:
        """Replaces gradients by those of the whole batch, of which this process had a ``share``; returns its loss."""
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        for parameter in parameters:
            if parameter.grad is not None and parameter.grad.is_sparse:
                parameter.grad = self._sum_of_rows(parameter.grad * share)
        gradients = [gradient for gradient in gradients if not gradient.is_sparse]
        flat = torch.cat([loss.reshape(1), *(gradient.reshape(-1) for gradient in gradients)]) * share
        self._together(lambda: dist.all_reduce(flat, async_op=True))
        sizes = [gradient.numel() for gradient in gradients]
        for gradient, total in zip(gradients, flat[1:].split(sizes), strict=True):
            gradient.copy_(total.view_as(gradient))
        return flat[0]

    def _sum_of_rows(self, gradient: Tensor) -> Tensor:
        """The sum of all processes' sparse gradients, in the order of ranks."""
        gradient = gradient.coalesce()
        rows, values = gradient.indices()[0], gradient.values()
        counts = [int(count) for count in self._from_all(torch.tensor([len(rows)], device=rows.device))]
        padded = rows.new_zeros(max(counts)), values.new_zeros(max(counts), values.shape[1])
        padded[0][: len(rows)], padded[1][: len(rows)] = rows, values
        all_rows, all_values = (
            torch.cat([part[:count] for part, count in zip(self._from_all(mine), counts, strict=True)])
            for mine in padded
        )
        return torch.sparse_coo_tensor(all_rows.unsqueeze(0), all_values, gradient.shape, check_invariants=False)

    def _from_all(self, mine: Tensor) -> list[Tensor]:
        """What each process has, tensors of one shape, in the order of ranks."""
        parts = [torch.empty_like(mine) for _ in range(self.size)]  # out of memory is not the others' fault
        self._together(lambda: dist.all_gather(parts, mine, async_op=True))
        return parts

    def agree_on(self, buffers: Sequence[Tensor]) -> None:
        """Replaces what each process measured on its part of a batch by the mean of all."""
        if not buffers:
            return
        flat = torch.cat([buffer.reshape(-1) for buffer in buffers])
        self._together(lambda: dist.all_reduce(flat, async_op=True))
        for buffer, mean in zip(buffers, (flat / self.size).split([buffer.numel() for buffer in buffers]), strict=True):
            buffer.copy_(mean.view_as(buffer))


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
        # a connection of its own: another one may be busy
        self._store = store.clone()  # type: ignore[attr-defined]
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
        store = meeting_store(rank, size)
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo", store=store, rank=rank, world_size=size)
    life = _SignsOfLife(store, rank, size)
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
    texts = {name: os.environ.get(name) for name in ("RANK", "WORLD_SIZE")}
    if all(text is None for text in texts.values()):
        return 0, 1
    try:
        rank, size = (int(text or "") for text in texts.values())
    except ValueError:
        shown = ", ".join(f"{name} is not set" if text is None else f"{name}={text}" for name, text in texts.items())
        raise DataError(
            f"{shown}: both have to be whole numbers, or unset; start with torchrun, which sets them"
        ) from None
    if not 0 <= rank < size:
        raise DataError(f"RANK={rank} is not from 0 to WORLD_SIZE={size} less 1; start with torchrun, which sets both")
    missing = [name for name in ("MASTER_ADDR", "MASTER_PORT") if not os.environ.get(name)]
    if size > 1 and missing:
        raise DataError(
            f"WORLD_SIZE={size}, but without {' and '.join(missing)}; start with torchrun, which sets them all"
        )
    return rank, size


@contextmanager
def _peers() -> Iterator[None]:
    """Within, it is noticed if another process ends."""
    try:
        yield
    except RuntimeError as error:
        words = re.sub(r"^(\[[^\]]*\]\s*)+", "", str(error).splitlines()[0]).split(". ")[0]
        raise ChildProcessError(
            f"another process of the job has ended or cannot be reached ({words}); if it printed an error, fix that; "
            "the same command then resumes from the last checkpoint, if there is one"
        ) from error
