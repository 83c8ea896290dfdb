from functools import partial

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from h2hgcn.datasets import DataError
from h2hgcn.datasets.shape import random_taxonomy, transitive_closure
from h2hgcn.geometry import lorentz, poincare
from h2hgcn.models import H2HGCN, ShallowEuclidean, ShallowHyperbolic
from h2hgcn.tasks import Embedding
from h2hgcn.tasks import embedding as module
from h2hgcn.tasks.embedding import LinkPairs, Sample, links_without_loops, ranking_loss
from h2hgcn.training import TrainingSettings, fit, load_run

SETTINGS = TrainingSettings(epochs=60, patience=None, eval_every=20, lr=0.3, schedule="cosine", dtype="float64")
TANGENT = partial(ShallowHyperbolic, dim=5, points="tangent")
# node 6 is linked with all others, node 5 with that one alone
EDGES = torch.tensor([[0, 1, 3, 3, 6, 6, 6, 6, 6, 6], [1, 2, 4, 0, 0, 1, 2, 3, 4, 5]])


def taxonomy(num_nodes=80, directed=True):
    edges = torch.from_numpy(random_taxonomy(num_nodes).T.copy())
    ids = np.array([f"term{k:03}" for k in range(num_nodes)])
    return Data(x=torch.ones(num_nodes, 1), edge_index=edges, num_nodes=num_nodes, directed=directed, node_ids=ids)


def link_pairs(edges, num_nodes):
    links = links_without_loops(edges, num_nodes, directed=False)
    ends = torch.from_numpy(np.stack(links.nonzero()).astype(np.int64))
    return LinkPairs(ends, torch.from_numpy(links.indptr.astype(np.int64)))


