"""scikit-learn estimators: classes of nodes, links, and coordinates, trained by ``h2hgcn.train``."""

from copy import copy
from numbers import Integral
from os import PathLike
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import assert_all_finite, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import is_undirected, to_undirected

from h2hgcn.datasets import load_graph, split_edges
from h2hgcn.datasets.arrays import MASKS, UNLABELLED
from h2hgcn.datasets.pairs import AbsentPairs, distinct_pairs
from h2hgcn.embeddings.coordinates import convert
from h2hgcn.errors import DataError
from h2hgcn.experiments.config import GraphChoice, open_graph, place_of
from h2hgcn.experiments.train import train
from h2hgcn.tasks.metrics import LinkCalibration
from h2hgcn.training import Run
from h2hgcn.training.artifacts import coordinates_of
from h2hgcn.training.names import NodeNames


class _GraphEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn is not annotated
    """What the estimators share: their graph, and how they are trained."""

    def __init__(
        self,
        graph: Any = None,
        *,
        model: str = "h2h-gcn",
        dim: int | None = None,
        layers: int | None = None,
        epochs: int | None = None,
        lr: float | None = None,
        settings: dict[str, Any] | None = None,
        search: str = "auto",
        final: bool = True,
        device: str | None = None,
        random_state: Any = 0,
    ) -> None:
        self.graph = graph
        self.model = model
        self.dim = dim
        self.layers = layers
        self.epochs = epochs
        self.lr = lr
        self.settings = settings
        self.search = search
        self.final = final
        self.device = device
        self.random_state = random_state

    def _train(self, data: Data, task: str) -> None:
        seed = self.random_state
        if not isinstance(seed, Integral):
            seed = check_random_state(seed).randint(2**31)
        self.run_ = train(
            data, task, model=self.model, dim=self.dim, layers=self.layers, epochs=self.epochs, lr=self.lr,
            seed=int(seed), device=self.device, search=self.search, settings=self.settings, final=self.final,
        )  # fmt: skip

    @property
    def _trained(self) -> Run:
        """The run that predicts: the final fit, if there is one."""
        check_is_fitted(self, "run_")
        return self.run_.final or self.run_


class _NodeEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, _GraphEstimator):  # type: ignore[misc]
    """An estimator whose rows are nodes: ids in a graph, or without one, features; nearest neighbors are linked."""

    def __init__(
        self,
        graph: Any = None,
        *,
        model: str = "h2h-gcn",
        dim: int | None = None,
        layers: int | None = None,
        epochs: int | None = None,
        lr: float | None = None,
        settings: dict[str, Any] | None = None,
        search: str = "auto",
        final: bool = True,
        n_neighbors: int = 10,
        device: str | None = None,
        random_state: Any = 0,
    ) -> None:
        super().__init__(
            graph, model=model, dim=dim, layers=layers, epochs=epochs, lr=lr, settings=settings, search=search,
            final=final, device=device, random_state=random_state,
        )  # fmt: skip
        self.n_neighbors = n_neighbors

    def _bound(self, X: Any) -> tuple[Data, NDArray[np.int64]]:
        """The graph without labels, and the node of each row, for ``fit``."""
        if self.graph is None:
            X = validate_data(self, X, ensure_min_samples=2, dtype=np.float64)
            self._neighbors = NearestNeighbors(n_neighbors=min(self.n_neighbors, len(X) - 1)).fit(X)
            nearest = self._neighbors.kneighbors(return_distance=False)
            nodes = np.arange(len(X))
            edges = np.stack([nearest.ravel(), nodes.repeat(nearest.shape[1])])
            edge_index = to_undirected(torch.from_numpy(edges), num_nodes=len(X))
            return Data(x=_features(X), edge_index=edge_index, directed=False), nodes
        data = _without(_opened(self.graph), "y", *MASKS)
        return data, _numbers(data, X)

    def _rows(self, X: Any) -> tuple[Data, NDArray[np.int64]]:
        """The graph that a fitted model is applied to, and the node of each row."""
        data: Data = self._trained.data
        if self.graph is not None:
            return data, _numbers(data, X)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        nearest, known = self._neighbors.kneighbors(X, return_distance=False), len(data.x)
        nodes = np.arange(known, known + len(X))
        edges = np.stack([nearest.ravel(), nodes.repeat(nearest.shape[1])])  # to the new rows alone, which stay apart
        edge_index = torch.cat([data.edge_index, torch.from_numpy(edges)], 1)
        return Data(x=torch.cat([data.x, _features(X)]), edge_index=edge_index, directed=data.directed), nodes

    def transform(self, X: Any) -> NDArray[np.floating]:
        """Coordinates of the rows in the tangent space at the origin, for Euclidean methods; of a Euclidean model, its
        own.
        """
        run = self._trained
        data, nodes = self._rows(X)
        points = (run.embeddings if data is run.data else run.encode(data))[torch.from_numpy(nodes)]
        space = coordinates_of(run.model.encoder)
        return points.numpy() if space == "euclidean" else convert(points, "tangent", space)

    @property
    def _n_features_out(self) -> int:
        return self._trained.model.dim

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        tags.no_validation = self.graph is not None  # ids may be texts
        return tags


