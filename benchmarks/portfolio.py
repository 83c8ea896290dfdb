"""Which settings `train` races, learnt from many graphs: python benchmarks/portfolio.py; then --choose 12.

Every setting of a pool is trained on every graph, and its validation score is recorded; nothing looks at test data.
``--choose`` picks the settings, one after another, that raise the mean over graphs of the best score so far the most,
and prints them in that order. They are then written to experiments/defaults/TASK.toml by hand.
"""

import argparse
import json
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import torch
from graph_sources import closure_of, graph_of, without_features

from h2hgcn.datasets import DataError, load_dataset
from h2hgcn.experiments.config import GraphChoice, read_experiment
from h2hgcn.experiments.presets import Sections, merged
from h2hgcn.training.race import Candidate, race

# Splits of these graphs are seen by nothing else.
SPLIT_SEED = 100
RUNGS = (20, 40, 80, 160, 400)
DECIDES = 160  # epochs after which a race has its winner

VECTORS = {"node_vectors": True, "use_features": False}
BOTH = {"node_vectors": True}
_Setting = tuple[dict[str, Any], dict[str, Any], dict[str, Any]]


def _setting(task: str, name: str) -> Sections:
    """All edges carry messages and are predicted, unless a setting has a share of them."""
    of_task, model, training = POOLS[task][name]
    messages = {"message_share": "none"} if task == "lp" else {}
    return {"task": {**messages, **of_task}, "model": model, "training": training}


FAST, EVEN = {"lr": 0.03}, {"lr": 0.01}
TERMS = {"decoder": "popularity"}

LINKS: dict[str, _Setting] = {
    "vectors-1-cap1": ({}, {**VECTORS, "num_layers": 1, "max_tangent_norm": 1.0}, FAST),
    "vectors-1-cap1-terms": (TERMS, {**VECTORS, "num_layers": 1, "max_tangent_norm": 1.0}, FAST),
    "vectors-1-cap2-terms": (TERMS, {**VECTORS, "num_layers": 1, "max_tangent_norm": 2.0}, FAST),
    "vectors-1-cap0.5": ({}, {**VECTORS, "num_layers": 1, "max_tangent_norm": 0.5}, FAST),
    "vectors-1-free": ({}, {**VECTORS, "num_layers": 1}, EVEN),
    "vectors-1-cap1-half": ({"message_share": 0.5}, {**VECTORS, "num_layers": 1, "max_tangent_norm": 1.0}, FAST),
    "vectors-2-cap1": ({}, {**VECTORS, "max_tangent_norm": 1.0}, FAST),
    "vectors-2-cap1-terms": (TERMS, {**VECTORS, "max_tangent_norm": 1.0}, FAST),
    "vectors-2-half": ({"message_share": 0.5}, {**VECTORS, "max_tangent_norm": 1.0}, FAST),
    "vectors-3-cap1": ({}, {**VECTORS, "num_layers": 3, "max_tangent_norm": 1.0}, EVEN),
    "both-1-cap1": ({}, {**BOTH, "num_layers": 1, "max_tangent_norm": 1.0}, FAST),
    "both-1-cap1-terms": (TERMS, {**BOTH, "num_layers": 1, "max_tangent_norm": 1.0}, FAST),
    "both-1-cap2-terms": (TERMS, {**BOTH, "num_layers": 1, "max_tangent_norm": 2.0}, FAST),
    "both-1-dropout": (
        {}, {**BOTH, "num_layers": 1, "max_tangent_norm": 1.7, "dropout": 0.3, "feature_dropout": 0.5}, FAST
    ),
    "both-1-dropout-terms": (
        TERMS, {**BOTH, "num_layers": 1, "max_tangent_norm": 1.7, "feature_dropout": 0.5, "vector_dropout": 0.3}, EVEN
    ),
    "both-2-dropout": ({}, {**BOTH, "max_tangent_norm": 1.7, "feature_dropout": 0.5}, EVEN),
    "both-2-half": ({"message_share": 0.5}, {**BOTH, "max_tangent_norm": 1.7, "feature_dropout": 0.5}, EVEN),
    "features-1-cap": ({}, {"num_layers": 1, "max_tangent_norm": 1.7, "feature_dropout": 0.5}, EVEN),
    "features-1-cap-terms": (TERMS, {"num_layers": 1, "max_tangent_norm": 1.7, "feature_dropout": 0.5}, EVEN),
    "features-1-decay": (
        {"feature_length": 3.0},
        {"num_layers": 1, "max_tangent_norm": 1.7, "feature_dropout": 0.3, "stem_activation": "relu", "dropout": 0.1},
        {"lr": 0.006, "weight_decay": 0.001},
    ),
    "features-1-decay-fast": (
        {"feature_length": 3.0},
        {"num_layers": 1, "max_tangent_norm": 1.7, "feature_dropout": 0.3, "stem_activation": "relu", "dropout": 0.1},
        {"lr": 0.02, "weight_decay": 0.001},
    ),
    "features-1-decay-cap": (
        {"feature_length": 3.0},
        {"num_layers": 1, "max_tangent_norm": 1.2, "feature_dropout": 0.3, "stem_activation": "relu", "dropout": 0.1},
        {"lr": 0.02, "weight_decay": 0.001},
    ),
    "features-2-half": ({"message_share": 0.5}, {}, EVEN),
    "features-2-half-cap": ({"message_share": 0.5}, {"max_tangent_norm": 1.7, "feature_dropout": 0.5}, EVEN),
    "features-2-cap": ({}, {"max_tangent_norm": 1.7, "feature_dropout": 0.5}, EVEN),
}  # fmt: skip

