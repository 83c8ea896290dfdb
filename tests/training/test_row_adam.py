"""RowAdam against PyTorch's Adam and SparseAdam."""

import pytest
import torch

from h2hgcn.training.optimizers import RowAdam, update_rows


def tables(count, dtype=torch.float64):
    start = torch.randn(30, 5, dtype=dtype, generator=torch.Generator().manual_seed(0))
    return [torch.nn.Parameter(start.clone()) for _ in range(count)]


def gradients(rows, steps=6, dtype=torch.float64):
    generator = torch.Generator().manual_seed(1)
    for _ in range(steps):
        chosen = torch.randperm(30, generator=generator)[:rows]
        yield chosen, torch.randn(rows, 5, dtype=dtype, generator=generator)


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_adam_if_every_row_has_a_gradient(weight_decay):
    ours, theirs = tables(2)
    row_adam = RowAdam([ours], lr=0.1, weight_decay=weight_decay)
    adam = torch.optim.Adam([theirs], lr=0.1, weight_decay=weight_decay)
    for rows, values in gradients(30):
        ours.grad = torch.sparse_coo_tensor(rows.unsqueeze(0), values, ours.shape, check_invariants=True)
        theirs.grad = ours.grad.to_dense()
        row_adam.step()
        adam.step()
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


def test_the_lazy_adam_of_pytorch_on_some_rows():
    ours, theirs = tables(2)
    row_adam, sparse_adam = RowAdam([ours], lr=0.1), torch.optim.SparseAdam([theirs], lr=0.1)
    for rows, values in gradients(7):
        ours.grad = torch.sparse_coo_tensor(rows.unsqueeze(0), values, ours.shape, check_invariants=True)
        theirs.grad = ours.grad.clone()
        row_adam.step()
        sparse_adam.step()
    torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)  # they correct epsilon differently


def test_rows_that_come_twice_are_added_up():
    once, twice = tables(2)
    for table, rows, values in (
        (once, [3], torch.full((1, 5), 2.0)),
        (twice, [3, 3], torch.ones(2, 5)),
    ):
        table.grad = torch.sparse_coo_tensor([rows], values.double(), table.shape, check_invariants=True)
        RowAdam([table], lr=0.1).step()
    assert torch.equal(once, twice)


def test_tensor_operations_do_what_the_loop_does():
    looped, composed = tables(2)
    optimizer = RowAdam([looped], lr=0.1, weight_decay=0.05)
    mean, square = torch.zeros_like(composed), torch.zeros_like(composed)
    for step, (rows, values) in enumerate(gradients(7), 1):
        looped.grad = torch.sparse_coo_tensor(rows.unsqueeze(0), values, looped.shape, check_invariants=True)
        optimizer.step()
        numbers = (0.1 / (1 - 0.9**step), 1 / (1 - 0.999**step), 0.9, 0.999, 1e-8, 0.05)
        with torch.no_grad():
            update_rows(rows, values, composed, mean, square, *numbers)
    torch.testing.assert_close(looped, composed, rtol=1e-9, atol=1e-9)
