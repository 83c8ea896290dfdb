"""What every encoder promises, whoever invented it."""

import inspect

import pytest
import torch
from runs import shapes
from torch_geometric.data import Batch

from h2hgcn.datasets.disease import generate_disease
from h2hgcn.geometry import lorentz
from h2hgcn.layers import prepare_adjacency
from h2hgcn.layers.spaces import as_lorentz
from h2hgcn.models import ENCODERS
from h2hgcn.tasks import TASKS
from h2hgcn.training import TrainingSettings, build_optimizer, fit, load_run

DIM = 6
NODES = [name for name, encoder in ENCODERS.items() if not encoder.pools]
POOLING = [name for name, encoder in ENCODERS.items() if encoder.pools]
every_encoder = pytest.mark.parametrize("name", ENCODERS)
every_node_encoder = pytest.mark.parametrize("name", NODES)


def graph_of(name):
    """Features, adjacency, and for pooling encoders the graph of each node and the number of graphs."""
    if ENCODERS[name].pools:
        batch = Batch.from_data_list(list(shapes()))
        adjacency = prepare_adjacency(batch.edge_index, None, batch.num_nodes)
        return batch.x.float(), adjacency, batch.batch, batch.num_graphs
    graph = generate_disease(80)
    return graph.x, prepare_adjacency(graph.edge_index, None, 80)


def make(name, x, seed=0, **options):
    torch.manual_seed(seed)
    takes = inspect.signature(ENCODERS[name]).parameters
    facts = {"num_nodes": len(x)} if "num_nodes" in takes else {}
    return ENCODERS[name](x.shape[1], DIM, **facts, **options)


def on_manifold(points, space):
    return lorentz.violation(as_lorentz(points, space)).max() < 1e-4 if space != "euclidean" else True


@every_encoder
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_points_of_its_space(name, dtype):
    x, adjacency, *rest = graph_of(name)
    encoder = make(name, x).to(dtype)
    points = encoder(x.to(dtype), adjacency, *rest)
    rows = rest[1] if rest else len(x)
    assert points.shape == (rows, encoder.dim + (encoder.space == "lorentz"))
    assert points.dtype == dtype
    assert points.isfinite().all()
    assert on_manifold(points.detach(), encoder.space)


@every_encoder
def test_mixed_precision(name):
    """Autocast lowers the precision of linear layers, never that of the geometry."""
    x, adjacency, *rest = graph_of(name)
    encoder = make(name, x)
    encoder.eval()
    expected = encoder(x, adjacency, *rest)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        points = encoder(x, adjacency, *rest)
    points.float().sum().backward()
    assert points.isfinite().all()
    assert on_manifold(points.detach(), encoder.space)
    error = (points - expected).norm(dim=1) / expected.norm(dim=1).clamp_min(1)
    assert error.median() < 0.05


@every_encoder
def test_sparse_features_are_as_good_as_dense_ones(name):
    x, adjacency, *rest = graph_of(name)
    encoder = make(name, x).eval()
    torch.testing.assert_close(
        encoder(x.to_sparse_coo(), adjacency, *rest), encoder(x, adjacency, *rest), atol=1e-5, rtol=1e-4
    )


