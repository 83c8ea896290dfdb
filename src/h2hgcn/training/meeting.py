"""Where the processes of a job find each other, also after some of them have died and all were started again."""

import time
from datetime import timedelta
from uuid import uuid4

from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

# How long processes wait for those that have not come, as PyTorch does.
_PATIENCE = timedelta(minutes=30)

# Seconds between two looks of the first process.
_PAUSE = 0.05


def meeting_store(rank: int, size: int) -> Store:
    """What this process and the others of the same start share, by the variables that torchrun sets.

    torchrun keeps its store when it starts the processes anew, and with it the addresses of those that died: whoever is
    early would try to reach them. So every start has a part of the store to itself.
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
