"""Files that are there whole or not at all."""

import glob
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Opens a file that takes the name ``path`` only when all was written and reached the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_remains(path)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        with suppress(FileNotFoundError):
            part.unlink()
        raise


def _remove_remains(path: Path) -> None:
    """Deletes what processes left that were killed while they wrote this file."""
    for part in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        process = part.name.removesuffix(".part").rpartition(".")[2]
        if process.isdigit() and not _is_running(int(process)):
            part.unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    if os.name != "posix":
        return True  # a signal of 0 would end it there
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
