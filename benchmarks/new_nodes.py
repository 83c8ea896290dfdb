"""What the place of a new node is worth: links of nodes that training has not seen.

A tenth of the nodes is new, none with more than ten edges. Half of their edges are known when links are predicted, the
others are the links to be told from as many pairs of a new node and one that it has no edge with. A run of the default
settings that was trained on the old nodes alone (`placed`: new nodes get the mean of their neighbors' vectors) stands
beside one that was trained again with the known edges (`trained again`), and Adamic-Adar on the same edges. ROC AUC,
mean over seeds.

    python benchmarks/new_nodes.py
"""

import sys
import warnings
from typing import Any

import numpy as np
import report
import torch
from graph_sources import GRAPHS, load

import h2hgcn
from h2hgcn.datasets import DataWarning
from h2hgcn.tasks.metrics import auc
from h2hgcn.tasks.neighborhoods import Neighborhoods

NAMES = ["hyperbolic-edges", "mammals-edges", "torch-imports", "debian-ruby-edges", "cora-edges", "cora"]
SHARE, MOST_EDGES = 0.1, 10


def measure(name: str, seed: int) -> dict[str, float]:
    data, random = load(name), np.random.RandomState(seed)
    edges = np.unique(np.sort(data.edge_index.T.numpy(), axis=1), axis=0)
    edges = edges[edges[:, 0] != edges[:, 1]]
    is_new = np.zeros(data.num_nodes, dtype=bool)
    ordinary = np.flatnonzero(np.bincount(edges.ravel(), minlength=data.num_nodes) <= MOST_EDGES)
    is_new[random.permutation(ordinary)[: round(SHARE * data.num_nodes)]] = True
    old = edges[~is_new[edges].any(1)]
    is_old = np.zeros(data.num_nodes, dtype=bool)
    is_old[old.ravel()] = True
    others = random.permutation(edges[is_new[edges].any(1) & is_old[edges].any(1)])  # one end is new
    known, links = np.array_split(others, 2)
    reached = np.zeros(data.num_nodes, dtype=bool)
    reached[np.concatenate([old, known]).ravel()] = True
    links = links[reached[links].all(1)]
    pairs = np.concatenate([links, _absent(links, edges, is_new, reached, random)])
    placed, again = (_train(data, some, seed) for some in (old, np.concatenate([old, known])))
    graph = _graph(data, np.concatenate([old, known]))
    heuristic = Neighborhoods(np.concatenate([old, known]), data.num_nodes).features(pairs)[:, 1]
    scores = {
        "placed": placed.predict(pairs, data=graph).double().numpy(),
        "trained again": again.predict(pairs).double().numpy(),
        "Adamic-Adar": heuristic,
    }
    return {method: auc(score[: len(links)], score[len(links) :]) for method, score in scores.items()}


def _absent(links: Any, edges: Any, is_new: Any, reached: Any, random: np.random.RandomState) -> Any:
    """For each link another of its new node, with an old node that it has no edge with."""
    there = {tuple(edge) for edge in edges.tolist()}
    candidates = np.flatnonzero(~is_new & reached)
    found = []
    for link in links:
        node = link[is_new[link]][0]
        while True:
            other = random.choice(candidates)
            if (min(node, other), max(node, other)) not in there:
                found.append((node, other))
                break
    return np.array(found)


def _graph(data: Any, edges: Any) -> Any:
    """The nodes that some edges have, under their old numbers."""
    nodes = np.unique(edges)
    features = None if getattr(data, "structural", False) else {int(node): data.x[node].numpy() for node in nodes}
    return h2hgcn.load_graph([tuple(edge) for edge in edges.tolist()], features=features)


def _train(data: Any, edges: Any, seed: int) -> Any:
    return h2hgcn.train(_graph(data, edges), seed=seed, settings={"task.split_seed": seed, "training.threads": 1})


def main() -> None:
    arguments = report.parser(__doc__)
    arguments.add_argument("--graphs", nargs="+", choices=GRAPHS, default=NAMES, metavar="GRAPH")
    arguments.add_argument("--seeds", type=int, default=2)
    options = arguments.parse_args()
    torch.set_num_threads(1)
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        for name in options.graphs:
            results = [measure(name, seed) for seed in range(options.seeds)]
            rows.append(
                {"graph": name} | {key: round(float(np.mean([r[key] for r in results])), 3) for key in results[0]}
            )
            print(rows[-1], file=sys.stderr, flush=True)
    report.publish({"Links of new nodes, ROC AUC": rows}, options)


if __name__ == "__main__":
    main()
