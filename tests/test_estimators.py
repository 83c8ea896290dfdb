"""The estimators as scikit-learn uses them: its own checks, searches, pipelines and copies."""

import pickle

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from runs import scale_free
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from h2hgcn import H2HGCNClassifier, H2HGCNEmbedder, H2HGCNLinkPredictor
from h2hgcn.errors import DataError
from h2hgcn.estimators import labeled_pairs

pytestmark = pytest.mark.filterwarnings("ignore::h2hgcn.errors.DataWarning")
QUICK = {"search": "none", "dim": 4, "epochs": 2, "final": False}
WITHOUT_TERMS = {"task.neighborhood_terms": False, "task.calibrate": False}  # which take seconds to fit
OF_CLASSES = {"task.calibrate": False}

ROUNDING = "sums of neighbors in float32 depend on the order of the rows, by 1e-7"
PAIRS = "the check's X are rows of features, and a link predictor takes pairs of node ids"
OF_FEATURES = (
    "check_classifier_data_not_an_array", "check_classifiers_classes", "check_classifiers_one_label",
    "check_classifier_not_supporting_multiclass", "check_classifiers_train", "check_decision_proba_consistency",
    "check_dict_unchanged", "check_dont_overwrite_parameters", "check_estimator_sparse_array",
    "check_estimator_sparse_matrix", "check_estimator_sparse_tag", "check_estimators_dtypes",
    "check_estimators_fit_returns_self",
    "check_estimators_overwrite_params", "check_estimators_pickle", "check_f_contiguous_array_estimator",
    "check_fit2d_1feature", "check_fit2d_1sample", "check_fit_check_is_fitted",
    "check_fit_idempotent", "check_fit_score_takes_y", "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_pipeline_consistency", "check_positive_only_tag_during_fit", "check_readonly_memmap_input",
)  # fmt: skip


def expected_failures(estimator):
    if isinstance(estimator, H2HGCNLinkPredictor):
        return dict.fromkeys(OF_FEATURES, PAIRS)
    return {"check_methods_sample_order_invariance": ROUNDING}


# Without a graph, nodes are rows of features, which is what the checks have.
@parametrize_with_checks(
    [
        H2HGCNClassifier(**QUICK, n_neighbors=3, settings=OF_CLASSES),
        H2HGCNEmbedder(**QUICK, n_neighbors=3, settings=WITHOUT_TERMS),
        H2HGCNLinkPredictor(**QUICK, settings=WITHOUT_TERMS),
    ],
    expected_failed_checks=expected_failures,
)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def groups():
    """A graph of three groups with features that hint at them, named in words."""
    edges = np.array(nx.planted_partition_graph(3, 30, 0.3, 0.02, seed=0).edges)
    y = np.repeat(["red", "green", "blue"], 30)
    x = np.random.RandomState(0).normal(size=(90, 4)) + (y == "red")[:, None]
    graph = Data(x=torch.tensor(x).float(), edge_index=to_undirected(torch.tensor(edges.T)))
    graph.node_ids = np.array([f"n{k}" for k in range(90)])
    return graph, graph.node_ids, y


def test_a_grid_search_over_nodes(groups):
    graph, ids, y = groups
    search = GridSearchCV(
        H2HGCNClassifier(graph, search="none", epochs=40, final=False), {"dim": [4, 16]}, cv=2, error_score="raise"
    )
    search.fit(ids, y)
    assert search.best_score_ > 0.5
    assert set(search.predict(ids)) == {"red", "green", "blue"}
    assert search.best_estimator_.run_.model.dim == search.best_params_["dim"]
    assert search.predict_proba(ids[:7]).shape == (7, 3)


def test_only_the_labels_of_x_are_known(groups):
    graph, ids, y = groups
    fitted = H2HGCNClassifier(graph, **QUICK).fit(ids[:60], y[:60])
    assert fitted.run_.data.y.tolist() == [*fitted.classes_.searchsorted(y[:60]), *[-1] * (len(ids) - 60)]
    assert "y" not in graph  # the user's graph is as it was
    as_column = H2HGCNClassifier(graph, **QUICK).fit(pd.DataFrame({"id": ids[:60]}), y[:60])
    np.testing.assert_array_equal(as_column.predict_proba(ids), fitted.predict_proba(ids))


def test_a_final_fit_predicts(groups):
    graph, ids, y = groups
    fitted = H2HGCNClassifier(graph, **QUICK | {"final": True}).fit(ids, y)
    expected = fitted.run_.final.predict(ids[:5])
    np.testing.assert_allclose(fitted.predict_proba(ids[:5]), expected, rtol=1e-6)
    assert not np.allclose(fitted.predict_proba(ids[:5]), fitted.run_.predict(ids[:5]), rtol=1e-6)


def test_a_classifier_of_rows_learns():
    X, y = make_moons(200, noise=0.1, random_state=0)
    pipeline = make_pipeline(StandardScaler(), H2HGCNClassifier(search="none", epochs=60, final=False))
    assert cross_val_score(pipeline, X, y, cv=2).mean() > 0.75


