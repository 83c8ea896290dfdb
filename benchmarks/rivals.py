"""Simple alternatives to a trained hyperbolic model, for links and for classes of nodes.

A method yields candidates: a setting, and what it predicts. The best on validation data is the method's answer, so
each may choose among its settings. None of them sees test data.
"""

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import GATConv, GCNConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import to_torch_csr_tensor

from h2hgcn.datasets import draw_negatives
from h2hgcn.jit import compiled
from h2hgcn.tasks.metrics import auc, class_metrics

Pairs = NDArray[np.int64]
Classes = NDArray[np.int64]
Floats = NDArray[np.floating]
PairScores = Callable[[Pairs], Floats]
LinkMethod = Callable[[Any, int], Iterator[tuple[str, PairScores]]]
NodeMethod = Callable[[Any, int], Iterator[tuple[str, Classes]]]

DIM = 64  # of node2vec, the GNNs and their node vectors: the default of h2h-gcn
RANKS = (16, 64)
POINCARE_DIM = 10
POINCARE_RELATIONS = 200_000  # that are trained on, over all epochs: about half a minute
TOKENS = 1_000_000  # in the random walks of a graph
EPOCHS, FIRST_EPOCHS, PATIENCE = 300, 60, 50


def adjacency_of(problem: Any) -> sp.csr_array:
    """The training graph."""
    index, _ = problem.adjacency.edges(self_loops=False)
    rows, columns = index.numpy()
    return sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(problem.num_nodes, problem.num_nodes))


def val_auc(problem: Any, score: PairScores) -> float:
    return auc(score(problem.split.val), score(problem.split.val_neg))


def val_accuracy(problem: Any, classes: Classes) -> float:
    nodes = problem.split.val
    return class_metrics(problem.y.numpy()[nodes], classes[nodes], problem.num_classes)["accuracy"]


# Scores without training


def isolated_end(problem: Any, seed: int) -> Iterator[tuple[str, PairScores]]:
    """How many ends of a pair have no training edge: what the split alone reveals. Where every node had an edge, a node
    without one must have lost it to validation or test, so a high AUC here says nothing about links.
    """
    alone = adjacency_of(problem).sum(1) == 0
    yield "", lambda pairs: alone[pairs].sum(1).astype(np.float64)


def degree_product(problem: Any, seed: int) -> Iterator[tuple[str, PairScores]]:
    degrees = adjacency_of(problem).sum(1)
    yield "", lambda pairs: degrees[pairs[:, 0]] * degrees[pairs[:, 1]]


def common_neighbors(problem: Any, seed: int) -> Iterator[tuple[str, PairScores]]:
    graph = adjacency_of(problem)
    yield "", partial(_shared, graph, graph)


def adamic_adar(problem: Any, seed: int) -> Iterator[tuple[str, PairScores]]:
    graph = adjacency_of(problem)
    degrees = graph.sum(1)
    rarity = np.where(degrees > 1, 1 / np.log(np.maximum(degrees, 2)), 0.0)
    yield "", partial(_shared, graph, sp.csr_array(graph * rarity))


