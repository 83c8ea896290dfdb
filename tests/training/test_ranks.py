from dataclasses import replace

import numpy as np
import pytest
import torch
from runs import TASKS, small_data

from h2hgcn.errors import DataError
from h2hgcn.graph.sampling import sample_adjacency
from h2hgcn.layers import prepare_adjacency
from h2hgcn.models import ENCODERS, H2HGCN
from h2hgcn.tasks.base import Sampling
from h2hgcn.training.distributed import ALONE, Ranks, joined_ranks


@pytest.mark.parametrize(
    "task", [TASKS["lp"], TASKS["nc"], replace(TASKS["nc"], class_weights=True)], ids=["lp", "nc", "class weights"]
)
def test_the_parts_of_a_batch_add_up_to_its_loss_and_gradients(task):
    data = small_data(task.name)
    if task.name == "nc":
        data.y[: len(data.y) // 4] = 0  # so that weights differ
    problem = task.bind(data)
    model = problem.build(H2HGCN(problem.in_features, 4))
    alone = Sampling(40, (3, 2))
    learnt = [parameter for parameter in model.parameters() if parameter.requires_grad]
    totals = []
    for parts in ([alone], [replace(alone, rank=rank, ranks=3) for rank in range(3)]):
        total = 0
        for problem.sampling in parts:
            for batch in problem.batches(np.random.RandomState(0)):
                total = total + problem.loss(model, batch) * batch.share
        totals.append((total, *torch.autograd.grad(total, learnt, materialize_grads=True)))
    for whole, shared in zip(*totals, strict=True):
        assert torch.allclose(whole, shared, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", [name for name, kind in ENCODERS.items() if kind.inductive and "lp" in kind.tasks])
def test_a_node_has_the_same_points_whoever_draws_for_it(name):
    index = torch.randint(300, (2, 1200), generator=torch.Generator().manual_seed(0))
    graph = prepare_adjacency(index, None, 300)
    x, model = torch.randn(300, 4), ENCODERS[name](4, 3)
    whole = sample_adjacency(graph, np.arange(0, 300, 7), [3, 2], 5)
    part = sample_adjacency(graph, [7, 28, 210], [3, 2], 5)
    assert part.num_nodes < whole.num_nodes
    assert torch.allclose(model(x[part.nodes], part)[:3], model(x[whole.nodes], whole)[[1, 4, 30]], atol=1e-6)


def test_batches_are_shared_out():
    parts = [Sampling(6, (2,), rank=rank, ranks=4) for rank in range(4)]
    batches = [list(part.draws(14, np.random.RandomState(0))) for part in parts]
    assert [len(chosen) for chosen, _ in batches[0]] == [6, 8]  # two at the end would leave two processes idle
    for number in range(2):
        chosen, seed = batches[0][number]
        assert all(each[number][1] == seed for each in batches)
        mine = [each[number][0][part.mine] for part, each in zip(parts, batches, strict=True)]
        assert sorted(np.concatenate(mine)) == sorted(chosen)


def test_alone_nothing_is_shared():
    with joined_ranks(torch.device("cpu")) as ranks:
        assert ranks is ALONE
        assert ranks.from_first(lambda: 7) == 7


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (
            {"RANK": "2", "WORLD_SIZE": "2"},
            "RANK=2, WORLD_SIZE=2: both have to be whole numbers, RANK from 0 to WORLD_SIZE less 1",
        ),
        ({"RANK": "-1", "WORLD_SIZE": "2"}, "RANK=-1"),
        ({"RANK": "0"}, "RANK=0, WORLD_SIZE is not set: both"),
        ({"WORLD_SIZE": "two", "RANK": "0"}, "RANK=0, WORLD_SIZE=two: both have to be whole numbers"),
        ({"RANK": "0", "WORLD_SIZE": "2"}, "without MASTER_ADDR and MASTER_PORT"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(monkeypatch, variables, message):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(DataError, match=message), joined_ranks(torch.device("cpu")):
        pass


def test_too_little_memory_is_not_the_fault_of_other_processes(monkeypatch):
    def empty_like(tensor):
        raise RuntimeError("not enough memory")

    monkeypatch.setattr(torch, "empty_like", empty_like)
    gradient = torch.sparse_coo_tensor([[0, 2]], torch.ones(2, 3), (4, 3), check_invariants=True)
    parameter = torch.nn.Parameter(torch.zeros(4, 3))
    parameter.grad = gradient
    with pytest.raises(RuntimeError, match=r"^not enough memory$"):
        Ranks(0, 2).add_up([parameter], torch.tensor(1.0), 0.5)


def test_sparse_gradients_are_added_up(monkeypatch):
    """The other process has a row more, and twice the values."""
    mine = torch.sparse_coo_tensor([[0, 2]], torch.ones(2, 3), (4, 3), check_invariants=True)
    other = torch.sparse_coo_tensor([[1, 2, 3]], 2 * torch.ones(3, 3), (4, 3), check_invariants=True)
    count = torch.tensor([3])
    sent = iter([count, torch.tensor([1, 2, 3]), count, 2 * torch.ones(3, 3)])

    def all_gather(parts, part, async_op):
        padded = torch.zeros_like(next_part := next(sent))
        padded[: len(part)] = part[: len(padded)]
        parts[0], parts[1] = padded, next_part

    monkeypatch.setattr("h2hgcn.training.distributed.dist.all_gather", all_gather)
    total = Ranks(0, 2)._sum_of_rows(mine)
    torch.testing.assert_close(total.to_dense(), (mine + other).to_dense())
