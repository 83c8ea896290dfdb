"""Files that are there whole or not at all."""

import glob
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

# No writer takes so long; what is older was left by one that was killed. Process numbers would not tell: they mean
# something else on another machine, or in another container, that shares the folder.
_ABANDONED_SECONDS = 24 * 3600


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Opens a file that takes the name ``path`` only when all was written and reached the disk; a link stays one."""
    if path.is_symlink():
        path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_remains(path)
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        _sync_folder(path.parent)
    except BaseException as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename in (None, str(part)):
            error.filename = str(path)  # the name that the caller knows
        raise


def _sync_folder(folder: Path) -> None:
    """The new name reaches the disk, too, on systems where one can say so of a folder; the file itself is safe."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _remove_remains(path: Path) -> None:
    """Deletes what was left by writers of this file that were killed."""
    for part in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        try:
            if time.time() - part.stat().st_mtime > _ABANDONED_SECONDS:
                part.unlink()
        except FileNotFoundError:  # another one was quicker
            continue
