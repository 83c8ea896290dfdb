"""NumPy's arrays: out of its files, without the pickles that they can hold, and out of tensors."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from h2hgcn.errors import DataError


def load_arrays(path: Path) -> Any:
    """What a .npy or .npz file holds: an array, or a dictionary of them."""
    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return loaded
            members = {name: loaded[name] for name in loaded.files}
    except Exception as error:  # NumPy lets through whatever zip, zlib and its parser of headers raise
        raise DataError(f"{path} cannot be read as NumPy arrays ({error}); write or download it again") from error
    return {name: member for name, member in members.items() if isinstance(member, np.ndarray)}


def to_numpy(values: Any) -> NDArray[Any]:
    """An array of a tensor, wherever it lies and whatever depends on it, or of anything that NumPy takes for one."""
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu()
        return (values.float() if values.dtype == torch.bfloat16 else values).numpy()
    return np.asarray(values)
