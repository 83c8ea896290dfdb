"""``Run.with_new``: new nodes beside the run's own graph, against the whole graph in one piece."""

import warnings
from functools import partial

import numpy as np
import pytest
import torch
from runs import SMALL
from torch_geometric.data import Data

from h2hgcn.datasets import load_graph
from h2hgcn.errors import DataError, DataWarning
from h2hgcn.models import GCN, H2HGCN, ShallowHyperbolic
from h2hgcn.tasks import Embedding, LinkPrediction, NodeClassification
from h2hgcn.training import TrainingSettings, fit

pytestmark = pytest.mark.filterwarnings("ignore::h2hgcn.errors.DataWarning")

NODES = [f"n{k:02}" for k in range(30)]
EDGES = [(NODES[k], NODES[(k + step) % 30]) for step in (1, 7) for k in range(30)]
NEW_EDGES = [("a-new", "n03"), ("n05", "zoe"), ("zoe", "a-new"), ("n03", "zoe")]
RANDOM = np.random.RandomState(0)
FEATURES = {node: RANDOM.normal(size=3).tolist() for node in (*NODES, "a-new", "zoe")}
OLD_FEATURES, NEW_FEATURES = ({n: x for n, x in FEATURES.items() if (n in NODES) == old} for old in (True, False))
LABELS = {node: k % 3 for k, node in enumerate(NODES)}

VECTORS = partial(H2HGCN, dim=4, node_vectors=True)
ONLY_VECTORS = partial(H2HGCN, dim=4, node_vectors=True, use_features=False)


def trained(graph, task=None, encoder=SMALL):
    task = LinkPrediction(neighborhood_terms=True) if task is None else task
    return fit(task, graph, encoder, settings=TrainingSettings(epochs=3))


@pytest.fixture(scope="module")
def links():
    return trained(load_graph(EDGES, OLD_FEATURES), encoder=VECTORS)


def same_as_whole(run, whole, edges, features, **options):
    """What a run says of joined and of whole graphs is the same."""
    extended = run.with_new(edges, features, **options)
    order = [extended.nodes.tolist().index(node) for node in whole.node_ids.tolist()]
    assert torch.allclose(extended.embeddings[order], run.encode(whole), atol=1e-5)
    return extended


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("encoder", [SMALL, VECTORS, partial(GCN, dim=4)])
def test_links_are_those_of_the_whole_graph(encoder, directed):
    run = trained(load_graph(EDGES, OLD_FEATURES, directed=directed), encoder=encoder)
    whole = load_graph(EDGES + NEW_EDGES, FEATURES, directed=directed)
    extended = same_as_whole(run, whole, NEW_EDGES, NEW_FEATURES)
    assert extended.new_nodes.tolist() == ["a-new", "zoe"]
    assert extended.nodes.tolist() == [*NODES, "a-new", "zoe"]
    pairs = [["zoe", "n10"], ["n11", "a-new"], ["n01", "n20"]]
    assert torch.allclose(extended.predict(pairs), run.predict(pairs, whole), atol=1e-5)


def test_recommendations_leave_out_old_and_new_links(links):
    extended = links.with_new(NEW_EDGES, NEW_FEATURES)
    found = extended.recommend("zoe", k=28)
    assert {link.node for link in found} == {*NODES} - {"n03", "n05"}
    pairs = [["zoe", link.node] for link in found]
    assert [link.probability for link in found] == pytest.approx(extended.predict(pairs).tolist(), abs=1e-5)
    assert "zoe" in {link.node for link in extended.recommend("n10", k=27)}
    several = extended.recommend(["zoe", "a-new"], k=3)
    assert [link.node for link in several[:3]] == [link.node for link in found[:3]]
    assert several.to_pandas()["node"].tolist() == ["zoe"] * 3 + ["a-new"] * 3


def test_classes_of_new_nodes():
    run = trained(load_graph(EDGES, OLD_FEATURES, LABELS), NodeClassification(num_centroids=5, feature_terms=True))
    whole = load_graph(EDGES + NEW_EDGES, FEATURES, LABELS)
    extended = same_as_whole(run, whole, NEW_EDGES, NEW_FEATURES)
    assert torch.allclose(extended.predict(["zoe"]), run.predict(["zoe"], whole), atol=1e-5)
    assert extended.data.y.tolist()[-2:] == [-1, -1]
    assert len(extended.to_pandas()) == 32