def literal_loss(distances, edges, scale, groups=None, sample=()):
    """Word by word; with groups, the sum is over the node's own, and a sample stands for all nodes outside it."""
    n = len(distances)
    linked = {(a, b) for a, b in edges.T.tolist()} | {(b, a) for a, b in edges.T.tolist()}
    losses = []
    for u, v in linked:
        absent = [w for w in range(n) if w != u and (u, w) not in linked]
        near = absent if groups is None else [w for w in absent if groups[w] == groups[u]]
        far = [w for w in absent if w not in near]
        drawn = [w for w in far if w in sample]
        stretch = len(far) / len(drawn) if drawn else 0
        others = sum(torch.exp(-scale * distances[u, w]) for w in near)
        others = others + stretch * sum(torch.exp(-scale * distances[u, w]) for w in drawn)
        link = torch.exp(-scale * distances[u, v])
        losses.append(-torch.log(link / (link + others)))
    return torch.stack(losses).mean()


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("space", ["lorentz", "ball", "euclidean"])
def test_the_loss_by_its_definition(space, sampled, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK_ELEMENTS", 14)  # several blocks
    vectors = torch.randn(7, 3, dtype=torch.float64, requires_grad=True)
    scale = torch.tensor(1.7, dtype=torch.float64, requires_grad=True)
    sample = Sample(torch.tensor([0, 2, 5]), nearby=3, seed=1) if sampled else None

    def distances(vectors):
        if space == "euclidean":
            return (vectors[:, None] - vectors[None]).square().sum(-1).clamp_min(1e-300).sqrt()
        points = lorentz.exp_origin(vectors)
        return lorentz.pairwise_distance(points, points)

    def loss(vectors, scale):
        points = vectors if space == "euclidean" else lorentz.exp_origin(vectors)
        points = poincare.from_lorentz(points) if space == "ball" else points
        return ranking_loss(points, space, link_pairs(EDGES, 7), sample, scale)

    groups, drawn = None, ()
    if sampled:
        points = lorentz.exp_origin(vectors.detach())
        flat = vectors.detach() if space == "euclidean" else points[:, 1:] / points[:, :1]
        groups = {int(node): place // 3 for place, node in enumerate(module._nearby_order(flat, sample))}
        drawn = sample.nodes.tolist()
    torch.testing.assert_close(loss(vectors, scale), literal_loss(distances(vectors), EDGES, scale, groups, drawn))
    assert torch.autograd.gradcheck(loss, (vectors, scale))


def test_the_loss_is_finite_where_it_could_fail():
    links = link_pairs(EDGES, 7)
    far = torch.randn(7, 2, dtype=torch.float64)
    far = 18 * far / far.norm(dim=1, keepdim=True)
    for vectors in (torch.zeros(7, 2, dtype=torch.float64), far):  # all at one place, and all far out
        vectors.requires_grad_()
        loss = ranking_loss(lorentz.exp_origin(vectors), "lorentz", links, scale=8.0)
        loss.backward()
        assert loss.isfinite()
        assert vectors.grad.isfinite().all()


@pytest.mark.parametrize("closure", [False, True])
def test_a_hierarchy_is_reconstructed(closure):
    data = taxonomy()
    run = fit(Embedding(closure=closure), data, TANGENT, settings=SETTINGS)
    assert list(run.metrics) == ["reconstruction"]  # nothing is called a test
    found = run.metrics["reconstruction"]
    assert found["map"] > 0.97
    assert 1 <= found["mean_rank"] < 1.3
    assert ("edges_map" in found) == closure
    assert run.evaluate() == run.evaluate("reconstruction") == found
    assert run.result["trivial"] == {}
    with pytest.raises(DataError, match="'test' is not known; use 'reconstruction'"):
        run.evaluate("test")
    known = data.edge_index if not closure else transitive_closure(data.edge_index, 80)
    recommended = {int(each.node[4:]) for each in run.recommend("term007", k=20)}
    mine = known[:, (known == 7).any(0)].flatten().tolist()
    assert recommended.isdisjoint(mine)
    assert all(each.probability is None for each in run.recommend("term007"))
    with pytest.raises(DataError, match="no probabilities; use recommend"):
        run.predict([["term001", "term002"]])


def test_hyperbolic_space_has_room_for_what_flat_space_has_not():
    data = taxonomy(200)
    scores = {}
    for encoder in (TANGENT, partial(ShallowEuclidean, dim=5)):
        run = fit(Embedding(closure=True), data, encoder, settings=SETTINGS)
        scores[run.config["model"]["name"]] = run.metrics["reconstruction"]["map"]
    assert scores["hyp"] > scores["euc"] + 0.2


def test_a_graph_network_with_node_vectors():
    encoder = partial(H2HGCN, dim=8, node_vectors=True, num_layers=1)
    run = fit(Embedding(), taxonomy(), encoder, settings=SETTINGS)
    assert run.metrics["reconstruction"]["map"] > 0.8


def test_the_direction_of_edges_does_not_matter_to_what_is_learned():
    data, turned = taxonomy(), taxonomy()
    turned.edge_index = turned.edge_index.flip(0)
    one, other = (fit(Embedding(closure=True), graph, TANGENT, settings=SETTINGS) for graph in (data, turned))
    assert torch.equal(one.embeddings, other.embeddings)
    assert one.metrics == other.metrics


def test_a_run_resumes_to_the_same_result(tmp_path):
    whole = fit(Embedding(closure=True), taxonomy(), TANGENT, settings=SETTINGS, folder=tmp_path / "whole")
    epochs = []
    stopped = fit(
        Embedding(closure=True), taxonomy(), TANGENT, settings=SETTINGS, folder=tmp_path / "run",
        on_epoch=lambda *_: epochs.append(1), should_stop=lambda: len(epochs) >= 25,
    )  # fmt: skip
    assert not stopped.finished
    run = fit(Embedding(closure=True), taxonomy(), TANGENT, settings=SETTINGS, folder=tmp_path / "run")
    assert torch.equal(run.embeddings, whole.embeddings)
    assert run.metrics == whole.metrics
    loaded = load_run(tmp_path / "run")
    assert torch.equal(loaded.embeddings, whole.embeddings)
    assert loaded.evaluate() == whole.metrics["reconstruction"]
    report = (tmp_path / "run" / "report.html").read_text()
    assert "embedding on" in report
    assert "mean average precision" in report


def test_large_graphs_have_samples(monkeypatch):
    monkeypatch.setattr(module, "ALL_PAIRS", 100)
    monkeypatch.setattr(module, "_RANKED_NODES", 50)
    monkeypatch.setattr(module, "_MEASURED_PAIRS", 20 * 300)
    plans = []
    task = Embedding(candidates=64)
    run = fit(task, taxonomy(300), TANGENT, settings=SETTINGS, on_plan=plans.append)
    assert plans == ["all 299 links in every step, each compared with 64 nodes, nearby and random ones"]
    assert "map and mean_rank are of a random sample of 50 of 300 nodes" in run.result["doubts"]
    assert "distortion is of the distances from 20 random nodes to all" in run.result["doubts"]
    assert run.metrics["reconstruction"]["map"] > 0.7
    again = fit(task, taxonomy(300), TANGENT, settings=SETTINGS)
    assert again.metrics == run.metrics


def test_bad_input():
    with pytest.raises(DataError, match=r"temperature=0\.0 must be positive"):
        Embedding(temperature=0.0)
    with pytest.raises(DataError, match="needs directed edges"):
        Embedding(closure=True).bind(taxonomy(directed=False))
    ring = Data(
        x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]), num_nodes=3, node_ids=["a", "b", "c"]
    )
    with pytest.raises(DataError, match="a -> b -> c -> a"):
        Embedding(closure=True).bind(ring)
    with pytest.raises(DataError, match="nothing to embed"):
        Embedding().bind(Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0], [0]]), num_nodes=3))
    with pytest.raises(DataError, match="learns all links; leave it out"):
        fit(Embedding(), taxonomy(), TANGENT, settings=TrainingSettings(batch_size=8))
    with pytest.raises(ValueError, match="points='disk' is not known"):
        ShallowHyperbolic(1, 2, points="disk", num_nodes=3)
