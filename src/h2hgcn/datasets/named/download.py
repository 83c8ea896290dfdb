"""Files from the network: with a progress bar, whole, and of the expected content."""

import hashlib
import lzma
import urllib.error
import urllib.request
import zipfile
import zlib
from http.client import HTTPException
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from h2hgcn.errors import DataError
from h2hgcn.files import atomic_write

_TIMEOUT_SECONDS = 30
_CHUNK = 1 << 18

# What damaged, encrypted or oddly packed members end in.
_ZIP_FAULTS = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError)


class DownloadError(DataError):
    """A file that could not be had; nothing was left behind."""


def download(url: str, path: Path, sha256: str | None = None) -> None:
    """Writes ``url`` to ``path``, if all of it arrives and its checksum fits."""
    digest = hashlib.sha256()
    received = 0
    try:
        with (
            urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS) as response,
            atomic_write(path) as file,
            _bar() as bar,
        ):
            length = response.headers.get("Content-Length", "")
            expected = int(length) if length.isascii() and length.isdigit() else None  # no number is no promise
            task = bar.add_task(path.name, total=expected)
            while chunk := response.read(_CHUNK):
                file.write(chunk)
                digest.update(chunk)
                received += len(chunk)
                bar.advance(task, len(chunk))
            if expected is not None and received != expected:
                raise DownloadError(f"{url} broke off after {received} of {expected} bytes; try again")
            if sha256 is not None and digest.hexdigest() != sha256:
                raise DownloadError(
                    f"{url} has the checksum {digest.hexdigest()}, but {sha256} was expected; it was not kept. "
                    "The file at that address has changed, or something between changed it"
                )
    except (urllib.error.URLError, HTTPException, TimeoutError, ConnectionError) as error:
        raise DownloadError(f"{url} could not be had ({error})") from error


def unzip(archive: Path, wanted: dict[str, Path]) -> None:
    """Takes members, by the names their paths end with, out of an archive; their own checksums are verified."""
    try:
        with zipfile.ZipFile(archive) as opened:
            members = {Path(name).name: name for name in opened.namelist()}
            for name, path in wanted.items():
                if name not in members:
                    raise DownloadError(f"{archive.name} does not hold {name}, but {', '.join(sorted(members))}")
                with opened.open(members[name]) as source, atomic_write(path) as file:
                    while chunk := source.read(_CHUNK):
                        file.write(chunk)
    except _ZIP_FAULTS as error:
        raise DownloadError(f"{archive.name} is not a whole zip archive ({error}); try again") from error


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _bar() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)