NORM = {"head_norm": True}
LINEAR = {**NORM, **TERMS, "classifier": "linear", "head_dropout": 0.5}

NODES: dict[str, _Setting] = {
    "features-2": ({}, {"dropout": 0.3}, {"lr": 0.005, "weight_decay": 0.001}),
    "features-2-norm": (NORM, {"max_tangent_norm": 2.0, "dropout": 0.3, "feature_dropout": 0.5}, {"lr": 0.01}),
    "features-2-links": (
        {**NORM, "link_weight": 1.0}, {"max_tangent_norm": 2.0, "dropout": 0.3, "feature_dropout": 0.5}, {"lr": 0.01}
    ),
    "features-2-decay": (
        {"link_weight": 1.0}, {"dropout": 0.5, "feature_dropout": 0.7}, {"lr": 0.01, "weight_decay": 0.005}
    ),
    "features-1-norm": (
        NORM, {"num_layers": 1, "max_tangent_norm": 2.0, "feature_dropout": 0.5}, {"lr": 0.01, "weight_decay": 0.001}
    ),
    "features-3-links": ({**NORM, "link_weight": 1.0}, {"num_layers": 3, "dropout": 0.3}, {"lr": 0.01}),
    "features-2-linear": (
        {"classifier": "linear"}, {"dropout": 0.5, "feature_dropout": 0.5}, {"lr": 0.01, "weight_decay": 0.005}
    ),
    "both-2-norm": (NORM, {**BOTH, "max_tangent_norm": 2.0}, {"lr": 0.01}),
    "both-2-links": ({**NORM, "link_weight": 1.0}, {**BOTH, "max_tangent_norm": 2.0}, {"lr": 0.01}),
    "both-2-dropout": (
        {**NORM, "link_weight": 1.0, "head_dropout": 0.3},
        {**BOTH, "max_tangent_norm": 2.0, "feature_dropout": 0.5, "vector_dropout": 0.3, "dropout": 0.3}, {"lr": 0.01},
    ),
    "both-1-norm": (NORM, {**BOTH, "num_layers": 1, "max_tangent_norm": 2.0, "feature_dropout": 0.5}, {"lr": 0.01}),
    "vectors-1-links": ({**NORM, "link_weight": 1.0}, {**VECTORS, "num_layers": 1, "max_tangent_norm": 2.0}, EVEN),
    "vectors-2-links": ({**NORM, "link_weight": 1.0}, {**VECTORS, "max_tangent_norm": 2.0}, {"lr": 0.01}),
    "vectors-2-strong-links": ({**NORM, "link_weight": 10.0}, {**VECTORS, "max_tangent_norm": 2.0}, {"lr": 0.01}),
    "vectors-1-strong-links": (
        {**NORM, "link_weight": 10.0}, {**VECTORS, "num_layers": 1, "max_tangent_norm": 2.0}, {"lr": 0.01}
    ),
    "vectors-2-stronger-links": ({**NORM, "link_weight": 30.0}, {**VECTORS, "max_tangent_norm": 2.0}, {"lr": 0.03}),
    "both-2-strong-links": (
        {**NORM, "link_weight": 10.0}, {**BOTH, "max_tangent_norm": 2.0, "feature_dropout": 0.5}, {"lr": 0.01}
    ),
    "both-1-strong-links": (
        {**NORM, "link_weight": 10.0}, {**BOTH, "num_layers": 1, "max_tangent_norm": 2.0, "feature_dropout": 0.5},
        {"lr": 0.01},
    ),
    "features-2-strong-links": (
        {"link_weight": 10.0}, {"dropout": 0.3, "feature_dropout": 0.5}, {"lr": 0.01, "weight_decay": 0.001}
    ),
    "vectors-2-dropout": (
        {**NORM, "link_weight": 1.0, "head_dropout": 0.5},
        {**VECTORS, "max_tangent_norm": 2.0, "vector_dropout": 0.5, "dropout": 0.3}, {"lr": 0.01},
    ),
    "both-1-linear-terms": (
        {**LINEAR, "link_weight": 10.0}, {**BOTH, "num_layers": 1, "max_tangent_norm": 2.0, "feature_dropout": 0.5},
        FAST,
    ),
    "vectors-1-linear-terms": (
        {**LINEAR, "link_weight": 10.0}, {**VECTORS, "num_layers": 1, "max_tangent_norm": 2.0}, FAST
    ),
    "both-2-linear-terms": (
        {**LINEAR, "link_weight": 10.0}, {**BOTH, "max_tangent_norm": 2.0, "feature_dropout": 0.5}, FAST
    ),
    "both-1-linear-weak": (
        {**LINEAR, "link_weight": 1.0}, {**BOTH, "num_layers": 1, "max_tangent_norm": 2.0, "feature_dropout": 0.5}, EVEN
    ),
    "features-1-linear": (
        {**LINEAR, "link_weight": 1.0}, {"num_layers": 1, "feature_dropout": 0.5}, {"lr": 0.01, "weight_decay": 0.001}
    ),
}  # fmt: skip

