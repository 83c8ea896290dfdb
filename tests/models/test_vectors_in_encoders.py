"""Learnt node vectors, the same in every encoder that has them."""

import inspect
from functools import partial

import numpy as np
import pytest
import torch
from runs import curve, same_weights, small_data, small_fit
from torch_geometric.data import Data

from h2hgcn.datasets import load_graph
from h2hgcn.errors import DataError
from h2hgcn.graph.sampling import sample_adjacency
from h2hgcn.layers import prepare_adjacency
from h2hgcn.layers.inputs import NodeVectors, node_vectors_of
from h2hgcn.models import ENCODERS, H2HGCN
from h2hgcn.models.row_blocks import points_by_blocks
from h2hgcn.training import load_run

WITH_VECTORS = [name for name, kind in ENCODERS.items() if "node_vectors" in inspect.signature(kind).parameters]
pytestmark = pytest.mark.filterwarnings("ignore::h2hgcn.errors.DataWarning")
every_encoder = pytest.mark.parametrize("name", WITH_VECTORS)
VECTORS = partial(H2HGCN, dim=4, node_vectors=True, vector_dropout=0.1)


def random_graph(num_nodes=60, num_edges=240):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(num_nodes, 3, generator=generator), torch.randint(num_nodes, (2, num_edges), generator=generator)


def make(name, num_nodes=60, **options):
    torch.manual_seed(0)
    return ENCODERS[name](3, 4, node_vectors=True, num_nodes=num_nodes, **options)


def test_all_graph_encoders_have_them():
    wanted = {"h2h-gcn", "gcn", "gat", "sage", "sgc", "hgcn", "hgnn", "hybonet", "euclidean-gnn"}
    assert wanted == set(WITH_VECTORS)


@every_encoder
def test_nodes_alike_in_features_and_neighbors_are_told_apart(name):
    x, index = torch.ones(60, 3), torch.stack([torch.arange(60), (torch.arange(60) + 1) % 60])
    assert torch.pdist(ENCODERS[name](3, 4)(x, index)).max() < 1e-3
    assert torch.pdist(make(name)(x, index)).median() > 1e-2


@every_encoder
def test_a_sample_of_all_neighbors_gives_the_points_of_the_whole(name):
    x, index = random_graph()
    encoder, graph = make(name).eval(), prepare_adjacency(index, None, 60)
    part = sample_adjacency(graph, np.array([5, 17, 30]), [-1, -1], 0)
    found = encoder(x[part.nodes], part, nodes=part.nodes)[:3]
    torch.testing.assert_close(found, encoder(x, graph)[[5, 17, 30]], atol=1e-5, rtol=1e-4)


@every_encoder
def test_only_the_vectors_of_a_batch_have_a_gradient(name):
    x, index = random_graph()
    encoder = make(name)
    vectors = node_vectors_of(encoder)
    vectors.sparse_gradients = True
    part = sample_adjacency(prepare_adjacency(index, None, 60), np.array([5, 17]), [2, 2], 0)
    encoder(x[part.nodes], part, nodes=part.nodes)[:2].sum().backward()
    assert vectors.weight.grad.is_sparse
    assert set(vectors.weight.grad.coalesce().indices()[0].tolist()) == set(part.nodes.tolist())


@every_encoder
def test_saved_and_loaded(name, tmp_path):
    x, index = random_graph()
    encoder = make(name).eval()
    encoder.save_pretrained(tmp_path)
    assert torch.equal(ENCODERS[name].from_pretrained(tmp_path).eval()(x, index), encoder(x, index))


@every_encoder
def test_the_number_of_nodes_is_needed(name):
    with pytest.raises(ValueError, match="num_nodes=None: pass the number of nodes"):
        ENCODERS[name](3, 4, node_vectors=True)


@every_encoder
def test_the_dropout_of_features_is_checked(name):
    with pytest.raises(ValueError, match=r"feature_dropout=1\.5 must be 0 or more, and below 1"):
        make(name, feature_dropout=1.5)


def test_a_new_node_has_the_mean_of_its_neighbors_vectors():
    vectors = NodeVectors(3, 2)
    graph = prepare_adjacency(torch.tensor([[0, 1, 3, 4], [3, 3, 4, 5]]), None, 7)  # 3 new, 4 behind it, 5, and 6 alone
    found = vectors(torch.tensor([0, 1, 2, -1, -1, -1, -1]), graph)
    mean = vectors.weight[:2].mean(0)
    expected = torch.stack([*vectors.weight, mean, mean, mean, torch.zeros(2)])
    torch.testing.assert_close(found, expected)


def test_by_blocks_of_rows():
    x, index = random_graph()
    encoder, graph = make("h2h-gcn").eval(), prepare_adjacency(index, None, 60)
    torch.testing.assert_close(points_by_blocks(encoder, lambda rows: x[rows], graph, 7), encoder(x, graph))


@pytest.mark.parametrize("numbered", [False, True])
def test_blocks_of_rows_take_no_copy_of_all_vectors(numbered):
    x, index = random_graph()
    encoder, graph = make("h2h-gcn").eval(), prepare_adjacency(index, None, 60)
    nodes = torch.randperm(60, generator=torch.Generator().manual_seed(0)) if numbered else None
    expected = encoder(x, graph, nodes=nodes)
    sizes = []
    encoder.vectors.register_forward_hook(lambda module, given, rows: sizes.append(len(rows)))
    torch.testing.assert_close(points_by_blocks(encoder, lambda rows: x[rows], graph, 7, nodes), expected)
    assert max(sizes) == 7


def test_blocks_of_rows_with_new_nodes():
    x, index = random_graph()
    encoder, graph = make("h2h-gcn").eval(), prepare_adjacency(index, None, 60)
    nodes = torch.arange(60).where(torch.arange(60) % 3 > 0, -1)
    expected = encoder(x, graph, nodes=nodes)
    torch.testing.assert_close(points_by_blocks(encoder, lambda rows: x[rows], graph, 7, nodes), expected)


