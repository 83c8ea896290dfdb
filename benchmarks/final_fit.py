"""What a final fit is worth: links and labels that neither a run nor its final fit has seen.

A tenth of the links, or of the labels, is hidden from everything. The default command with `--final` is given the rest:
the `run` holds some of that out to choose its settings and epochs, the `final` fit is trained on all of it. Both are
asked for what is hidden: links are to be told from as many pairs of nodes without a link (ROC AUC), nodes to be
classified (accuracy, and log loss). Are the probabilities of links still right, though the calibration was fitted for
the run? `said` is the mean probability of as many of the likeliest pairs as links are hidden, times the hidden links
over those that the run held out, which it is calibrated for; `true` is the share of these pairs that are hidden links.
Mean over seeds.

    python benchmarks/final_fit.py
"""

import sys
import warnings
from typing import Any

import numpy as np
import report
import torch
from graph_sources import GRAPHS, load
from sklearn.metrics import log_loss

import h2hgcn
from h2hgcn.datasets import DataWarning, split_edges
from h2hgcn.datasets.arrays import UNLABELLED
from h2hgcn.tasks.metrics import auc

LINKS = ["les-miserables", "barabasi-albert", "powerlaw-cluster", "cora-edges"]
CLASSES = ["block-model"]
HIDDEN = 0.1


def links(data: Any, seed: int) -> dict[str, float]:
    hidden = split_edges(data, 0.0, HIDDEN, seed=seed)
    known = np.unique(hidden.train)
    features = None if getattr(data, "structural", False) else {int(node): data.x[node].numpy() for node in known}
    graph = h2hgcn.load_graph([tuple(edge) for edge in hidden.train.tolist()], features=features)
    pairs = [part[np.isin(part, known).all(1)] for part in (hidden.test, hidden.test_neg)]
    both, truth = np.concatenate(pairs), np.arange(sum(map(len, pairs))) < len(pairs[0])
    run = _train(graph, "lp", seed)
    scores: dict[str, float] = {}
    for name, one in (("run", run), ("final", run.final)):
        chances = one.predict(both).double().numpy()
        scores[f"{name} AUC"] = auc(chances[truth], chances[~truth])
        top = one.recommend_top(len(pairs[0])).to_pandas()
        share = len(pairs[0]) / (len(run.problem.split.val) + len(run.problem.split.test))
        links = {frozenset(pair) for pair in pairs[0].tolist()}
        scores[f"{name} said"] = share * float(top["probability"].mean())
        scores[f"{name} true"] = float(
            np.mean([frozenset(pair) in links for pair in zip(top.source, top.target, strict=True)])
        )
    return scores


def classes(data: Any, seed: int) -> dict[str, float]:
    graph, y = data.clone(), data.y.numpy()
    labelled = np.flatnonzero(y != UNLABELLED)
    nodes = np.random.RandomState(seed).permutation(labelled)[: round(HIDDEN * len(labelled))]
    graph.y[torch.from_numpy(nodes)] = UNLABELLED
    for part in ("train", "val", "test"):  # the split is drawn among the rest
        graph[f"{part}_mask"] = None
    run = _train(graph, "nc", seed)
    scores: dict[str, float] = {}
    for name, one in (("run", run), ("final", run.final)):
        chances = one.predict().double().numpy()[nodes]
        chances /= chances.sum(1, keepdims=True)  # to double precision
        loss = log_loss(y[nodes], chances, labels=np.arange(chances.shape[1]))
        scores |= {f"{name} accuracy": float((chances.argmax(1) == y[nodes]).mean()), f"{name} log loss": loss}
    return scores


def _train(graph: Any, task: str, seed: int) -> Any:
    settings = {"task.split_seed": seed, "training.threads": 1}
    return h2hgcn.train(graph, task, seed=seed, settings=settings, final=True)


def main() -> None:
    arguments = report.parser(__doc__)
    arguments.add_argument("--links", nargs="*", choices=GRAPHS, default=LINKS, metavar="GRAPH")
    arguments.add_argument("--classes", nargs="*", choices=GRAPHS, default=CLASSES, metavar="GRAPH")
    arguments.add_argument("--seeds", type=int, default=2)
    options = arguments.parse_args()
    torch.set_num_threads(1)
    tables: dict[str, list[dict[str, Any]]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        for title, measure, names in (
            ("Hidden links", links, options.links),
            ("Hidden labels", classes, options.classes),
        ):
            for name in names:
                results = [measure(load(name), seed) for seed in range(options.seeds)]
                means = {key: round(float(np.mean([one[key] for one in results])), 4) for key in results[0]}
                tables.setdefault(title, []).append({"graph": name} | means)
                print(tables[title][-1], file=sys.stderr, flush=True)
    report.publish(tables, options)


if __name__ == "__main__":
    main()