POOLS = {"lp": LINKS, "nc": NODES}


def _blocks(count: int, size: int, inside: float, across: float, seed: int) -> Any:
    chances = [[inside if row == column else across for column in range(count)] for row in range(count)]
    graph = nx.stochastic_block_model([size] * count, chances, seed=seed)
    return graph_of(graph.edges, labels=dict(graph.nodes(data="block")))


def _tree(num_nodes: int, attachment: float, seed: int, depth_labels: bool = False) -> Any:
    """A random tree, in which new nodes prefer parents of many children with some probability, and its closure."""
    random = np.random.RandomState(seed)
    parents, ends, depth = {}, [0], {0: 0}
    for node in range(1, num_nodes):
        parent = ends[random.randint(len(ends))] if random.rand() < attachment else int(random.randint(node))
        parents[node], depth[node] = [parent], min(depth[parent] + 1, 5)
        ends += [node, parent, parent]
    return graph_of(closure_of(parents), labels=depth if depth_labels else None)


def _bipartite(users: int, links: int, new: float, seed: int) -> Any:
    random = np.random.RandomState(seed)
    edges, ends, fresh = set(), [0], 1
    for user in range(users):
        for _ in range(links):
            item = fresh if random.rand() < new else ends[random.randint(len(ends))]
            fresh = max(fresh, item + 1)
            ends.append(item)
            edges.add((f"user {user}", f"item {item}"))
    return graph_of(edges)


def _communities(num_nodes: int, seed: int) -> Any:
    graph = nx.LFR_benchmark_graph(num_nodes, 2.5, 1.5, 0.15, average_degree=6, min_community=30, seed=seed)
    return graph_of(graph.edges, labels={node: min(graph.nodes[node]["community"]) for node in graph})


LINK_GRAPHS: dict[str, Callable[[], Any]] = {
    "davis-women": lambda: graph_of(nx.davis_southern_women_graph().edges),
    "karate": lambda: graph_of(nx.karate_club_graph().edges),
    "attachment-600": lambda: graph_of(nx.barabasi_albert_graph(600, 3, seed=11).edges),
    "attachment-1500": lambda: graph_of(nx.barabasi_albert_graph(1500, 6, seed=12).edges),
    "cluster-1000": lambda: graph_of(nx.powerlaw_cluster_graph(1000, 4, 0.3, seed=11).edges),
    "small-world-700": lambda: graph_of(nx.watts_strogatz_graph(700, 6, 0.2, seed=11).edges),
    "lattice-20x40": lambda: graph_of(nx.grid_2d_graph(20, 40).edges),
    "triangles-15x30": lambda: graph_of(nx.triangular_lattice_graph(15, 30).edges),
    "geometric-800": lambda: graph_of(nx.random_geometric_graph(800, 0.06, seed=11).edges),
    "blocks-5x120": partial(_blocks, 5, 120, 0.07, 0.005, 11),
    "blocks-20x40": partial(_blocks, 20, 40, 0.2, 0.004, 12),
    "communities-1000": partial(_communities, 1000, 11),
    "tree-400": partial(_tree, 400, 0.0, 11),
    "tree-1000": partial(_tree, 1000, 0.7, 12),
    "bipartite-400": partial(_bipartite, 400, 6, 0.15, 11),
    "bipartite-150": partial(_bipartite, 150, 20, 0.1, 12),
    "cora without features": partial(without_features, "cora"),
    "airport without features": partial(without_features, "airport"),
    "disease": partial(load_dataset, "disease"),
    "disease_lp": partial(load_dataset, "disease_lp"),
    "cora": partial(load_dataset, "cora"),
    "airport": partial(load_dataset, "airport"),
    "pubmed": partial(load_dataset, "pubmed"),
}
NODE_GRAPHS: dict[str, Callable[[], Any]] = {
    "blocks-5x120": partial(_blocks, 5, 120, 0.07, 0.005, 11),
    "blocks-20x40": partial(_blocks, 20, 40, 0.2, 0.004, 12),
    "communities-1000": partial(_communities, 1000, 11),
    "tree-depth-1000": partial(_tree, 1000, 0.7, 12, depth_labels=True),
    "cora without features": partial(without_features, "cora"),
    "airport without features": partial(without_features, "airport"),
    "disease": partial(load_dataset, "disease"),
    "disease_nc": partial(load_dataset, "disease_nc"),
    "cora": partial(load_dataset, "cora"),
    "airport": partial(load_dataset, "airport"),
    "pubmed": partial(load_dataset, "pubmed"),
}
GRAPHS = {"lp": LINK_GRAPHS, "nc": NODE_GRAPHS}