def test_gradients_are_dense_again_after_sampled_training():
    run = small_fit(model=VECTORS, settings={"batch_size": 30})
    x, index = torch.zeros(small_data().num_nodes, small_data().num_features), small_data().edge_index
    run.model.encoder.train()(x, index, nodes=torch.arange(len(x))).sum().backward()
    assert not node_vectors_of(run.model).weight.grad.is_sparse


def test_no_stem_no_vectors():
    with pytest.raises(ValueError, match="needs stem=True"):
        H2HGCN(3, 4, stem=False, node_vectors=True, num_nodes=5)


@pytest.mark.parametrize("task", ["lp", "nc"])
@pytest.mark.parametrize("batch_size", ["full", 30])
def test_a_run_that_was_stopped_ends_with_the_same_weights(tmp_path, task, batch_size):
    settings = {"batch_size": batch_size, "vector_weight_decay": 0.01, "vector_lr": 0.05, "clip_norm": 1.0}
    whole = small_fit(task, model=VECTORS, settings=settings)
    epochs = []
    stopped = small_fit(
        task, model=VECTORS, settings=settings, folder=tmp_path / "run",
        on_epoch=lambda report, state: epochs.append(report.epoch), should_stop=lambda: len(epochs) == 2,
    )  # fmt: skip
    assert not stopped.finished
    resumed = small_fit(task, model=VECTORS, settings=settings, folder=tmp_path / "run")
    assert same_weights(whole, resumed)
    assert curve(whole) == curve(resumed)
    assert torch.equal(load_run(tmp_path / "run").embeddings, whole.embeddings)


def test_weight_decay_of_their_own():
    free, decayed = (
        small_fit(model=VECTORS, settings={"vector_weight_decay": decay, "vector_lr": 0.1}, epochs=20)
        for decay in (0.0, 10.0)
    )
    lengths = [node_vectors_of(run.model).weight.norm(dim=1).mean() for run in (free, decayed)]
    assert lengths[1] < 0.7 * lengths[0]


def test_not_for_collections():
    with pytest.raises(DataError, match="belong to the nodes of one graph"):
        small_fit("gc", model=VECTORS)


@pytest.fixture(scope="module")
def run():
    graph = load_graph([(f"n{a}", f"n{b}") for a, b in zip(range(60), [*range(1, 60), 0], strict=True)])
    return small_fit(data=graph, model=VECTORS)


def test_known_nodes_are_known_by_their_ids(run):
    ring = [(f"n{a}", f"n{(a + 1) % 60}") for a in range(60)]
    order = torch.randperm(60, generator=torch.Generator().manual_seed(0)).tolist()
    same, shuffled = load_graph(ring), load_graph([ring[k] for k in order])
    shuffled.node_ids = shuffled.node_ids[order]
    shuffled.edge_index = torch.tensor(order).argsort()[shuffled.edge_index]
    torch.testing.assert_close(run.encode(same)[order], run.encode(shuffled))


def test_a_new_node_is_near_its_neighbors(run):
    graph = load_graph([("n0", "n1"), ("n1", "new"), ("n30", "n31")])
    near, far = run.predict([["new", "n1"], ["new", "n30"]], data=graph)
    assert near > far


def test_nothing_gives_a_place_to_a_node_without_edges_and_features(run):
    with pytest.raises(DataError, match="node away is new and no path leads from it to a node of the training"):
        run.encode(load_graph([("n0", "n1"), ("far", "away")]))


def test_numbers_and_texts_are_the_same_ids():
    ring = [(a, (a + 1) % 60) for a in range(60)]
    run = small_fit(data=load_graph(ring), model=VECTORS)
    texts = load_graph([*((str(a), str(b)) for a, b in ring), ("0", "new")])
    assert run.known_nodes(texts).tolist() == [-1 if name == "new" else int(name) for name in texts.node_ids]


def test_a_graph_without_ids_is_not_matched_with_one_that_has_ids(run):
    with pytest.raises(DataError, match="the graph has no node_ids, but this run knows its nodes by their ids"):
        run.encode(Data(edge_index=torch.tensor([[0, 1], [1, 0]]), x=run.data.x[:2], num_nodes=2))


def test_numbers_are_ids_if_no_graph_has_others():
    graph = small_data()
    assert getattr(graph, "node_ids", None) is None
    run = small_fit(data=graph, model=VECTORS)
    count = graph.num_nodes
    for more in (0, 2):
        x = torch.cat([graph.x, graph.x[:more]])
        larger = Data(x=x, edge_index=graph.edge_index, num_nodes=count + more)
        assert run.known_nodes(larger).tolist() == [*range(count), *[-1] * more]
    smaller = Data(x=graph.x[:9], edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=9)
    assert run.known_nodes(smaller).tolist() == [-1] * 9
    assert run.encode(smaller).isfinite().all()


def test_features_give_it_a_place():
    graph = small_data()
    run = small_fit(data=graph, model=VECTORS)
    more = Data(x=graph.x[:5], edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=5)
    more.node_ids = np.array([0, 1, 2, 1000, 1001])
    assert run.encode(more).isfinite().all()


def test_features_that_do_not_count_give_no_place():
    graph = small_data()
    run = small_fit(data=graph, model=partial(H2HGCN, dim=4, node_vectors=True, use_features=False))
    more = Data(x=graph.x[:3], edge_index=torch.tensor([[0], [1]]), num_nodes=3)
    more.node_ids = np.array([0, 1, 1000])
    with pytest.raises(DataError, match="node 1000 is new and no path leads"):
        run.encode(more)
