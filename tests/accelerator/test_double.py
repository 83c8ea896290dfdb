"""The double itself does what an accelerator does: it computes, refuses to mix with the CPU, and is waited for."""

import copy

import geoopt
import pytest
import torch


@pytest.mark.parametrize(
    "mix",
    [
        lambda x, host: x + host,
        lambda x, host: host @ x.mT,
        lambda x, host: torch.cat([x, host]),
        lambda x, host: x[torch.tensor([0, 1])],
        lambda x, host: host[torch.zeros(1, dtype=torch.long, device=x.device)],
        lambda x, host: host.index_add(0, torch.tensor([0]), x[:1]),
        lambda x, host: torch.add(x, x, out=host),
    ],
)
def test_it_refuses_tensors_of_the_cpu(mix, device):
    host = torch.ones(3, 4)
    with pytest.raises(RuntimeError, match=r"same device|on cpu"):
        mix(host.to(device), host)


def test_it_takes_single_numbers_of_the_cpu(device):
    assert (torch.ones(3, device=device) * torch.tensor(2.0)).cpu().tolist() == [2, 2, 2]


def test_its_memory_is_not_numpys(device):
    with pytest.raises(TypeError, match="to host memory first"):
        torch.ones(3, device=device).numpy()


def test_views_share_memory_and_copies_do_not(device):
    x = torch.zeros(3, 4, device=device)
    x[1:, ::2].fill_(1)
    x.view(-1)[0] = 5
    copied = copy.deepcopy(x).add_(1)
    assert x.cpu().tolist() == [[5, 0, 0, 0], [1, 0, 1, 0], [1, 0, 1, 0]]
    assert torch.equal(copied.cpu(), x.cpu() + 1)


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_sparse_products_are_those_of_the_cpu(layout, device):
    matrix = torch.eye(4)[:3] + torch.eye(4).roll(1, 0)[:3]
    dense = torch.randn(4, 2)
    sparse = matrix.to_sparse(layout=layout).to(device)
    assert sparse.device.type == device.type
    assert torch.allclose((sparse @ dense.to(device)).cpu(), matrix @ dense)


@pytest.mark.parametrize("optimizer", [torch.optim.Adam, geoopt.optim.RiemannianAdam])
def test_optimizers_step_as_on_the_cpu(optimizer, device, dtype):
    torch.manual_seed(0)
    start, x = torch.linalg.qr(torch.randn(5, 3, dtype=dtype))[0], torch.randn(7, 5, dtype=dtype)
    ends = []
    for place in ("cpu", device):
        weight = geoopt.ManifoldParameter(start.clone().to(place), manifold=geoopt.EuclideanStiefel())
        steps = optimizer([weight], lr=0.1)
        for _ in range(3):
            steps.zero_grad()
            (x.to(place) @ weight).tanh().sum().backward()
            steps.step()
        ends.append(weight.detach().cpu())
    assert torch.allclose(*ends, atol=1e-6)
    assert not torch.allclose(ends[0], start)


def test_what_the_host_waits_for_is_counted(device, host_syncs):
    x = torch.tensor([1.0, 0.0], device=device)
    with host_syncs() as syncs:
        y = (x * 2).sum() + x[:1].sum()
    assert not syncs.found
    with host_syncs() as syncs:
        y.item(), x.cpu(), x.nonzero(), x[x > 0], bool(y), x.tolist()
    assert len(syncs.found) == 6