@pytest.mark.parametrize("directed", [False, True])
def test_without_features_structural_ones_are_made_anew(directed):
    run = trained(load_graph(EDGES, directed=directed))
    same_as_whole(run, load_graph(EDGES + NEW_EDGES, directed=directed), NEW_EDGES, None)
    with pytest.raises(DataError, match="the run was trained without features; leave those of new nodes out"):
        run.with_new(NEW_EDGES, NEW_FEATURES)


def test_weights_of_new_edges():
    weighted, new = ([(*edge, 1.0 + k % 3) for k, edge in enumerate(edges)] for edges in (EDGES, NEW_EDGES))
    run = trained(load_graph(weighted, OLD_FEATURES))
    same_as_whole(run, load_graph(weighted + new, FEATURES), new, NEW_FEATURES)
    with pytest.raises(DataError, match="the edges of the run have weights; give new edges some"):
        run.with_new(NEW_EDGES, NEW_FEATURES)


def test_weights_that_the_run_does_not_have(links):
    with pytest.raises(DataError, match="the edges of the run have no weights"):
        links.with_new(NEW_EDGES, NEW_FEATURES, weights=[1.0] * 4)


def test_integers_as_ids():
    edges = [(k, (k + step) % 30) for step in (1, 7) for k in range(30)]
    run = trained(load_graph(edges))
    extended = same_as_whole(run, load_graph([*edges, (3, 99)]), [(3, 99)], None)
    assert extended.new_nodes.tolist() == [99]
    with pytest.raises(DataError, match="the id 'zoe' is not an integer, but those of the run are"):
        run.with_new([("3", "zoe")])


def test_nodes_without_ids_are_known_by_number():
    graph = load_graph(
        [(k, (k + step) % 30) for step in (1, 7) for k in range(30)], np.array(list(OLD_FEATURES.values()))
    )
    plain = Data(x=graph.x, edge_index=graph.edge_index)
    extended = trained(plain).with_new(torch.tensor([[30, 31], [4, 30]]), {30: [1, 0, 0], 31: [0, 1, 0]})
    assert extended.nodes.tolist() == list(range(32))
    assert len(extended.recommend(31, k=5)) == 5


def test_a_node_with_features_and_no_edges(links):
    extended = links.with_new(features={"lone": [0.1, 0.2, 0.3]})
    assert extended.new_nodes.tolist() == ["lone"]
    assert len(extended.recommend("lone", k=30)) == 30


def test_new_edges_between_known_nodes(links):
    extended = links.with_new([("n00", "n15")])
    assert len(extended.new_nodes) == 0
    assert "n15" not in {link.node for link in extended.recommend("n00", k=24)}


def test_sparse_features_find_their_columns(tmp_path):
    words = "id,feature,value\n" + "".join(f"{node},w{k % 5},{1 + k % 2}\n" for k, node in enumerate(NODES))
    (tmp_path / "words.csv").write_text(words)
    run = trained(load_graph(EDGES, tmp_path / "words.csv"))
    (tmp_path / "new.csv").write_text("id,feature,value\nzoe,w3,2\nzoe,w1,1\n")
    extended = run.with_new(NEW_EDGES, tmp_path / "new.csv")
    assert extended.data.x.is_sparse
    assert extended.data.x.to_dense()[-2:].tolist() == [[0, 0, 0, 0, 0], [0, 1, 0, 2, 0]]
    (tmp_path / "new.csv").write_text("id,feature,value\nzoe,w9,2\nzoe,w4,1\n")
    with pytest.warns(DataWarning, match=r"new.csv: features that the run does not have were left out: w9$"):
        assert run.with_new(NEW_EDGES, tmp_path / "new.csv").data.x.to_dense()[-1].tolist() == [0, 0, 0, 0, 1]
    (tmp_path / "new.csv").write_text("id,feature,value\nzoe,w9,2\n")
    with pytest.raises(DataError, match="the run has none of the features w9"):
        run.with_new(NEW_EDGES, tmp_path / "new.csv")


def test_features_that_the_model_does_not_use_may_be_missing():
    run = trained(load_graph(EDGES, OLD_FEATURES), encoder=ONLY_VECTORS)
    assert len(run.with_new(NEW_EDGES).recommend("zoe", k=3)) == 3
    with pytest.raises(DataError, match="node 'bob' is new and no path leads from it to a node of the run"):
        run.with_new([*NEW_EDGES, ("bob", "eve")])


