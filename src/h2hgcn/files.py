"""Files that are written whole or not at all, and tensors in safetensors files."""

import glob
import hashlib
import json
import os
import stat
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import safetensors

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from h2hgcn.errors import DamagedRunError, DataError

if TYPE_CHECKING:
    from torch import Tensor, nn

# Where files cannot be locked: no writer takes so long; what is older was left by one that was killed.
_ABANDONED_SECONDS = 24 * 3600


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Opens a file that takes the name ``path`` only when all was written and reached the disk. A link stays one, and
    a file that is replaced keeps its mode.
    """
    if path.is_symlink():
        path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_remains(path)
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        with part.open("xb") as file:
            _lock(file)
            if path.exists():
                part.chmod(stat.S_IMODE(path.stat().st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        with suppress(OSError):  # the new name reaches the disk, too, where one can sync a folder
            handle = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
    except BaseException as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename in (None, str(part)):
            error.filename = str(path)  # the name that the caller knows
        raise


def _remove_remains(path: Path) -> None:
    """Deletes what was left by writers of this file that were killed: a part that nobody holds locked."""
    for part in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        with suppress(OSError), part.open("r+b") as file:  # another one may be quicker
            if _lock(file) if fcntl else time.time() - part.stat().st_mtime > _ABANDONED_SECONDS:
                part.unlink()


def _lock(file: BinaryIO) -> bool:
    """Locks a file until it is closed or its process ends, unless another process has done so."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # locked, or on a file system that has no locks
        return False
    return True


def stamped(facts: dict[str, Any]) -> dict[str, Any]:
    """What JSON can hold, with a checksum of itself."""
    return facts | {"checksum": _stamp_of(facts)}


def unstamped(facts: dict[str, Any]) -> dict[str, Any]:
    """What ``stamped`` was given; a ``ValueError`` if it is not the same any more."""
    plain = {name: value for name, value in facts.items() if name != "checksum"}
    if facts.get("checksum") != _stamp_of(plain):
        raise ValueError("its checksum is not that of its contents")
    return plain


def _stamp_of(facts: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


Weights = dict[str, "Tensor"]


def write_tensors(path: Path, tensors: Weights, about: dict[str, Any]) -> None:
    """Writes a file with a checksum of its contents, whole or not at all."""
    import safetensors.torch  # here and not above: commands that need no tensors start without PyTorch
    import torch

    # copies, since tensors that share memory are refused
    own = {name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format) for name, tensor in tensors.items()}
    text = json.dumps(about)
    # one entry: the order of several is random, and the same tensors shall give the same file
    data = safetensors.torch.save(own, {"h2hgcn": f"{text}\n{checksum_of(own, text)}"})
    with atomic_write(path) as file:
        file.write(data)


def read_tensors(path: Path, advice: str = "restore it from a copy") -> tuple[Weights, dict[str, Any]]:
    """What ``write_tensors`` wrote. ``advice`` is what to do if the file is damaged or not there."""
    try:
        with safetensors.safe_open(path, "pt") as file:
            text, _, checksum = (file.metadata() or {})["h2hgcn"].partition("\n")
            # copies in PyTorch's own memory: products depend to the last bit on where their numbers begin
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118  # no mapping
        if checksum != checksum_of(tensors, text):
            raise ValueError("its checksum is not that of its contents")
        return tensors, json.loads(text)
    except FileNotFoundError:
        raise DamagedRunError(f"{path} is not there; {advice}") from None
    except (safetensors.SafetensorError, OSError, KeyError, ValueError, RecursionError) as error:
        raise DamagedRunError(f"{path} is damaged or was not written by h2hgcn ({error}); {advice}") from error


def checksum_of(tensors: Weights, text: str = "") -> str:
    """A hash of tensors, with their names, and of a text."""
    import torch

    digest = hashlib.sha256()
    for name, value in sorted(tensors.items()):
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        digest.update(value.contiguous().reshape(-1).view(torch.uint8).numpy().data)
    digest.update(text.encode())
    return digest.hexdigest()


def load_weights(module: "nn.Module", weights: Weights, where: str) -> None:
    """Gives a module its weights, if they are of such a one; ``where`` they came from is named in errors."""
    check_weights(weights, module.state_dict(), where)
    module.load_state_dict(weights)


def check_weights(weights: Weights, own: Weights, where: str) -> None:
    """Raises unless weights have the names, shapes and types of a model's ``own``, and are finite."""
    for name in {**own, **weights}:
        there, here = (tuple(part[name].shape) if name in part else None for part in (weights, own))
        if there != here:
            raise DataError(
                f"{where} does not fit the model: {name} has the shape {there} there and {here} in the model (None is "
                "for a part that it does not have)"
            )
    for name, value in weights.items():
        if value.dtype != own[name].dtype:
            raise DataError(f"{where} does not fit the model: {name} is {value.dtype} there, not {own[name].dtype}")
        if not bool(value.isfinite().all()):
            raise DataError(f"{where} is damaged: {name} holds NaN or infinity; restore it, or train again")


def part_of(tensors: Weights, prefix: str) -> Weights:
    """The tensors whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