def _shared(graph: sp.csr_array, weighted: sp.csr_array, pairs: Pairs) -> Floats:
    blocks = np.array_split(pairs, len(pairs) // 4096 + 1)
    return np.concatenate([(graph[block[:, 0]] * weighted[block[:, 1]]).sum(1) for block in blocks])


def feature_cosine(problem: Any, seed: int) -> Iterator[tuple[str, PairScores]]:
    x = problem.x.numpy().astype(np.float64)
    yield "raw", partial(_cosines, x)
    yield "standardized", partial(_cosines, _standardized(x))


def truncated_svd(problem: Any, seed: int) -> Iterator[tuple[str, PairScores]]:
    from sklearn.utils.extmath import randomized_svd

    graph = adjacency_of(problem)
    roots = 1 / np.sqrt(np.maximum(graph.sum(1), 1))
    normalized = sp.csr_array((graph * roots).T * roots)
    for name, matrix in (("adjacency", graph), ("normalized adjacency", normalized)):
        left, values, right = randomized_svd(matrix, min(RANKS[-1], problem.num_nodes - 1), random_state=seed)
        for rank in RANKS:
            sources, targets = left[:, :rank] * values[:rank], right[:rank].T
            yield f"{name}, rank {rank}", partial(_dots, sources, targets)


def _dots(sources: Floats, targets: Floats, pairs: Pairs) -> Floats:
    result: Floats = np.einsum("ij,ij->i", sources[pairs[:, 0]], targets[pairs[:, 1]])
    return result


def _cosines(rows: Floats, pairs: Pairs) -> Floats:
    unit = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return _dots(unit, unit, pairs)


def _standardized(rows: Floats) -> Floats:
    spread = rows.std(0)
    return (rows - rows.mean(0)) / np.where(spread > 0, spread, 1)


# node2vec and Poincaré embeddings, by gensim


def node2vec_links(problem: Any, seed: int) -> Iterator[tuple[str, PairScores]]:
    """Grover and Leskovec 2016: inner products, cosines, or their logistic regression on Hadamard products."""
    from sklearn.linear_model import LogisticRegression

    negatives = draw_negatives(problem.split, len(problem.split.train), seed)
    pairs = np.concatenate([problem.split.train, negatives])
    labels = np.arange(len(pairs)) < len(negatives)
    for name, rows in _node2vec(problem, seed):
        yield f"{name}, inner product", partial(_dots, rows, rows)
        yield f"{name}, cosine", partial(_cosines, rows)
        scale = (rows[pairs[:, 0]] * rows[pairs[:, 1]]).std(0)
        scaled = rows / np.sqrt(np.where(scale > 0, scale, 1))
        fitted = LogisticRegression(max_iter=300).fit(scaled[pairs[:, 0]] * scaled[pairs[:, 1]], labels)
        yield f"{name}, logistic regression", partial(_dots, scaled * fitted.coef_[0], scaled)


def node2vec_classes(problem: Any, seed: int) -> Iterator[tuple[str, Classes]]:
    for name, rows in _node2vec(problem, seed):
        yield name, _regression(problem, _standardized(rows), 1.0)


def _node2vec(problem: Any, seed: int) -> Iterator[tuple[str, Floats]]:
    from gensim.models import Word2Vec

    graph, length, nodes = adjacency_of(problem), 20, problem.num_nodes
    graph.sort_indices()
    for q in (1.0, 0.5):
        count = int(np.clip(TOKENS // (length * nodes), 5, 100))
        starts = np.tile(np.arange(nodes), count)
        np.random.RandomState(seed).shuffle(starts)
        walks = np.full((len(starts), length), -1)
        _walk(graph.indptr, graph.indices, starts, q, seed, walks)
        sentences = [[str(node) for node in walk if node >= 0] for walk in walks.tolist()]
        model = Word2Vec(
            sentences,
            vector_size=DIM,
            window=5,
            sg=1,
            negative=5,
            min_count=0,
            sample=0,
            workers=1,
            epochs=1,
            seed=seed + 1,
        )
        yield f"q {q}", model.wv[[str(node) for node in range(nodes)]].astype(np.float64)


@compiled
def _walk(starts_of: Any, neighbors: Any, starts: Any, q: float, seed: int, walks: Any) -> None:
    """Walks of node2vec with p = 1, by rejection: a step to a node that is not beside the one before weighs 1/q."""
    np.random.seed(seed)
    most = max(1.0, 1 / q)
    for row in range(len(starts)):
        before, here = -1, starts[row]
        walks[row, 0] = here
        for step in range(1, walks.shape[1]):
            first, last = starts_of[here], starts_of[here + 1]
            if first == last:
                break
            while True:
                there = neighbors[np.random.randint(first, last)]
                if before < 0 or q == 1:
                    break
                near = neighbors[starts_of[before] : starts_of[before + 1]]
                place = np.searchsorted(near, there)
                beside = there == before or (place < len(near) and near[place] == there)
                if np.random.random() * most < (1.0 if beside else 1 / q):
                    break
            before, here = here, there
            walks[row, step] = here


def poincare(problem: Any, seed: int) -> Iterator[tuple[str, PairScores]]:
    """Nickel and Kiela 2017."""
    from gensim.models.poincare import PoincareModel

    graph = adjacency_of(problem).tocoo()
    relations = [(str(one), str(other)) for one, other in zip(graph.row.tolist(), graph.col.tolist(), strict=True)]
    strangers = problem.num_nodes - int(graph.sum(1).max()) - 1
    epochs = int(np.clip(POINCARE_RELATIONS // len(relations), 5, 50))
    model = PoincareModel(
        relations, size=POINCARE_DIM, negative=min(10, max(strangers, 1)), burn_in=max(1, epochs // 5), seed=seed
    )
    model.train(epochs, batch_size=50, print_every=10**9)
    points = np.zeros((problem.num_nodes, POINCARE_DIM))  # nodes without a training edge stay at the origin
    points[[int(key) for key in model.kv.index_to_key]] = model.kv.vectors
    yield f"{epochs} epochs", partial(_poincare_closeness, points)


def _poincare_closeness(points: Floats, pairs: Pairs) -> Floats:
    one, other = points[pairs[:, 0]], points[pairs[:, 1]]
    room = (1 - (one**2).sum(1)) * (1 - (other**2).sum(1))
    return -np.arccosh(1 + 2 * ((one - other) ** 2).sum(1) / np.maximum(room, 1e-15))


# GNNs of PyG with a learnt vector for each node


class _Encoder(nn.Module):
    """Two convolutions of a linear map of the features, with or without a learnt vector for each node."""

    def __init__(self, kind: str, in_features: int, num_nodes: int, out: int, vectors: str, dropout: float) -> None:
        super().__init__()
        self.stem = nn.Linear(in_features, DIM)
        self.vectors = nn.Embedding(num_nodes, DIM) if vectors == "vectors" else None
        self.dropout = dropout
        if kind == "GAT":
            self.convs = nn.ModuleList([GATConv(DIM, DIM // 8, heads=8), GATConv(DIM, out)])
        else:
            self.convs = nn.ModuleList([GCNConv(DIM, DIM, normalize=False), GCNConv(DIM, out, normalize=False)])

    def forward(self, x: Tensor, graph: Tensor) -> Tensor:
        h = self.stem(F.dropout(x, self.dropout, self.training))
        if self.vectors is not None:
            h = h + self.vectors.weight
        h = self.convs[0](F.dropout(h, self.dropout, self.training), graph).relu()
        result: Tensor = self.convs[1](F.dropout(h, self.dropout, self.training), graph)
        return result


class _Training:
    """A model in training; ``best`` is what it predicted at the epoch that validation data selected."""

    def __init__(self, model: nn.Module, weight_decay: float) -> None:
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=weight_decay)
        self.epoch = self.best_epoch = 0
        self.best_score, self.best = -1.0, None

    def advance(self, epochs: int, loss: Callable[[], Tensor], evaluate: Callable[[], tuple[float, Any]]) -> None:
        while self.epoch < epochs and self.epoch - self.best_epoch < PATIENCE:
            self.model.train()
            self.optimizer.zero_grad()
            loss().backward()
            self.optimizer.step()
            self.epoch += 1
            if self.epoch % 5 == 0:
                self.model.eval()
                with torch.no_grad():
                    score, result = evaluate()
                if score > self.best_score:
                    self.best_score, self.best, self.best_epoch = score, result, self.epoch


def _race(make: Callable[..., tuple[_Training, Any, Any]], settings: list[Any]) -> Iterator[tuple[str, Any]]:
    """All settings for some epochs, and the best two to the end."""
    runs = [(", ".join(map(str, setting)), *make(*setting)) for setting in settings]
    for _, training, *functions in runs:
        training.advance(FIRST_EPOCHS, *functions)
    for name, training, *functions in sorted(runs, key=lambda run: -run[1].best_score)[:2]:
        training.advance(EPOCHS, *functions)
        yield name, training.best


def gcn_links(problem: Any, seed: int) -> Iterator[tuple[str, PairScores]]:
    """A graph autoencoder (Kipf and Welling 2016) with inner products or distances."""
    torch.manual_seed(seed)
    random = np.random.RandomState(seed)
    x, graph = _inputs(problem, "GCN")
    train = torch.from_numpy(problem.split.train)
    labels = (torch.arange(2 * len(train)) < len(train)).float()

    def make(decoder: str, vectors: str, dropout: float) -> tuple[_Training, Any, Any]:
        model = _Encoder("GCN", x.shape[1], problem.num_nodes, DIM, vectors, dropout)
        bias, scale = nn.Parameter(torch.zeros(())), nn.Parameter(torch.ones(()))
        model.decoder = nn.ParameterList([bias, scale])

        def logits(points: Tensor, pairs: Tensor) -> Tensor:
            one, other = points[pairs[:, 0]], points[pairs[:, 1]]
            if decoder == "distance":
                return bias - scale * ((one - other) ** 2).sum(1)
            return bias + (one * other).sum(1)

        def loss() -> Tensor:
            negatives = torch.from_numpy(draw_negatives(problem.split, len(train), random))
            return F.binary_cross_entropy_with_logits(logits(model(x, graph), torch.cat([train, negatives])), labels)

        def evaluate() -> tuple[float, PairScores]:
            points = model(x, graph)

            @torch.no_grad()
            def score(pairs: Pairs) -> Floats:
                return logits(points, torch.from_numpy(pairs)).double().numpy()

            return val_auc(problem, score), score

        return _Training(model, 0.0), loss, evaluate

    yield from _race(make, list(product(("inner product", "distance"), ("vectors", "no vectors"), (0.0, 0.5))))


def _gnn_classes(kind: str, problem: Any, seed: int) -> Iterator[tuple[str, Classes]]:
    torch.manual_seed(seed)
    x, graph = _inputs(problem, kind)
    train, y = torch.from_numpy(problem.split.train), problem.y[problem.split.train]

    def make(vectors: str, dropout: float) -> tuple[_Training, Any, Any]:
        model = _Encoder(kind, x.shape[1], problem.num_nodes, problem.num_classes, vectors, dropout)

        def loss() -> Tensor:
            return F.cross_entropy(model(x, graph)[train], y)

        def evaluate() -> tuple[float, Classes]:
            classes = model(x, graph).argmax(1).numpy()
            return val_accuracy(problem, classes), classes

        return _Training(model, 5e-4), loss, evaluate

    yield from _race(make, list(product(("vectors", "no vectors"), (0.2, 0.6))))


def _inputs(problem: Any, kind: str) -> tuple[Tensor, Tensor]:
    """Features (unit rows where most are 0, as in bags of words; else standard columns) and the graph for a GNN."""
    index, weights = problem.adjacency.edges(self_loops=False)
    rows = problem.x.float()
    sparse = bool((rows == 0).float().mean() > 0.8)
    x = F.normalize(rows) if sparse else torch.from_numpy(_standardized(rows.numpy()))
    if kind == "GAT":
        return x, index
    index, weights = gcn_norm(index, weights.float(), problem.num_nodes)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse (CSR tensor support is in beta|invariant checks are)")
        return x, to_torch_csr_tensor(index, weights, (problem.num_nodes, problem.num_nodes))


# Classes without a graph, or without training


def majority(problem: Any, seed: int) -> Iterator[tuple[str, Classes]]:
    counts = np.bincount(problem.y.numpy()[problem.split.train])
    yield "", np.full(problem.num_nodes, counts.argmax())


def label_propagation(problem: Any, seed: int) -> Iterator[tuple[str, Classes]]:
    """Zhou et al. 2004; the most frequent class where no label arrives."""
    graph, train, y = adjacency_of(problem), problem.split.train, problem.y.numpy()
    roots = 1 / np.sqrt(np.maximum(graph.sum(1), 1))
    normalized = sp.csr_array((graph * roots).T * roots)
    start = np.zeros((problem.num_nodes, problem.num_classes))
    start[train, y[train]] = 1
    usual = np.bincount(y[train]).argmax()
    for alpha in (0.5, 0.9, 0.99):
        scores = start
        for _ in range(50):
            scores = alpha * (normalized @ scores) + (1 - alpha) * start
        yield f"alpha {alpha}", np.where(scores.max(1) > 0, scores.argmax(1), usual)


def feature_regression(problem: Any, seed: int) -> Iterator[tuple[str, Classes]]:
    x, _ = _inputs(problem, "GAT")
    for strength in (1.0, 10.0):
        yield f"C {strength}", _regression(problem, x.numpy(), strength)


def _regression(problem: Any, rows: Floats, strength: float) -> Classes:
    from sklearn.linear_model import LogisticRegression

    train = problem.split.train
    model = LogisticRegression(C=strength, max_iter=500).fit(rows[train], problem.y.numpy()[train])
    return model.predict(rows)


LINK_METHODS: dict[str, LinkMethod] = {
    "isolated end": isolated_end,
    "degree product": degree_product,
    "common neighbors": common_neighbors,
    "Adamic-Adar": adamic_adar,
    "feature cosine": feature_cosine,
    "truncated SVD": truncated_svd,
    "GCN": gcn_links,
    "node2vec": node2vec_links,
    "Poincaré": poincare,
}
NODE_METHODS: dict[str, NodeMethod] = {
    "majority": majority,
    "label propagation": label_propagation,
    "logistic regression": feature_regression,
    "node2vec": node2vec_classes,
    "GCN": partial(_gnn_classes, "GCN"),
    "GAT": partial(_gnn_classes, "GAT"),
}
NEEDS_FEATURES = ("feature cosine", "logistic regression")