def test_columns_of_new_features_may_have_another_order(tmp_path):
    whole, new = tmp_path / "x.csv", tmp_path / "new.csv"
    whole.write_text("id,a,b,c\n" + "".join(f"{node},{','.join(map(str, x))}\n" for node, x in OLD_FEATURES.items()))
    new.write_text("id,c,a,b\n" + "".join(f"{node},{x[2]},{x[0]},{x[1]}\n" for node, x in NEW_FEATURES.items()))
    run = trained(load_graph(EDGES, whole))
    torch.testing.assert_close(
        run.with_new(NEW_EDGES, new).embeddings, run.with_new(NEW_EDGES, NEW_FEATURES).embeddings
    )


def test_an_id_that_may_be_mistyped_is_noted(links):
    run = trained(load_graph(EDGES), encoder=ONLY_VECTORS)
    with pytest.warns(DataWarning, match="'N05' is taken for a new node; did you mean 'n05'"):
        run.with_new([("zoe", "n03"), ("zoe", "N05")])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run.with_new([("zoe", "n03"), ("n9x", "n03")])


def test_ids_of_the_run_tell_a_header(tmp_path):
    run = trained(load_graph(EDGES), encoder=ONLY_VECTORS)
    expected = run.with_new([("n03", "zoe"), ("zoe", "yan")])
    for name, text in {"no": "n03,zoe\nzoe,yan\n", "with": "Supplier,Customer\nn03,zoe\nzoe,yan\n"}.items():
        (tmp_path / f"{name}.csv").write_text(text)
        extended = run.with_new(tmp_path / f"{name}.csv")
        assert extended.nodes.tolist() == expected.nodes.tolist()
        torch.testing.assert_close(extended.embeddings, expected.embeddings)


def test_more_new_nodes_later(links):
    first = links.with_new([("zoe", "n01")], {"zoe": [1, 0, 0]})
    both = first.with_new([("yan", "zoe")], {"yan": [0, 1, 0]})
    at_once = links.with_new([("zoe", "n01"), ("yan", "zoe")], {"zoe": [1, 0, 0], "yan": [0, 1, 0]})
    pairs = [["yan", "n05"], ["zoe", "n07"]]
    assert torch.allclose(both.predict(pairs), at_once.predict(pairs), atol=1e-5)


@pytest.mark.parametrize(
    ("edges", "features", "message"),
    [
        (None, None, "there is nothing new; give new edges"),
        (NEW_EDGES, None, "node 'a-new' is new and has no features, which the model needs \\(and 1 more\\)"),
        (NEW_EDGES, {"zoe": [1, 2, 3]}, "node 'a-new' is new and has no features, which the model needs; give its row"),
        (NEW_EDGES, {**NEW_FEATURES, "n03": [1, 2, 3]}, "'n03' is a node of the run, which has its features"),
        (NEW_EDGES, {"zoe": [1], "a-new": [2]}, "has 1 features a node; the run was trained with 3"),
        (NEW_EDGES, np.ones((2, 3)), "the features has no ids; name the new node of each row"),
    ],
)
def test_what_cannot_be_joined(links, edges, features, message):
    with pytest.raises(DataError, match=message):
        links.with_new(edges, features)


def test_edges_that_lead_nowhere_are_refused_or_noted(links):
    with pytest.warns(DataWarning, match=r"no edge leads to a node of the run: there are no nodes 'N3' \(did you mean"):
        links.with_new([("zoe", "N3")], {"zoe": [1, 2, 3], "N3": [1, 2, 3]})
    with pytest.raises(DataError, match="no edge leads to a node of the run"):
        trained(load_graph(EDGES)).with_new([("zoe", "yan")])


def test_what_is_left_out_is_noted(links):
    with pytest.warns(DataWarning) as notes:
        links.with_new([("n00", "n01"), ("n00", "n00"), ("n02", "n20")])
    texts = [str(note.message) for note in notes]
    assert any("edges that join a node with itself were left out: 1" in text for text in texts)
    assert any("edges that are in the graph of the run already were left out: 1" in text for text in texts)


def test_what_belongs_to_the_trained_run_alone(links, tmp_path):
    extended = links.with_new(NEW_EDGES, NEW_FEATURES)
    with pytest.raises(DataError, match="no split and no metrics"):
        extended.evaluate()
    with pytest.raises(DataError, match="is not saved"):
        extended.save(tmp_path / "run")
    whole = load_graph(EDGES + NEW_EDGES, FEATURES)
    assert torch.equal(extended.encode(whole), links.encode(whole))


def test_runs_that_take_no_new_nodes():
    graph = load_graph(EDGES)
    shallow = trained(graph, Embedding(), partial(ShallowHyperbolic, dim=3))
    with pytest.raises(DataError, match="knows no others"):
        shallow.with_new(NEW_EDGES)
