"""An accelerator without hardware (``backend.cpp``): the device ``mockgpu``, and a count of host synchronizations."""

import hashlib
import os
import shutil
import subprocess
import tempfile
import traceback
import types
from pathlib import Path

import filelock
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from h2hgcn.training import TrainingSettings

NAME = "mockgpu"
_SOURCE = Path(__file__).with_name("backend.cpp")
_PACKAGE = f"{os.sep}h2hgcn{os.sep}"


def _build():
    """The compiled backend, in a folder of temporary files: one for each version of it and of PyTorch."""
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None:
        raise OSError("no C++ compiler to build the accelerator double with")
    torch_folder = Path(torch.__file__).parent
    version = hashlib.sha256(_SOURCE.read_bytes() + f"{torch.__version__} {torch_folder}".encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"h2hgcn-accelerator-{os.getuid()}-{version}"
    folder.mkdir(mode=0o700, exist_ok=True)
    library = folder / "backend.so"
    with filelock.FileLock(folder / "lock"):
        if not library.exists():
            command = [compiler, "-O1", "-std=c++20", "-shared", "-fPIC", "-isystem", str(torch_folder / "include")]
            command += [str(_SOURCE), "-o", str(folder / "new.so"), f"-L{torch_folder / 'lib'}", "-lc10", "-ltorch_cpu"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise OSError(f"the accelerator double does not compile here: {done.stderr[-2000:]}")
            (folder / "new.so").replace(library)
    return library


def _load():
    """Registers the device; before the first backward pass of the process, when autograd starts a thread for each."""
    torch.ops.load_library(_build())
    torch.utils.rename_privateuse1_backend(NAME)
    module = types.ModuleType(f"torch.{NAME}")
    module.is_available, module.device_count, module.current_device = (lambda: True), (lambda: 1), (lambda: 0)
    module._is_in_bad_fork, module.manual_seed_all = (lambda: False), (lambda seed: None)
    torch._register_device_module(NAME, module)


try:
    _load()
    _MISSING = None
except OSError as error:
    _MISSING = str(error)


@pytest.fixture
def device():
    if _MISSING is not None:
        pytest.skip(_MISSING)
    return torch.device(NAME)


@pytest.fixture
def on_device(device, monkeypatch):
    """Within, ``device="auto"`` is the double."""
    monkeypatch.setattr(TrainingSettings, "torch_device", lambda settings: device)
    return device


# Operations whose result, or whose shape, the host waits for on a GPU.
_WAITING = {
    "_local_scalar_dense", "nonzero", "masked_select", "equal", "bincount", "_unique2", "unique_consecutive",
    "unique_dim", "is_nonzero", "_coalesce", "linalg_inv", "linalg_solve", "linalg_cholesky", "_linalg_solve_ex",
}  # fmt: skip


class HostSyncs(TorchDispatchMode):
    """Lists the operations after which a host would wait for its device, with the line that asked for each."""

    def __init__(self):
        super().__init__()
        self.found = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        tensors = [part for part in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(part, torch.Tensor)]
        if any(x.device.type == NAME for x in tensors) and _waits(function, tensors, args, kwargs or {}, result):
            self.found.append(f"{function} at {_place()}")
        return result

    def __str__(self):
        return "\n".join(self.found)


def _waits(function, tensors, args, kwargs, result):
    name = function.overloadpacket.__name__
    if name in ("copy_", "_copy_from", "_to_copy"):
        target = args[0] if name == "copy_" else result
        return target.is_cpu
    if name == "repeat_interleave":
        return kwargs.get("output_size") is None
    if name in ("index", "index_put", "index_put_", "_index_put_impl_"):
        return any(x is not None and x.dtype in (torch.bool, torch.uint8) for x in args[1])
    return name in _WAITING


def _place():
    frames = [frame for frame in traceback.extract_stack() if _PACKAGE in frame.filename]
    return " < ".join(f"{frame.filename.split(_PACKAGE)[-1]}:{frame.lineno}" for frame in frames[:-4:-1]) or "autograd"


@pytest.fixture
def host_syncs():
    return HostSyncs
