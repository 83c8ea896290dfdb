"""NumPy's files, without the pickles that they can hold."""

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from h2hgcn.errors import DataError


def load_arrays(path: Path) -> Any:
    """What a .npy or .npz file holds: an array, or a dictionary of them."""
    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            return loaded if isinstance(loaded, np.ndarray) else {name: loaded[name] for name in loaded.files}
    except (ValueError, EOFError, OSError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path} cannot be read as NumPy arrays ({error}); write or download it again") from error
