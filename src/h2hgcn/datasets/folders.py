"""Where data are looked for, and where what is made from them is kept."""

import os
from pathlib import Path

import platformdirs

from h2hgcn.errors import DataError

ROOT_VARIABLE = "H2HGCN_DATA"
CACHE_VARIABLE = "H2HGCN_CACHE"


def data_root(root: str | Path | None = None) -> Path:
    """The folder of the data: the one given, ``$H2HGCN_DATA``, or the cache."""
    given = root if root is not None else os.environ.get(ROOT_VARIABLE)
    if not given:
        return cache_folder()
    folder = Path(given).expanduser()
    if not folder.is_dir():
        source = "" if root is not None else f" (from ${ROOT_VARIABLE})"
        raise DataError(f"the data folder {folder}{source} does not exist; create it, or name another one")
    return folder


def cache_folder() -> Path:
    """``$H2HGCN_CACHE``, or this system's cache folder: downloads and processed copies, safe to delete."""
    given = os.environ.get(CACHE_VARIABLE)
    return Path(given).expanduser() if given else platformdirs.user_cache_path("h2hgcn", appauthor=False)


def is_writable(folder: Path) -> bool:
    """Whether files can be put there; a folder that does not exist counts by its nearest parent that does."""
    while not folder.exists():
        folder = folder.parent
    return os.access(folder, os.W_OK)