def test_embeddings_in_a_pipeline(groups):
    graph, ids, y = groups
    embedder = H2HGCNEmbedder(graph, search="none", dim=8, epochs=20).set_output(transform="pandas")
    pipeline = make_pipeline(embedder, StandardScaler(), LogisticRegression())
    nodes = pd.DataFrame({"node": ids, "other": 0})
    pick = FunctionTransformer(lambda frame: frame["node"].to_numpy())
    scores = cross_val_score(make_pipeline(pick, pipeline), nodes, y, cv=2, error_score="raise")
    assert scores.mean() > 0.5
    points = embedder.fit_transform(ids)
    assert points.columns.tolist() == [f"h2hgcnembedder{k}" for k in range(8)]
    assert embedder.score() == embedder.run_.metrics["test"]["auc"]
    lengths = embedder.run_.final.embeddings[:, 0].double().arccosh()
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), lengths, rtol=1e-4)


def test_links_in_a_grid_search():
    graph = scale_free()
    pairs, y = labeled_pairs(graph, random_state=1)
    estimator = H2HGCNLinkPredictor(graph, search="none", epochs=40, settings=WITHOUT_TERMS)
    search = GridSearchCV(estimator, {"final": [False]}, cv=2, scoring="roc_auc", error_score="raise")
    search.fit(pairs, y)
    assert search.best_score_ > 0.6
    assert search.best_estimator_.run_.data.edge_index.shape[1] == 2 * y.sum()
    half = clone(estimator).fit(pairs[::2], y[::2])  # with a final fit
    assert half.score(pairs[1::2], y[1::2]) > 0.6
    order = half.decision_function(pairs).argsort()
    assert (np.diff(half.predict_proba(pairs)[order, 1]) >= 0).all()


def test_probabilities_of_links_are_those_of_samples_like_y():
    graph = scale_free()
    pairs, y = labeled_pairs(graph)
    estimator = H2HGCNLinkPredictor(graph, search="none", epochs=20, final=False, settings=WITHOUT_TERMS)
    rare = np.concatenate([np.flatnonzero(y)[::3], np.flatnonzero(y == 0)])
    for rows in (np.arange(len(y)), rare):
        fitted = clone(estimator).fit(pairs[rows], y[rows])
        known = fitted.run_.problem.split
        held_out = known.test, known.test_neg
        linked, others = (fitted.predict_proba(each)[:, 1].mean() for each in held_out)
        share = y[rows].mean()
        assert share * linked + (1 - share) * others == pytest.approx(share, abs=0.1)


def test_pairs_of_a_graph():
    graph = nx.les_miserables_graph()
    pairs, y = labeled_pairs(graph)
    links = {frozenset(edge) for edge in graph.edges}
    assert [frozenset(pair) in links for pair in pairs.tolist()] == y.astype(bool).tolist()
    assert len({frozenset(pair) for pair in pairs.tolist()}) == len(pairs) == 2 * len(links)
    again, _ = labeled_pairs(graph)
    np.testing.assert_array_equal(again, pairs)


def test_links_go_one_way_in_a_directed_graph():
    pairs, y = labeled_pairs(scale_free(directed=True))
    fitted = H2HGCNLinkPredictor(scale_free(directed=True), **QUICK, settings=WITHOUT_TERMS).fit(pairs, y)
    assert fitted.run_.data.edge_index.shape[1] == y.sum()
    assert not np.array_equal(fitted.decision_function(pairs), fitted.decision_function(pairs[:, ::-1]))


def test_links_without_a_graph():
    pairs = np.array(nx.les_miserables_graph().edges)
    fitted = H2HGCNLinkPredictor(**QUICK, settings=WITHOUT_TERMS).fit(pairs)
    assert fitted.classes_.tolist() == [0, 1]
    assert fitted.predict_proba([["Javert", "Fantine"]]).sum() == pytest.approx(1)


def test_a_fitted_estimator_can_be_pickled(groups):
    graph, ids, y = groups
    fitted = H2HGCNClassifier(graph, **QUICK, random_state=3).fit(ids, y)
    assert fitted.run_.config["seed"] == 3
    twin = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(twin.predict_proba(ids), fitted.predict_proba(ids))


@pytest.mark.parametrize(
    ("estimator", "x", "y", "message"),
    [
        (H2HGCNClassifier(scale_free()), [[1, 2]], [0], r"X has the shape \(1, 2\); with a graph it holds the id"),
        (H2HGCNClassifier(scale_free()), [1, 500], [0, 1], "there is no node 500; ids go from 0 to 199"),
        (H2HGCNClassifier(scale_free()), [1, 2, 1], [0, 1, 1], "X has the node 1 more than once, with different"),
        (H2HGCNClassifier(scale_free()), [1, 2], [0, 1, 1], "X has 2 rows and y has 3; give one class for each row"),
        (H2HGCNLinkPredictor(), [1, 2], [0, 1], r"X has the shape \(2,\); it holds two node ids in each row"),
        (H2HGCNLinkPredictor(), [[1, 2], [2, 3], [3, 4]], [0, 1, 2], "y has 3 classes; a pair is linked"),
        (H2HGCNLinkPredictor(), [[1, 2], [2, 3]], [0, 0], "y has no link .1.; give pairs that are linked, too"),
        (H2HGCNEmbedder("no such file"), [1, 2], None, "no such file' is neither a file nor a named dataset"),
    ],
)
def test_bad_input(estimator, x, y, message):
    with pytest.raises(DataError, match=message):
        estimator.fit(x, y)
