import pytest
import torch
from samples import generator

from h2hgcn.kernels.csr import _by_sorting, sorted_entries


@pytest.mark.parametrize(("size", "count"), [(1, 0), (1, 5), (7, 0), (7, 3), (7, 200), (300, 2000), (5000, 60_000)])
def test_counting_gives_what_sorting_gives(size, count):
    index = torch.randint(size, (2, count), generator=generator(1))
    weights = torch.randint(1, 9, (count,), generator=generator(2)).double()  # sums are exact
    for found, expected in zip(sorted_entries(*index, weights, size), _by_sorting(*index, weights, size), strict=True):
        assert found.dtype == expected.dtype
        assert torch.equal(found, expected)


@pytest.mark.parametrize("order", ["by rows", "by columns"])
@pytest.mark.parametrize("loops", ["none", "some", "all"])
@pytest.mark.parametrize(("size", "count"), [(1, 1), (7, 3), (7, 49), (300, 2000)])
def test_entries_that_come_sorted(size, count, loops, order):
    pairs = torch.randperm(size**2, generator=generator(4))[:count].sort().values
    index = torch.stack([pairs // size, pairs % size])
    is_loop = index[0] == index[1]
    if loops == "none":
        index = index[:, ~is_loop]
    elif loops == "all":
        index = torch.cat([index[:, ~is_loop], torch.arange(size).expand(2, -1)], 1)
        index = index[:, (index[0] * size + index[1]).argsort()]
    if order == "by columns":
        index = index.flip(0)
    weights = 1 + torch.arange(index.shape[1]).double()
    for found, expected in zip(sorted_entries(*index, weights, size), _by_sorting(*index, weights, size), strict=True):
        assert found.dtype == expected.dtype
        assert torch.equal(found, expected)


def test_no_nodes():
    crow, col, weights = sorted_entries(*torch.zeros(2, 0, dtype=torch.long), torch.zeros(0, dtype=torch.float64), 0)
    assert (crow.tolist(), len(col), len(weights)) == ([0], 0, 0)


def test_rows_and_columns_that_are_not_contiguous():
    index = torch.randint(9, (40, 2), generator=generator(3)).T
    weights = torch.ones(80, dtype=torch.float64)[::2]
    for found, expected in zip(sorted_entries(*index, weights, 9), _by_sorting(*index, weights, 9), strict=True):
        assert torch.equal(found, expected)


def test_gradients_flow_to_weights():
    index, weights = torch.tensor([[0, 0, 1], [1, 1, 0]]), torch.ones(3, dtype=torch.float64, requires_grad=True)
    sums = sorted_entries(*index, weights, 2)[2]
    assert sums.tolist() == [1, 2, 1, 1]
    sums[1].backward()
    assert weights.grad.tolist() == [1, 1, 0]
