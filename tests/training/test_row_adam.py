"""RowAdam against PyTorch's Adam and SparseAdam."""

import pytest
import torch
from torch.optim.adam import adam

from h2hgcn.training import optimizers as optimizers_module
from h2hgcn.training.optimizers import RowAdam


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


def test_without_a_fused_loop(monkeypatch):
    """As on a device that has none."""
    fused, plain = tables(2)
    optimizers = [RowAdam([table], lr=0.1, weight_decay=0.05) for table in (fused, plain)]
    for rows, values in gradients(7):
        for table in (fused, plain):
            table.grad = torch.sparse_coo_tensor(rows.unsqueeze(0), values, table.shape, check_invariants=True)
        optimizers[0].step()
        with monkeypatch.context() as patch:
            patch.setattr(optimizers_module, "adam", lambda *parts, fused, **rest: adam(*parts, fused=False, **rest))
            optimizers[1].step()
    torch.testing.assert_close(fused, plain, rtol=1e-9, atol=1e-9)