def measure(data: Any, task: str, setting: Sections, seed: int) -> dict[int, float]:
    """The best validation score of a setting after some numbers of epochs."""
    flags = merged(
        {"task": {"name": task, "protocol": "clean", "split_seed": SPLIT_SEED + seed}, "training": {"threads": 1}},
        setting,
        {"training": {"epochs": RUNGS[-1], "patience": 80}, "seed": seed},
    )
    one = read_experiment(flags, None, GraphChoice({"memory": True}, loaded=data))
    with tempfile.TemporaryDirectory() as folder:
        race([Candidate("it", one.task, one.encoder, one.settings)], data, seed, Path(folder), RUNGS)
        records = {rung: json.loads((Path(folder) / f"it-{rung}.json").read_bytes()) for rung in RUNGS}
    return {rung: round(record["score"], 4) for rung, record in records.items() if record["score"] is not None}


def run(task: str, path: Path, names: list[str], seeds: list[int]) -> None:
    """Measures what is not recorded yet."""
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    known = {(row["task"], row["graph"], row["setting"], row["seed"]) for row in rows}
    for seed in seeds:
        for graph in names or GRAPHS[task]:
            missing = [name for name in POOLS[task] if (task, graph, name, seed) not in known]
            if not missing:
                continue
            try:
                data = GRAPHS[task][graph]()
            except DataError as error:
                print(f"{graph} is skipped: {error}", flush=True)
                continue
            for name in missing:
                scores = measure(data, task, _setting(task, name), seed)
                row = {"task": task, "graph": graph, "setting": name, "seed": seed, "val": scores}
                with path.open("a") as file:
                    file.write(json.dumps(row) + "\n")
            print(f"{task} {graph} seed {seed}", flush=True)


def choose(task: str, path: Path, count: int) -> list[tuple[str, float]]:
    """Settings in the order in which they raise the mean of the best score over graphs and seeds, and these means.

    A setting counts by its score when a race decides and by its score in the end: one that learns slowly loses races.
    """
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows = [row for row in rows if row["task"] == task]
    cells = sorted({(row["graph"], row["seed"]) for row in rows})
    scores = {name: np.zeros(len(cells)) for name in POOLS[task]}
    for row in rows:
        if row["setting"] in scores:
            val = row["val"]
            scores[row["setting"]][cells.index((row["graph"], row["seed"]))] = (
                val.get(str(DECIDES), 0.0) + max(val.values(), default=0.0)
            ) / 2
    best, chosen = np.zeros(len(cells)), []
    for _ in range(min(count, len(scores))):
        name = max(scores, key=lambda one: float(np.maximum(best, scores[one]).mean()))
        best = np.maximum(best, scores.pop(name))
        chosen.append((name, float(best.mean())))
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", choices=POOLS, default="lp")
    parser.add_argument("--graphs", nargs="*", default=[])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--out", type=Path, default=Path("results/portfolio.jsonl"))
    parser.add_argument("--choose", type=int, metavar="COUNT")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    if arguments.choose is None:
        run(arguments.task, arguments.out, arguments.graphs, arguments.seeds)
    else:
        for name, mean in choose(arguments.task, arguments.out, arguments.choose):
            print(f"{mean:.4f}  {name}  {json.dumps(_setting(arguments.task, name))}")


if __name__ == "__main__":
    main()
