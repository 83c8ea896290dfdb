"""Finds the files of a named dataset: in the data folder, in the cache, or on the network."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from h2hgcn.datasets.folders import cache_folder, data_root, is_writable
from h2hgcn.datasets.named.download import DownloadError, download, sha256_of, unzip
from h2hgcn.errors import DataError


@dataclass(frozen=True)
class SourceFile:
    """A file, its checksum where it is known, and its address where there is one."""

    name: str
    sha256: str | None = None
    url: str | None = None
    archive: str | None = None
    optional: bool = False


@dataclass(frozen=True)
class SourceFolder:
    """The files of one dataset: ``family`` is what PyG's classes call ``root``, ``path`` is inside it."""

    family: str
    path: str
    files: Sequence[SourceFile]
    hint: str = ""

    def candidates(self, root: str | Path | None) -> list[Path]:
        bases = dict.fromkeys([data_root(root), cache_folder()])
        return [folder for base in bases for folder in (base / self.family / self.path, base / self.path)]

    def find(self, root: str | Path | None) -> Path | None:
        """The first folder that holds all the files, or None; nothing is downloaded."""
        needed = [file.name for file in self.files if not file.optional]
        return next((c for c in self.candidates(root) if all((c / name).is_file() for name in needed)), None)

    def obtain(self, root: str | Path | None) -> Path:
        """The folder that holds all the files, downloaded if they are not there yet, and checked."""
        folder = self.find(root) or self._download(root)
        for file in self.files:
            path = folder / file.name
            if file.sha256 is not None and path.is_file() and sha256_of(path) != file.sha256:
                raise DataError(
                    f"{path} has the checksum {sha256_of(path)}, but {file.sha256} was expected: it is damaged or "
                    "another version; put the original in its place, or delete it so that it is downloaded"
                )
        return folder

    def _download(self, root: str | Path | None) -> Path:
        base = data_root(root)
        if not is_writable(base):
            base = cache_folder()
        folder = base / self.family / self.path
        missing = [file for file in self.files if not file.optional and not (folder / file.name).is_file()]
        try:
            if any(file.url is None and file.archive is None for file in missing):
                raise DownloadError("there is no address to download them from")
            for file in missing:
                if file.url is not None:
                    download(file.url, folder / file.name, file.sha256)
            for archive in dict.fromkeys(file.archive for file in missing if file.archive is not None):
                with TemporaryDirectory() as temporary:
                    packed = Path(temporary) / "archive.zip"
                    download(archive, packed)
                    unzip(packed, {file.name: folder / file.name for file in missing if file.archive == archive})
        except (DownloadError, OSError) as error:
            names = ", ".join(file.name for file in missing)
            raise DataError(
                f"files are missing, and could not be downloaded: {error}. Put {names} into {folder}{self.hint}, or "
                "name the folder that holds them with --data or $H2HGCN_DATA"
            ) from error
        self._try_optional(folder)
        return folder

    def _try_optional(self, folder: Path) -> None:
        for file in self.files:
            if file.optional and file.url is not None and not (folder / file.name).is_file():
                with suppress(DownloadError, OSError):  # whoever loads the files says what it goes without
                    download(file.url, folder / file.name, file.sha256)
