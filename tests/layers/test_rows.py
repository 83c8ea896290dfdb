import multiprocessing
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from samples import generator, seeds

from h2hgcn import jit as compiled
from h2hgcn.jit import run_on_rows
from h2hgcn.kernels import convolution as rows

SLOPES = [0.0, 0.2, -0.5, 1.0]


def sums(size, dim, seed, dtype):
    """Sums of points whose weights add up to 1, with a few rows whose norm is known."""
    random = generator(seed)
    space = 3 * torch.randn(size, dim, generator=random, dtype=torch.float64)
    norm = 1 + torch.rand(size, generator=random, dtype=torch.float64)
    time = (space.square().sum(1) + norm.square()).sqrt()
    known = torch.where(torch.rand(size, generator=random) < 0.3, norm, 0.0)
    return time.to(dtype), space.to(dtype), known.to(dtype)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 2e-4), (torch.float64, 1e-11)])
@given(
    seed=seeds,
    slope=st.sampled_from(SLOPES),
    size=st.integers(1, 70),
    dim=st.integers(1, 20),
    joined=st.booleans(),
    norms_known=st.booleans(),
)
def test_compiled_loops_agree_with_tensor_operations(dtype, tolerance, seed, slope, size, dim, joined, norms_known):
    time, space, known = sums(size, dim, seed, dtype)
    points, chained_points = torch.empty(2, size, dim + joined, dtype=dtype)
    ours, chain = torch.empty(2, rows.ROW_NUMBERS, size, dtype=dtype)
    for kept in (ours, chain):
        kept[rows.TIME], kept[rows.NORM] = time, known
    rows.activate_rows(space, slope, ours, points, norms_known)
    rows._activate_by_tensors(space, slope, chain, chained_points, norms_known)
    for got, expected in zip((points, *ours), (chained_points, *chain), strict=True):
        torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance)
    grads = torch.randn(size, dim + 1, generator=generator(seed), dtype=dtype)
    grads = (grads,) if joined else (grads[:, 0], grads[:, 1:])
    for got, expected in zip(
        rows.activate_rows_backward(grads, space, ours, slope),
        rows._activate_backward_by_tensors(grads, space, ours, slope),
        strict=True,
    ):
        torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance * expected.abs().max().item())


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