@every_encoder
def test_the_order_of_nodes_does_not_matter(name):
    if not ENCODERS[name].inductive:
        pytest.skip("its vectors belong to the nodes by their number")
    x, adjacency, *rest = graph_of(name)
    encoder = make(name, x).eval()
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(1))
    if rest:  # batches hold graph after graph
        order = order[rest[0][order].argsort(stable=True)]
    index, weights = adjacency.edges()
    shuffled = prepare_adjacency(order.argsort()[index], weights, len(x))
    expected, found = encoder(x, adjacency, *rest), encoder(x[order], shuffled, *rest)
    torch.testing.assert_close(found, expected if rest else expected[order], atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("name", POOLING)
def test_other_graphs_of_a_batch_do_not_matter(name):
    x, adjacency, graph_of_node, num_graphs = graph_of(name)
    encoder = make(name, x).eval()
    first = int((graph_of_node == 0).sum())
    index, weights = adjacency.edges()
    own = (index < first).all(0)
    alone = encoder(x[:first], prepare_adjacency(index[:, own], weights[own], first), graph_of_node[:first], 1)
    torch.testing.assert_close(alone, encoder(x, adjacency, graph_of_node, num_graphs)[:1], atol=1e-5, rtol=1e-4)


@every_encoder
def test_gradients_reach_every_parameter(name):
    x, adjacency, *rest = graph_of(name)
    encoder = make(name, x)
    points = encoder(x, adjacency, *rest)
    loss = (points * torch.randn_like(points)).sum()
    if getattr(encoder, "auxiliary_loss", None) is not None:
        loss = loss + encoder.auxiliary_loss
    loss.backward()
    for path, parameter in encoder.named_parameters():
        if parameter.requires_grad:
            assert parameter.grad is not None, path
            assert parameter.grad.isfinite().all(), path
            assert parameter.grad.abs().sum() > 0, path


@every_encoder
def test_finite_after_two_hundred_steps(name):
    task = "gc" if ENCODERS[name].pools else "lp"
    problem = TASKS[task](num_folds=3).bind(shapes()) if task == "gc" else TASKS[task]().bind(generate_disease(120))
    torch.manual_seed(0)
    takes = inspect.signature(ENCODERS[name]).parameters
    facts = {"num_nodes": problem.num_nodes} if "num_nodes" in takes else {}
    model = problem.build(ENCODERS[name](problem.in_features, DIM, **facts))
    optimizer = build_optimizer(model, lr=0.05)
    import numpy as np

    random = np.random.RandomState(0)
    steps = 0
    while steps < 200:
        for batch in problem.batches(random):
            optimizer.zero_grad()
            problem.loss(model, batch).backward()
            optimizer.step()
            steps += 1
    assert all(parameter.isfinite().all() for parameter in model.parameters())
    assert all(value == value for value in problem.evaluate(model.eval(), "test").values())


@every_encoder
def test_saved_and_loaded(name, tmp_path):
    x, adjacency, *rest = graph_of(name)
    encoder = make(name, x).eval()
    encoder.save_pretrained(tmp_path)
    loaded = ENCODERS[name].from_pretrained(tmp_path).eval()
    assert loaded.config == encoder.config
    assert torch.equal(loaded(x, adjacency, *rest), encoder(x, adjacency, *rest))


@every_encoder
def test_runs_are_repeated_bit_for_bit_and_loaded(name, tmp_path):
    for task in ENCODERS[name].tasks:
        data = shapes() if task == "gc" else generate_disease(120)
        settings = TrainingSettings(epochs=3, device="cpu", threads=1)

        def make_small(in_features, num_nodes=None):
            takes = inspect.signature(ENCODERS[name]).parameters
            facts = {"num_nodes": num_nodes} if "num_nodes" in takes else {}
            return ENCODERS[name](in_features, DIM, **facts)

        task_settings = {"num_folds": 3} if task == "gc" else {}
        first, second = (
            fit(TASKS[task](**task_settings), data, make_small, settings=settings, folder=folder)
            for folder in (tmp_path / task, None)
        )
        assert torch.equal(first.embeddings, second.embeddings)
        loaded = load_run(tmp_path / task, None if task != "gc" else data)
        assert torch.equal(loaded.embeddings, first.embeddings)


@every_encoder
def test_it_says_what_it_is(name):
    encoder = ENCODERS[name]
    assert encoder.name == name
    assert encoder.summary
    assert any(year in encoder.paper for year in map(str, range(1990, 2030)))
    assert set(encoder.tasks) <= set(TASKS)
    assert encoder.pools <= (encoder.tasks == ("gc",))
    assert encoder.space in ("lorentz", "ball", "euclidean")
    assert encoder.__doc__
