"""Text files as they come: compressed or not, with any line ends, with or without a byte order mark."""

import gzip
import zlib
from pathlib import Path

from h2hgcn.errors import DataError


def read_text(path: Path) -> str:
    r"""The text of a UTF-8 file; every line end is ``\n``, so that all who read it count the same lines."""
    content = _read_bytes(path)
    if b"\r" in content:
        content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if b"\0" in content:
        line = content[: content.index(b"\0")].count(b"\n") + 1
        raise DataError(
            f"{path}, line {line}: there is a NUL byte, so this is no text; convert it, or name another file"
        )
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise DataError(f"{path}, line {line}: this is not UTF-8 text ({error.reason}); save it as UTF-8") from None


def _read_bytes(path: Path) -> bytes:
    try:
        if path.suffix.lower() == ".gz":
            with gzip.open(path) as file:
                return file.read()
        return path.read_bytes()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is not a whole gzip file ({error}); copy or download it again") from error