class H2HGCNClassifier(ClassifierMixin, _NodeEstimator):  # type: ignore[misc]
    """Classes of nodes.

    ``X`` holds the ids of nodes, ``(n,)`` or ``(n, 1)``, so that cross-validation splits nodes; the whole graph carries
    messages, and only the labels of ``X`` are known. Without a graph, ``X`` holds features, and each row is linked with
    its nearest neighbors.

    Args:
        graph: One graph, as ``h2hgcn.train`` takes it: a PyG ``Data``, the name of a dataset, a file, and others. Each
            clone of the estimator copies it, but not a file that is named.
        model, dim, layers, epochs, lr, device, search, settings: As for ``h2hgcn.train``. In a search of scikit-learn,
            ``search="none"`` saves the one that ``fit`` would do each time.
        final: Whether to train again on all of ``X`` once the number of epochs was chosen on held-out rows.
        n_neighbors: Neighbors of a row, where there is no graph.
        random_state: The seed of training.

    Attributes:
        run_: The ``Run``, with the metrics on rows that were held out of ``X``; ``run_.final`` predicts.
        classes_: The classes, in the order of ``predict_proba``.
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Trains on nodes ``X`` of classes ``y``."""
        data, nodes = self._bound(X)
        y = _classes_of(y, len(nodes))
        self.classes_, labels = np.unique(y, return_inverse=True)
        known = np.full(data.num_nodes, UNLABELLED)
        known[nodes] = labels
        if (known[nodes] != labels).any():
            row = int((known[nodes] != labels).argmax())
            raise DataError(f"X has the node {np.ravel(X)[row]} more than once, with different classes; keep one")
        data.y = torch.from_numpy(known)
        self._train(data, "nc")
        return self

    def predict_proba(self, X: Any) -> NDArray[np.floating]:
        """A probability for each class, in the order of ``classes_``."""
        run = self._trained
        data, nodes = self._rows(X)
        probabilities = run.predict(data=None if data is run.data else data)[torch.from_numpy(nodes)].double().numpy()
        return probabilities / probabilities.sum(1, keepdims=True)

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of each row."""
        likeliest = self.predict_proba(X).argmax(1)
        return self.classes_[likeliest]


class H2HGCNEmbedder(_NodeEstimator):
    """Coordinates of nodes, learned from the links of a graph without labels.

    ``X`` holds ids of nodes, or without a graph features, as for ``H2HGCNClassifier``; ``fit`` learns from the whole
    graph, whatever nodes are in ``X``.

    Args:
        graph, model, dim, layers, epochs, lr, device, search, settings, final, n_neighbors, random_state: As for
            ``H2HGCNClassifier``.

    Attributes:
        run_: The ``Run`` of link prediction; ``run_.final.embeddings`` are the points on the hyperboloid.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Trains on the links of the graph; ``y`` is not used."""
        self._train(self._bound(X)[0], "lp")
        return self

    def score(self, X: Any = None, y: Any = None) -> float:
        """ROC AUC of links that ``fit`` held out; ``X`` is only checked and ``y`` is not used."""
        check_is_fitted(self, "run_")
        if X is not None:
            self._rows(X)
        return self.run_.metrics["test"]["auc"]


class H2HGCNLinkPredictor(ClassifierMixin, _GraphEstimator):  # type: ignore[misc]
    """Whether two nodes are linked.

    ``X`` holds pairs of node ids ``(n, 2)`` and ``y`` whether they are linked, so that cross-validation splits pairs.
    The links of ``X`` are all that the model knows; see ``labeled_pairs`` for pairs of a graph.

    Args:
        graph: Where nodes, their features and the direction of links come from, as for ``H2HGCNClassifier``. Its links
            are not used. None: the nodes are those of ``X``, without features, and links have no direction.
        model, dim, layers, epochs, lr, device, search, settings, final, random_state: As for ``H2HGCNClassifier``.

    Attributes:
        run_: The ``Run``; ``run_.final.recommend(node)`` lists the likeliest links that ``X`` does not have.
        classes_: The two classes; the second one is a link.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Trains on the links among the pairs ``X``, all of them if ``y`` is None.

        Pairs without a link tell which nodes there are; training draws its own among all pairs that are not linked.
        """
        pairs = _pairs(X)
        y = _classes_of(np.ones(len(pairs), np.int64) if y is None else y, len(pairs))
        found = np.unique(y)
        if len(found) > 2:
            raise DataError(f"y has {len(found)} classes; a pair is linked (1) or not (0)")
        self.classes_ = found if len(found) == 2 else np.array([0, 1])
        if self.graph is None:
            ids = np.unique(pairs)
            data = Data(num_nodes=len(ids), node_ids=ids, directed=False)
        else:
            data = _without(_opened(self.graph), "y", "edge_attr", "edge_weight", *MASKS)
            if getattr(data, "structural", False):  # made from links that were held out
                data = _without(data, "x", "structural", "feature_names")
        if not (y == self.classes_[1]).any():
            raise DataError("y has no link (1); give pairs that are linked, too")
        links = torch.from_numpy(NodeNames(data).numbers(pairs[y == self.classes_[1]]).T.copy())
        data.edge_index = links if data.directed else to_undirected(links, num_nodes=data.num_nodes)
        self._train(data, "lp")
        self._calibrate(float(len(links.T) / len(pairs)) if len(found) == 2 else 0.5)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.no_validation = True  # ids may be texts
        tags.target_tags.required = False
        return tags

    def _calibrate(self, share: float) -> None:
        """Fits probabilities on the pairs that the run was validated and tested on, of which half are linked, and
        shifts them to samples of which this share is linked.
        """
        problem: Any = self.run_.problem
        model = self.run_.model
        with torch.no_grad():
            points = problem.points(model)
            scores = np.concatenate([problem.part_scores(model, points, part) for part in problem.task.parts])
        labels = np.concatenate([problem.parts[part].labels for part in problem.task.parts])
        self._calibration = LinkCalibration().double()
        self._calibration.fit(scores, labels, np.ones(len(scores)))
        self._shift = np.log(share / (1 - share))

    def decision_function(self, X: Any) -> NDArray[np.floating]:
        """The log odds of a link for each pair."""
        run = self._trained
        logits = run.link_logits(NodeNames(run.data).numbers(_pairs(X))).double()
        return self._calibration(logits).logit().numpy() + self._shift

    def predict_proba(self, X: Any) -> NDArray[np.floating]:
        """Probabilities of no link and of a link.

        They are fitted on links that were held out of ``X``, for samples with the share of links that ``y`` had.
        """
        linked = expit(self.decision_function(X))
        return np.stack([1 - linked, linked], axis=1)

    def predict(self, X: Any) -> NDArray[Any]:
        """Whether each pair is linked."""
        linked = self.decision_function(X) > 0
        return self.classes_[linked.astype(np.int64)]


def labeled_pairs(graph: Any, random_state: Any = 0) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Pairs ``(n, 2)`` of node ids and whether they are linked: each link of a graph once, and as many different pairs
    without one, in a random order.

    ``graph`` is what ``H2HGCNLinkPredictor`` takes.
    """
    data, random = _opened(graph), check_random_state(random_state)
    split = split_edges(data, val=0.0, test=0.0, seed=int(random.randint(2**31)))
    absent = AbsentPairs(split.space, distinct_pairs(split.space, split.train))
    drawn = np.unique(absent.draw(2 * len(split.train), random), axis=0)
    others = drawn[random.permutation(len(drawn))[: len(split.train)]]
    pairs = np.concatenate([split.train, others])
    y = np.repeat([1, 0], [len(split.train), len(others)])
    order = random.permutation(len(pairs))
    return NodeNames(data).ids[pairs[order]], y[order]


