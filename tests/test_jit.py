import multiprocessing
import subprocess
import sys

import numpy as np
import pytest
import torch

from h2hgcn import jit as compiled
from h2hgcn.jit import run_on_rows


def count(first, last, visits):
    visits[first:last] += 1


@pytest.mark.parametrize("size", [0, 1, 2, 7, 1000])
@pytest.mark.parametrize("threads", [1, 3])
def test_every_row_is_visited_once(monkeypatch, size, threads):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    monkeypatch.setattr(compiled, "_GRAIN", 4)
    visits = np.zeros(size)
    run_on_rows(count, (size, 8), visits)
    assert (visits == 1).all()


def test_an_error_in_a_thread_is_raised(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    monkeypatch.setattr(compiled, "_GRAIN", 1)

    def fail(first, last):
        if first:
            raise ArithmeticError

    with pytest.raises(ArithmeticError):
        run_on_rows(fail, (10, 10))


def visit_in_child(connection):
    visits = np.zeros(100)
    run_on_rows(count, (100, 8), visits)
    connection.send(bool((visits == 1).all()))


def test_threads_after_a_fork(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    monkeypatch.setattr(compiled, "_GRAIN", 4)
    run_on_rows(count, (100, 8), np.zeros(100))
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    child = context.Process(target=visit_in_child, args=(there,), daemon=True)
    child.start()
    assert here.poll(60)
    assert here.recv()
    child.join(60)


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
