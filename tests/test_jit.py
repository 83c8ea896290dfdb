import subprocess
import sys


def test_import_and_use_where_no_cache_can_be_written(tmp_path):
    """Numba would refuse to decorate there."""
    code = (
        "import numba.core.caching as caching\n"
        "for locator in caching.CacheImpl._locator_classes: locator.from_function = classmethod(lambda *a: None)\n"
        "import torch\n"
        "from h2hgcn.layers import H2HConv\n"
        "from h2hgcn.geometry import lorentz\n"
        "print(H2HConv(3, 3)(lorentz.exp_origin(torch.ones(2, 3)), torch.tensor([[0], [1]])).shape)\n"
    )
    result = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert "torch.Size([2, 4])" in result.stdout, result.stderr


def test_numba_is_imported_at_the_first_call_and_compilation_is_announced_once(tmp_path):
    code = (
        "import os, sys\n"
        f"os.environ['NUMBA_CACHE_DIR'] = {str(tmp_path)!r}\n"
        "from h2hgcn.jit import on_compilation, random_state\n"
        "assert 'numba' not in sys.modules and 'torch' not in sys.modules\n"
        "on_compilation(lambda: print('compiling'))\n"
        "random_state(1, 2)\n"
        "random_state(1, 2, 3)\n"
    )
    for said in ("compiling\n", ""):  # the second time the code is on disk
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert result.stdout == said
