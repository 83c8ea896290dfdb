"""H2HGCN in PyTorch Lightning, on sampled neighborhoods.

Node classification on the built-in disease tree: who was ever infected? Needs Lightning: pip install lightning
"""

import argparse
import logging
from typing import Any

import lightning
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader

from h2hgcn.datasets import load_dataset, split_nodes
from h2hgcn.graph.sampling import AdjacencySampler
from h2hgcn.layers import CentroidDistance, prepare_adjacency
from h2hgcn.models import H2HGCN
from h2hgcn.training import build_optimizer

DIM, CENTROIDS = 16, 30


class Nodes(lightning.LightningModule):  # type: ignore[misc]  # Lightning is not looked into
    """An encoder, distances to learned points and a linear classifier."""

    def __init__(self, in_features: int, num_classes: int) -> None:
        super().__init__()
        self.encoder = H2HGCN(in_features, DIM, activation="leaky_relu", neighbor_weights="uniform")  # batches weigh
        self.centroids = CentroidDistance(DIM, CENTROIDS)
        self.classifier = nn.Linear(CENTROIDS, num_classes)

    def forward(self, batch: Data) -> Tensor:
        """Logits of the nodes that a batch is about; their neighbors come after them."""
        points = self.encoder(batch.x, batch.edge_index, batch.edge_weight)[: batch.batch_size]
        return self.classifier(self.centroids(points))

    def training_step(self, batch: Data, index: int) -> Tensor:
        return F.cross_entropy(self(batch), batch.y[: batch.batch_size])

    def validation_step(self, batch: Data, index: int) -> None:
        self._log_accuracy("val", batch)

    def test_step(self, batch: Data, index: int) -> None:
        self._log_accuracy("test", batch)

    def _log_accuracy(self, part: str, batch: Data) -> None:
        right = (self(batch).argmax(1) == batch.y[: batch.batch_size]).float()
        self.log(f"{part} accuracy", right.mean(), batch_size=batch.batch_size, prog_bar=True)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return build_optimizer(self, lr=0.01, stiefel_lr=0.1)  # keeps the weights orthonormal


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--epochs", type=int, default=30)
    arguments = parser.parse_args()
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    torch.manual_seed(0)
    graph = load_dataset("disease")
    split = split_nodes(graph, val=0.15, test=0.15)
    adjacency = prepare_adjacency(graph.edge_index, num_nodes=graph.num_nodes)
    data = Data(x=graph.x, y=graph.y, edge_index=adjacency.edges(self_loops=False)[0])
    loaders: dict[str, Any] = {}
    for part in ("train", "val", "test"):
        fanout = [10, 10] if part == "train" else [-1, -1]  # evaluated with all neighbors
        sampler = AdjacencySampler(adjacency, fanout)
        loaders[part] = NeighborLoader(
            data, num_neighbors=fanout, input_nodes=torch.from_numpy(getattr(split, part)), neighbor_sampler=sampler,
            transform=sampler.weigh, batch_size=256, shuffle=part == "train",
        )  # fmt: skip
    trainer = lightning.Trainer(
        max_epochs=arguments.epochs, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    model = Nodes(data.num_features, int(graph.y.max()) + 1)
    trainer.fit(model, loaders["train"], loaders["val"])
    found = trainer.test(model, loaders["test"], verbose=False)
    print(f"test accuracy {found[0]['test accuracy']:.3f}")
    weight = model.encoder.all_convs()[0].linear.weight.detach()
    print(
        f"the weight is orthonormal still: WᵀW - I is at most {(weight.mT @ weight - torch.eye(DIM)).abs().max():.0e}"
    )


if __name__ == "__main__":
    main()