def _opened(graph: Any) -> Data:
    """A graph as a ``Data`` with its number of nodes and its direction."""
    if isinstance(graph, str | PathLike):
        name, graph = graph, open_graph(GraphChoice(place_of(graph)))
        if not isinstance(graph, Data):
            raise DataError(f"{name} is a collection of graphs; pass one graph")
    elif not isinstance(graph, Data):
        graph = load_graph(graph)
    data = copy(graph)
    if getattr(data, "directed", None) is None:
        data.directed = not is_undirected(data.edge_index, num_nodes=data.num_nodes)
    return data


def _without(data: Data, *names: str) -> Data:
    """The graph without some of its attributes; the number of nodes stays."""
    data.num_nodes = data.num_nodes
    for name in names:
        if name in data:
            del data[name]
    return data


def _features(X: NDArray[np.float64]) -> Tensor:
    return torch.tensor(X, dtype=torch.float32)


def _numbers(data: Data, X: Any) -> NDArray[np.int64]:
    """The nodes of ``X``, which names one in each row."""
    ids = np.asarray(X)
    if ids.ndim == 0 or ids.size != len(ids):
        raise DataError(f"X has the shape {ids.shape}; with a graph it holds the id of one node in each row")
    return NodeNames(data).numbers(ids.ravel())


def _classes_of(y: Any, count: int) -> NDArray[Any]:
    y = column_or_1d(y, warn=True)
    assert_all_finite(y)
    check_classification_targets(y)
    if len(y) != count:
        raise DataError(f"X has {count} rows and y has {len(y)}; give one class for each row")
    return y


def _pairs(X: Any) -> NDArray[Any]:
    pairs = np.asarray(X)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise DataError(f"X has the shape {pairs.shape}; it holds two node ids in each row")
    return pairs
