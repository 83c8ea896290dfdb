"""Time of sparse products in float32: ours beside torch.sparse_csr's and the dense one.

The adjacency is of PubMed's size, times a dense matrix of some width, forward only. The features are of Cora's and
PubMed's size and density, times the weights of a stem, forward and backward to the weights. Dense graphs come in a
batch, once as one block-diagonal matrix of ours and once as a dense matrix for each; and matrices of batches of the
synthetic collection are made from its edges, and from patterns that were kept.
"""

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from layer_speed import NUM_NODES, pubmed_sized_graph
from report import interleaved_medians, parser, publish
from torch import Tensor

from h2hgcn.datasets.synthetic import load_synthetic
from h2hgcn.kernels.csr import SparseFeatures, SparseMatrix, csr_matmul, prepare_features
from h2hgcn.layers import prepare_adjacency
from h2hgcn.tasks.graphs import GraphBatches, PreparedGraph, batch_of

# A batch of the synthetic collection has graphs of about this size; their density is 0.38 on average.
GRAPHS, GRAPH_SIZE = 30, 350

FEATURES = {"Cora": (2_708, 1_433, 0.0127), "PubMed": (19_717, 500, 0.10)}


def adjacency_rows(widths: list[int], repeats: int) -> list[dict[str, Any]]:
    matrix = prepare_adjacency(pubmed_sized_graph(), None, NUM_NODES).matrix("symmetric", torch.float32)
    csr = torch.sparse_csr_tensor(*matrix[:3], (NUM_NODES, NUM_NODES), check_invariants=False)
    rows = []
    for width in widths:
        dense = torch.randn(NUM_NODES, width)
        systems = {"ours": partial(csr_matmul, *matrix[:3], dense), "torch.sparse_csr": partial(torch.mm, csr, dense)}
        seconds = interleaved_medians(systems, repeats)
        rows.append({"width": width, **_milliseconds(seconds), "ratio": seconds["ours"] / seconds["torch.sparse_csr"]})
    return rows


def feature_rows(widths: list[int], repeats: int) -> list[dict[str, Any]]:
    rows = []
    for name, (num_nodes, num_features, density) in FEATURES.items():
        x = torch.rand(num_nodes, num_features) * (torch.rand(num_nodes, num_features) < density)
        features = prepare_features(x.to_sparse())
        csr = torch.sparse_csr_tensor(*features.matrix[:3], features.shape, check_invariants=False)
        for width in widths:
            weight = torch.randn(width, num_features, requires_grad=True)
            grad = torch.randn(num_nodes, width)
            products: dict[str, Tensor | SparseFeatures] = {"ours": features, "torch.sparse_csr": csr, "dense": x}
            systems = {name: partial(step, matrix, weight, grad) for name, matrix in products.items()}
            seconds = interleaved_medians(systems, repeats)
            ratio = seconds["ours"] / seconds["dense"]
            rows.append({"features of": name, "width": width, **_milliseconds(seconds), "ratio to dense": ratio})
    return rows


def dense_graph_rows(densities: list[float], width: int, repeats: int) -> list[dict[str, Any]]:
    rows = []
    for density in densities:
        blocks = [(torch.rand(GRAPH_SIZE, GRAPH_SIZE) < density).float() for _ in range(GRAPHS)]
        edge_index = torch.block_diag(*blocks).nonzero().T.flip(0)
        matrix = prepare_adjacency(edge_index, None, GRAPHS * GRAPH_SIZE).matrix("symmetric", torch.float32)
        x = torch.randn(GRAPHS * GRAPH_SIZE, width)
        systems = {"ours": partial(csr_matmul, *matrix[:3], x), "dense blocks": partial(block_product, blocks, x)}
        seconds = interleaved_medians(systems, repeats)
        rows.append({"density": density, **_milliseconds(seconds), "ratio": seconds["ours"] / seconds["dense blocks"]})
    return rows


def block_product(blocks: list[Tensor], x: Tensor) -> Tensor:
    return torch.cat([block @ part for block, part in zip(blocks, x.split(GRAPH_SIZE), strict=True)])


def batch_rows(sizes: list[int], repeats: int) -> list[dict[str, Any]]:
    rows = []
    with TemporaryDirectory() as folder:
        graphs = load_synthetic(Path(folder), max(sizes))
        batches = GraphBatches(graphs, torch.zeros(len(graphs), dtype=torch.long))

        def made(chosen: list[int]) -> SparseMatrix:
            batch = batch_of([PreparedGraph.of(graphs[number], f"graph {number}") for number in chosen])
            return batch.adjacency.matrix("symmetric", torch.float32)

        def kept(chosen: list[int]) -> SparseMatrix:
            return batches.of(chosen).adjacency.matrix("symmetric", torch.float32)

        for size in sizes:
            chosen = torch.randperm(len(graphs))[:size].tolist()
            seconds = interleaved_medians({"made": partial(made, chosen), "kept": partial(kept, chosen)}, repeats)
            rows.append({"graphs": size, **_milliseconds(seconds), "ratio": seconds["kept"] / seconds["made"]})
    return rows


def step(x: Tensor | SparseFeatures, weight: Tensor, grad: Tensor) -> None:
    """Output of a stem without its bias, and the gradient of its weights."""
    output = x.linear(weight, torch.zeros(())) if isinstance(x, SparseFeatures) else x @ weight.T
    torch.autograd.grad(output, weight, grad)


def _milliseconds(seconds: dict[str, float]) -> dict[str, float]:
    return {f"{name} ms": 1e3 * value for name, value in seconds.items()}


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--repeats", type=int, default=11, help="of each product (default: %(default)s)")
    options = arguments.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    tables = {
        "Adjacency times a dense matrix": adjacency_rows([16, 64, 128, 256], options.repeats),
        "Sparse features times a stem's weights, forward and backward": feature_rows([16, 64], options.repeats),
        f"{GRAPHS} graphs of {GRAPH_SIZE} nodes, times a dense matrix of width 64": dense_graph_rows(
            [0.05, 0.2, 0.4, 0.8], 64, options.repeats
        ),
        "The matrix of a batch of synthetic graphs": batch_rows([1, 16, 32], options.repeats),
    }
    publish(tables, options)


if __name__ == "__main__":
    main()
