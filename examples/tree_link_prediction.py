"""Link prediction on a generated tree: which of two nodes are parent and child?

A random tree is drawn; every node inherits its parent's traits with a change of its own. They are seen through noise,
among columns that mean nothing. Some edges are hidden; an H2H-GCN learns from the others, in every epoch from
messages along one half of them to predict the other half, and then ranks the hidden ones against pairs that are no
edges. Feature distance alone is shown beside it.
"""

import argparse
import time

import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor
from torch.nn import functional as F

from h2hgcn.geometry import lorentz
from h2hgcn.layers import FermiDiracDecoder
from h2hgcn.models import H2HGCN
from h2hgcn.training import build_optimizer

NUM_NODES = 1000
NUM_TRAITS = 16
HIDDEN_SHARE = 0.15
TRAIT_NOISE, EMPTY_NOISE = 1.0, 8.0


def random_tree(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Edges ``(2, n - 1)`` from parent to child, and features: traits with noise, and as many empty columns."""
    traits = torch.zeros(NUM_NODES, NUM_TRAITS)
    parents = torch.zeros(NUM_NODES, dtype=torch.long)
    for node in range(1, NUM_NODES):
        parents[node] = torch.randint(node, (), generator=generator)
        traits[node] = traits[parents[node]] + torch.randn(NUM_TRAITS, generator=generator)
    noise, empty = torch.randn(2, NUM_NODES, NUM_TRAITS, generator=generator)
    features = torch.cat([traits + TRAIT_NOISE * noise, EMPTY_NOISE * empty], dim=1)
    return torch.stack([parents[1:], torch.arange(1, NUM_NODES)]), features / features.std() / 4


def split(edges: Tensor, share: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """A random share of the edges, and the others."""
    order = torch.randperm(edges.shape[1], generator=generator)
    count = int(share * edges.shape[1])
    return edges[:, order[:count]], edges[:, order[count:]]


def both_ways(edges: Tensor) -> Tensor:
    return torch.cat([edges, edges.flip(0)], dim=1)


def other_pairs(count: int, edges: Tensor, generator: torch.Generator) -> Tensor:
    """Random pairs of distinct nodes that are no edges."""
    pairs = torch.randint(NUM_NODES, (2, 2 * count), generator=generator)
    known = torch.cat([edges[0] * NUM_NODES + edges[1], edges[1] * NUM_NODES + edges[0]])
    is_new = ~torch.isin(pairs[0] * NUM_NODES + pairs[1], known) & (pairs[0] != pairs[1])
    return pairs[:, is_new][:, :count]


def auc(scores: Tensor, other_scores: Tensor) -> float:
    truth = torch.cat([torch.ones_like(scores), torch.zeros_like(other_scores)])
    return float(roc_auc_score(truth.numpy(), torch.cat([scores, other_scores]).numpy()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    generator = torch.Generator().manual_seed(arguments.seed)
    torch.manual_seed(arguments.seed)
    started = time.perf_counter()

    edges, x = random_tree(generator)
    test_edges, train_edges = split(edges, HIDDEN_SHARE, generator)
    test_pairs = other_pairs(test_edges.shape[1], edges, generator)

    encoder = H2HGCN(x.shape[1], dim=16, num_layers=2, activation="leaky_relu", stem_activation=None)
    decoder = FermiDiracDecoder(learnable=True)
    modules = torch.nn.ModuleList([encoder, decoder])
    optimizer = build_optimizer(modules, lr=0.01, stiefel_lr=0.1)

    print(f"A tree of {NUM_NODES} nodes; {train_edges.shape[1]} edges to learn from, {test_edges.shape[1]} to find.")
    for epoch in range(1, arguments.epochs + 1):
        optimizer.zero_grad()
        messages, targets = split(train_edges, 0.5, generator)
        points = encoder(x, both_ways(messages))
        pairs = torch.cat([targets, other_pairs(targets.shape[1], train_edges, generator)], dim=1)
        labels = (torch.arange(pairs.shape[1]) < targets.shape[1]).float()
        loss = F.binary_cross_entropy_with_logits(decoder(points[pairs[0]], points[pairs[1]]), labels)
        loss.backward()
        optimizer.step()
        if epoch % 50 == 0:
            print(f"epoch {epoch:4d}  loss {loss.item():.4f}")

    encoder.eval()
    with torch.no_grad():
        points = encoder(x, both_ways(train_edges))
        found = decoder(points[test_edges[0]], points[test_edges[1]])
        others = decoder(points[test_pairs[0]], points[test_pairs[1]])
    by_features = [-(x[pairs[0]] - x[pairs[1]]).norm(dim=1) for pairs in (test_edges, test_pairs)]
    print(f"test AUC, H2H-GCN:          {auc(found, others):.3f}")
    print(f"test AUC, feature distance: {auc(*by_features):.3f}")
    print(
        f"largest radius {lorentz.distance_to_origin(points).max().item():.2f}, {time.perf_counter() - started:.0f} s"
    )


if __name__ == "__main__":
    main()
