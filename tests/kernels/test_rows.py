import multiprocessing

import numpy as np
import pytest
import torch

from h2hgcn import kernels
from h2hgcn.kernels import run_on_rows


def count(first, last, visits):
    visits[first:last] += 1


@pytest.mark.parametrize("size", [0, 1, 2, 7, 1000])
@pytest.mark.parametrize("threads", [1, 3])
def test_every_row_is_visited_once(monkeypatch, size, threads):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    monkeypatch.setattr(kernels, "_GRAIN", 4)
    visits = np.zeros(size)
    run_on_rows(count, (size, 8), visits)
    assert (visits == 1).all()


def test_an_error_in_a_thread_is_raised(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    monkeypatch.setattr(kernels, "_GRAIN", 1)

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
    monkeypatch.setattr(kernels, "_GRAIN", 4)
    run_on_rows(count, (100, 8), np.zeros(100))
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    child = context.Process(target=visit_in_child, args=(there,), daemon=True)
    child.start()
    assert here.poll(60)
    assert here.recv()
    child.join(60)
