"""One H2HConv in the place of a GCNConv, in a model and a training loop of one's own.

Node classification on the built-in disease tree: who was ever infected? Both networks have a linear layer, one
convolution and a classifier, and are trained by the same loop. What changes is marked with a comment. The classifiers
differ, so the two numbers show that the layer learns, not that one geometry is better; h2hgcn compare is for that.
"""

import argparse

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import GCNConv

from h2hgcn.datasets import load_dataset, split_nodes
from h2hgcn.geometry import lorentz
from h2hgcn.layers import CentroidDistance, H2HConv
from h2hgcn.training import build_optimizer

DIM, CENTROIDS = 16, 30


class FlatNet(nn.Module):
    """The usual network of PyG."""

    def __init__(self, in_features: int, num_classes: int) -> None:
        super().__init__()
        self.stem = nn.Linear(in_features, DIM)
        self.conv = GCNConv(DIM, DIM)
        self.classifier = nn.Linear(DIM, num_classes)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.classifier(self.conv(self.stem(x), edge_index).relu())


class HyperbolicNet(nn.Module):
    """The same, with its convolution on the hyperboloid."""

    def __init__(self, in_features: int, num_classes: int) -> None:
        super().__init__()
        self.stem = nn.Linear(in_features, DIM)
        self.conv = H2HConv(DIM, DIM, activation="leaky_relu")  # the activation is part of it
        self.centroids = CentroidDistance(DIM, CENTROIDS)  # points become features again: distances to learned points
        self.classifier = nn.Linear(CENTROIDS, num_classes)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        points = lorentz.exp_origin(self.stem(x), max_norm=3.0)  # vectors become points (nodes, DIM + 1)
        points = self.conv(points, edge_index)  # points to points; edge_index is prepared once and remembered
        return self.classifier(self.centroids(points))


def train(net: nn.Module, optimizer: torch.optim.Optimizer, data: dict[str, Tensor], epochs: int) -> float:
    """The test accuracy of the epoch that is best on validation nodes."""
    best, kept = 0.0, 0.0
    for _ in range(epochs):
        net.train()
        optimizer.zero_grad()
        loss = F.cross_entropy(net(data["x"], data["edge_index"])[data["train"]], data["y"][data["train"]])
        loss.backward()
        optimizer.step()
        net.eval()
        with torch.no_grad():
            right = (net(data["x"], data["edge_index"]).argmax(1) == data["y"]).float()
        if (found := float(right[data["val"]].mean())) > best:
            best, kept = found, float(right[data["test"]].mean())
    return kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    graph = load_dataset("disease")  # any PyG Data will do
    split = split_nodes(graph, seed=1)
    x = (graph.x - graph.x.mean(0)) / graph.x.std(0) / graph.num_features**0.5  # rows of length 1 or so
    data = {"x": x, "y": graph.y, "edge_index": graph.edge_index}
    data |= {name: torch.from_numpy(getattr(split, name)) for name in ("train", "val", "test")}
    print(f"{graph.num_nodes} nodes, {len(data['train'])} to learn from, {len(data['test'])} to test on")

    for kind in (FlatNet, HyperbolicNet):
        torch.manual_seed(arguments.seed)
        net = kind(graph.num_features, 2)
        # Adam for all that is flat, Riemannian SGD for weights on the Stiefel manifold; FlatNet gets Adam alone
        optimizer = build_optimizer(net, lr=0.01, stiefel_lr=0.1)
        print(f"{kind.__name__:14} test accuracy {train(net, optimizer, data, arguments.epochs):.3f}")
        if isinstance(net, HyperbolicNet):
            weight = net.conv.linear.weight.detach()
            error = (weight.mT @ weight - torch.eye(DIM)).abs().max()
            print(f"the weight is orthonormal still: WᵀW - I is at most {error:.0e}")


if __name__ == "__main__":
    main()
