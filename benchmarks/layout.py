"""How true pictures in the Poincaré disk are: the projection, the layout that runs keep, and its alternatives.

Neighbors: the mean share of a node's 10 nearest neighbors in the embedding that are among its 10 nearest in the disk.
Spearman: the rank correlation of distances of random pairs. Models are trained for a few epochs with --search none; the
ragged tree is a random taxonomy of 2,000 nodes, embedded by --task embed. Cora and Airport are looked for in
$H2HGCN_DATA, or downloaded. Seconds are of the layout alone, for generated points of 32 dimensions in the last table,
with those of all processors together: other programs make the first longer, not the second.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from report import parser, publish
from torch_geometric.data import Data

import h2hgcn
from h2hgcn.datasets.shape import random_taxonomy
from h2hgcn.embeddings import layout_in_disk, project_to_disk
from h2hgcn.embeddings.coordinates import lorentz_tensor
from h2hgcn.embeddings.layout import faithfulness, optimized
from h2hgcn.geometry import lorentz


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--epochs", type=int, default=60)
    arguments.add_argument("--sizes", type=int, nargs="*", default=[10_000, 100_000])
    options = arguments.parse_args()
    torch.set_num_threads(options.threads)
    rows = [row for name, (data, task) in graphs().items() for row in compared(name, data, task, options.epochs)]
    publish({"Faithfulness": rows, "Time": [timed(size) for size in options.sizes]}, options)


def graphs() -> dict[str, tuple[Any, str]]:
    tree = torch.from_numpy(random_taxonomy(2_000).T.copy())
    return {
        "disease tree": ("disease", "lp"),
        "ragged tree": (Data(edge_index=tree, num_nodes=2_000), "embed"),
        "Cora": ("cora", "lp"),
        "Airport": ("airport", "lp"),
    }


def compared(name: str, data: Any, task: str, epochs: int) -> list[dict[str, Any]]:
    run = h2hgcn.train(data, task=task, search="none", epochs=epochs)
    points = run.embeddings.numpy()
    lifted, start = lorentz_tensor(points), project_to_disk(points).points
    kept = layout_in_disk(points, run.data.edge_index.numpy())
    ways: dict[str, Callable[[], NDArray[np.float64]]] = {
        "projection": lambda: project_to_disk(points).points,
        "stress alone": lambda: optimized(lifted, start, attraction=0.0, repulsion=0.0),
        "attraction and repulsion alone": lambda: optimized(lifted, start, stress=0.0),
        "all three (layout)": lambda: optimized(lifted, start),
        "drawing of the tree (layout)": lambda: layout_in_disk(points, run.data.edge_index.numpy()).points,
    }
    if kept.method != "tree":
        del ways["drawing of the tree (layout)"]
    rows = []
    for way, place in ways.items():
        begun = time.perf_counter()
        found = place()
        seconds = time.perf_counter() - begun
        share, rank = faithfulness(points, found)
        rows.append({"graph": name, "picture": way, "neighbors": share, "spearman": rank, "seconds": seconds})
    return rows


def timed(count: int) -> dict[str, Any]:
    """Points of a random tree, each near its parent."""
    random = np.random.RandomState(0)
    vectors, steps = np.zeros((count, 32)), random.normal(scale=0.25, size=(count, 32))
    for node in range(1, count):
        vectors[node] = 0.97 * vectors[random.randint(node)] + steps[node]
    points = lorentz.exp_origin(torch.from_numpy(vectors)).numpy()
    begun, used = time.perf_counter(), time.process_time()
    layout_in_disk(points)
    seconds, processor = time.perf_counter() - begun, time.process_time() - used
    return {"points": count, "seconds": seconds, "processor seconds": processor}


if __name__ == "__main__":
    main()
