"""Small runs, and the data and encoders for them, that several tests share."""

import time
from functools import partial

import networkx as nx
import numpy as np
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from h2hgcn.datasets.collection import FlatCollection
from h2hgcn.datasets.disease import generate_disease
from h2hgcn.files import part_of, read_tensors
from h2hgcn.geometry import lorentz, poincare
from h2hgcn.models import H2HGCN
from h2hgcn.tasks import GraphClassification, LinkPrediction, NodeClassification
from h2hgcn.training import TrainingSettings, fit

SMALL = partial(H2HGCN, dim=4, dropout=0.2)
TASKS = {
    "lp": LinkPrediction(message_share=0.5),
    "nc": NodeClassification(num_centroids=6),
    "gc": GraphClassification(num_folds=3, batch_size=5, num_centroids=6, head_norm=True),
}
KINDS = ("tree", "ring")


class Flat(nn.Module):
    """An encoder of any space: a linear map."""

    def __init__(self, in_features, dim=3, space="euclidean"):
        super().__init__()
        self.space, self.dim = space, dim
        self.linear = nn.Linear(in_features, dim)

    def forward(self, x, edge_index, edge_weight=None):
        hidden = self.linear(x)
        if self.space == "euclidean":
            return hidden
        points = lorentz.exp_origin(hidden)
        return points if self.space == "lorentz" else poincare.from_lorentz(points)


def shapes(num_graphs=24):
    """Rings and stars, told apart by their degrees."""
    sizes = torch.arange(num_graphs) % 5 + 4
    rings = [torch.stack([torch.arange(n), (torch.arange(n) + 1) % n]) for n in sizes.tolist()]
    stars = [torch.stack([torch.zeros(n - 1, dtype=torch.long), torch.arange(1, n)]) for n in sizes.tolist()]
    y = torch.arange(num_graphs) % 2
    edges = [to_undirected(stars[k] if y[k] else rings[k]) for k in range(num_graphs)]
    degrees = [torch.bincount(e[0], minlength=n).clamp_max(4) for e, n in zip(edges, sizes.tolist(), strict=True)]
    pointers = torch.cat([torch.zeros(1, dtype=torch.long), sizes.cumsum(0)])
    edge_pointers = torch.tensor([0, *np.cumsum([e.shape[1] for e in edges]).tolist()])
    x = nn.functional.one_hot(torch.cat(degrees), 5)
    return FlatCollection("shapes", x, torch.cat(edges, 1), pointers, edge_pointers, y)


def write_graphs(folder, count=24, seed=0):
    """Trees and rings, with their classes beside them."""
    folder.mkdir()
    rows = ["graph,class"]
    for k in range(count):
        size = 5 + (k + seed) % 7
        graph = nx.cycle_graph(size) if k % 2 else nx.random_labeled_tree(size, seed=seed + k)
        nx.write_edgelist(graph, folder / f"g{k}.csv", delimiter=",", data=False)
        rows.append(f"g{k},{KINDS[k % 2]}")
    (folder.parent / f"{folder.name}-y.csv").write_text("\n".join(rows) + "\n")


def small_data(task="lp"):
    return shapes() if task == "gc" else generate_disease(200)


def scale_free(directed=False):
    """A graph of 200 nodes that degrees and shared neighbors tell much of."""
    graph = nx.powerlaw_cluster_graph(200, 4, 0.8, seed=1)
    x = 10 * np.linalg.eigh(nx.to_numpy_array(graph))[1][:, -8:]
    index = torch.tensor(list(graph.edges)).T
    index = index if directed else torch.cat([index, index.flip(0)], 1)
    return Data(edge_index=index, num_nodes=200, directed=directed, x=torch.from_numpy(x).float())


def small_fit(task="lp", data=None, model=SMALL, *, epochs=4, settings=None, **options):
    """A run of a second or less; ``settings`` are those of training."""
    training = TrainingSettings(**{"epochs": epochs, "device": "cpu", "checkpoint_seconds": 0} | (settings or {}))
    task = TASKS.get(task, task) if isinstance(task, str) else task
    data = small_data(getattr(task, "name", "lp")) if data is None else data
    return fit(task, data, model, settings=training, **options)


def same_weights(first, second):
    """Whether two runs ended with the same weights, bit for bit."""
    one, other = first.model.state_dict(), second.model.state_dict()
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def last_weights(folder):
    """The weights after the last epoch, which need not be the best."""
    return part_of(read_tensors(folder / "checkpoint" / "latest.safetensors")[0], "model.")


def curve(run):
    """What an epoch's line says, but for the time it took."""
    return [(row["epoch"], row["loss"], row["lr"], row.get("val")) for row in run.history]


def change(path, edit):
    """Another file in the place of one."""
    path.write_bytes(edit(path.read_bytes()))


def train_slowly(folder, epochs):
    """For a process of its own: slow enough to be killed in the middle, and with epochs that no checkpoint knows of."""
    torch.set_num_threads(1)
    settings = {"checkpoint_seconds": 0.05}
    small_fit(folder=folder, epochs=epochs, settings=settings, on_epoch=lambda *_: time.sleep(0.02))
