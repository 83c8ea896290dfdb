"""The default command without settings beside simple alternatives, on many graphs with and without features.

Each seed has its own split and its own initial weights. For links, 85 % of the edges are for training, 5 % for
validation and 10 % for testing, against as many pairs without an edge; node splits are those of `split_nodes`. All
methods get the same splits, and each selects among a few settings on validation data: truncated SVD its matrix and
rank, node2vec its walks and decoder, GCN and GAT their dropout, decoder and whether each node has a learnt vector (the
best two of eight or four settings are trained to the end). Poincaré is gensim's `PoincareModel` of dimension 10, for at
most 50 epochs and about half a minute. The MRR ranks a test edge among all test pairs without an edge. All graphs are
undirected.

A pair is answerable if both nodes have a training edge. A node without any has lost its edges to the split, which is
more often so for held-out edges than for other pairs: of all pairs, a method that puts such nodes close to everything
(Poincaré: at the origin) scores well without knowing anything of them.

"Isolated end" counts the ends of a pair without a training edge. Where its AUC is well above 0.5, as in trees, the
split itself gives held-out edges away: the AUC of any method that sees degrees overstates how well it predicts links.
h2h-gcn is fitted so that it does not use this; the default command advises against predicting links of such graphs.

Tables show mean ± standard deviation over the seeds that all methods of a row have; the best mean is bold. A deficit of
h2h-gcn is beyond noise if it is more than 0.005 and a paired t-test over the seeds, against the best method of the
graph, has p < 0.05.

Results are appended to a file of records, so the script can be stopped and run again, in parts if needed. `--markdown`
and `--json` print what the records hold and run nothing.
"""

import argparse
import json
import statistics
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from graph_sources import GRAPHS, load
from report import parser, publish
from rivals import LINK_METHODS, NEEDS_FEATURES, NODE_METHODS, PairScores, val_accuracy, val_auc
from scipy.stats import ttest_rel

import h2hgcn
from h2hgcn.datasets import DataError, DataWarning
from h2hgcn.datasets.on_disk import fingerprint
from h2hgcn.tasks import TASKS
from h2hgcn.tasks.metrics import auc, class_metrics, link_metrics

OURS = "h2h-gcn"
METHODS = {"lp": (OURS, *LINK_METHODS), "nc": (OURS, *NODE_METHODS)}
METRICS = {"lp": ("auc", "auc_answerable", "ap", "mrr"), "nc": ("accuracy",)}
TITLES = {
    "auc": "AUC",
    "auc_answerable": "AUC of answerable pairs",
    "ap": "average precision",
    "mrr": "MRR",
    "accuracy": "accuracy",
}
TASK_TITLES = {"lp": "Links", "nc": "Classes of nodes"}
MARGIN = 0.005  # of the best: a tie
LEVEL = 0.05  # of the test whether a deficit is more than noise
RECORDS = Path(__file__).parents[1] / "results" / "any_graph.jsonl"

Record = dict[str, Any]
Answer = tuple[str, dict[str, dict[str, float]]]


class Cell(NamedTuple):
    graph: str
    task: str
    method: str
    seed: int


def train_default(data: Any, task: str, seed: int) -> Answer:
    """The settings that ``h2hgcn.train`` chose, and their metrics by part."""
    settings = {"task.protocol": "clean", "task.split_seed": seed, "training.threads": 1}
    run = h2hgcn.train(data, task, seed=seed, settings=settings)
    metrics = run.result["metrics"]
    if task == "lp":  # a run leaves it out where all pairs are answerable
        metrics = {part: {"auc_answerable": values["auc"]} | values for part, values in metrics.items()}
    return run.config["search"]["chosen"], metrics


def train_rival(problem: Any, task: str, method: str, seed: int) -> Answer:
    """The setting that is best on validation data, and its metrics by part."""
    if task == "lp":
        links = LINK_METHODS[method](problem, seed)
        setting, score = max(links, key=lambda candidate: val_auc(problem, candidate[1]))
        return setting, {part: _metrics_of_links(problem.split, part, score) for part in ("val", "test")}
    nodes = NODE_METHODS[method](problem, seed)
    setting, classes = max(nodes, key=lambda candidate: val_accuracy(problem, candidate[1]))
    of = {"val": problem.split.val, "test": problem.split.test}
    y = problem.y.numpy()
    return setting, {part: class_metrics(y[rows], classes[rows], problem.num_classes) for part, rows in of.items()}


def _metrics_of_links(split: Any, part: str, score: PairScores) -> dict[str, float]:
    links, others = getattr(split, part), getattr(split, f"{part}_neg")
    metrics = link_metrics(score(links), score(others))
    links, others = links[split.answerable(links)], others[split.answerable(others)]
    return metrics | ({"auc_answerable": auc(score(links), score(others))} if len(links) and len(others) else {})


@cache
def graph_of(name: str) -> Any:
    data = load(name)
    data.digest = fingerprint(data)[:16]
    return data


@lru_cache(maxsize=1)
def problem_of(name: str, task: str, seed: int) -> Any:
    """A graph with the split of a seed, as the package's own tasks make it."""
    return TASKS[task](split_seed=seed).bind(graph_of(name))


def has_features(data: Any) -> bool:
    return not getattr(data, "structural", False)


def measure(cell: Cell) -> Record | str | None:
    """A record, or why there is none; None where a method does not apply."""
    torch.set_num_threads(1)
    try:
        data = graph_of(cell.graph)
    except DataError as error:
        return f"{cell.graph} skipped: {error}"
    if cell.method in NEEDS_FEATURES and not has_features(data):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        start = time.process_time()
        try:
            if cell.method == OURS:
                setting, metrics = train_default(data, cell.task, cell.seed)
            else:
                setting, metrics = train_rival(problem_of(*cell[:2], cell.seed), cell.task, cell.method, cell.seed)
        except ImportError as error:
            return f"{cell.method} skipped: {error.name} is missing; pip install {error.name}"
        except (DataError, ValueError, ArithmeticError) as error:
            return f"{cell.method} on {cell.graph}, {cell.task}, seed {cell.seed} failed: {error}"
    return {
        **cell._asdict(),
        "data": data.digest,
        "nodes": int(data.num_nodes),
        "edges": data.edge_index.shape[1] // 2,
        "features": has_features(data),
        "setting": setting,
        **{part: {name: round(value, 6) for name, value in metrics[part].items()} for part in ("val", "test")},
        "seconds": round(time.process_time() - start, 2),
    }


def read_records(path: Path) -> list[Record]:
    """All records; a line that a kill cut short is left out."""
    records = []
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return records


def run(cells: Iterable[Cell], path: Path, jobs: int) -> None:
    """Measures what the records lack and appends it, one line at a time."""
    done = defaultdict(set)
    for record in read_records(path):
        if all(metric in record["test"] for metric in METRICS[record["task"]]):
            done[Cell(*(record[name] for name in Cell._fields))].add(record["data"])
    missing = [cell for cell in cells if not _is_measured(cell, done[cell])]
    path.parent.mkdir(parents=True, exist_ok=True)
    whole_lines = not path.exists() or not path.stat().st_size or path.read_bytes().endswith(b"\n")
    notes: set[str] = set()
    with path.open("a") as file, ProcessPoolExecutor(jobs) as pool:
        if not whole_lines:
            file.write("\n")
        for result in map(measure, missing) if jobs == 1 else pool.map(measure, missing):
            if isinstance(result, str) and result not in notes:
                notes.add(result)
                print(result, file=sys.stderr, flush=True)
            elif isinstance(result, dict):
                file.write(json.dumps(result, ensure_ascii=False) + "\n")
                file.flush()


def _is_measured(cell: Cell, digests: set[str]) -> bool:
    """Whether there is a record of the graph as it is now: another version of a package has other imports."""
    try:
        return bool(digests) and graph_of(cell.graph).digest in digests
    except DataError:
        return False


def tables(records: Sequence[Record]) -> dict[str, list[dict[str, Any]]]:
    """A table for each task and metric, graphs without features first, after a summary."""
    current = {(record["graph"], record["task"]): record["data"] for record in records}  # a graph may change: the last
    values: dict[tuple[str, str], dict[str, dict[int, Record]]] = defaultdict(lambda: defaultdict(dict))
    for record in records:
        key = record["graph"], record["task"]
        if record["data"] == current[key] and record["graph"] in GRAPHS:
            values[key][record["method"]][record["seed"]] = record
    order = {name: place for place, name in enumerate(GRAPHS)}
    found: dict[str, list[dict[str, Any]]] = {"Summary": []}
    for task, metrics in METRICS.items():
        graphs = sorted((graph for graph, of in values if of == task), key=order.__getitem__)
        for metric in metrics:
            for features in (False, True):
                found_for = {graph: _with(values[graph, task], metric) for graph in graphs}
                chosen = [
                    graph for graph in graphs if found_for[graph] and _first(found_for[graph])["features"] == features
                ]
                if not chosen:
                    continue
                title = f"{TASK_TITLES[task]}, {TITLES[metric]}, graphs {'with' if features else 'without'} features"
                methods = [name for name in METHODS[task] if any(name in found_for[graph] for graph in chosen)]
                found[title] = [_row(graph, found_for[graph], methods, metric) for graph in chosen]
                found["Summary"] += _summary(title, [found_for[graph] for graph in chosen], metric)
    found["CPU seconds, mean over seeds"] = [
        _seconds(graph, task, values[graph, task]) for graph, task in sorted(values, key=lambda key: order[key[0]])
    ]
    return {title: rows for title, rows in found.items() if rows}


def _with(by_method: dict[str, dict[int, Record]], metric: str) -> dict[str, dict[int, Record]]:
    """The records of seeds for which all methods have a metric: seeds are splits, some easier than others."""
    found = {
        method: {seed for seed, record in seeds.items() if metric in record["test"]}
        for method, seeds in by_method.items()
    }
    shared = set.intersection(*found.values())
    return {method: {seed: seeds[seed] for seed in sorted(shared)} for method, seeds in by_method.items() if shared}


def _first(by_method: dict[str, dict[int, Record]]) -> Record:
    return next(record for seeds in by_method.values() for record in seeds.values())


def _tests(seeds: dict[int, Record], metric: str) -> list[float]:
    return [record["test"][metric] for record in seeds.values()]


def _row(graph: str, by_method: dict[str, dict[int, Record]], methods: Sequence[str], metric: str) -> dict[str, Any]:
    means = {method: statistics.fmean(_tests(seeds, metric)) for method, seeds in by_method.items()}
    cells = {}
    for method in methods:
        tests = _tests(by_method.get(method, {}), metric)
        text = "" if not tests else f"{means[method]:.3f}"
        if len(tests) > 1:
            text += f" ± {statistics.stdev(tests):.3f}"
        cells[method] = f"**{text}**" if tests and means[method] == max(means.values()) else text
    first = _first(by_method)
    seeds = len(next(iter(by_method.values())))
    return {"graph": graph, "nodes": first["nodes"], "edges": first["edges"], "seeds": seeds, **cells}


def _summary(title: str, graphs: Sequence[dict[str, dict[int, Record]]], metric: str) -> Iterator[dict[str, Any]]:
    """How far the default is behind the best alternative of each graph."""
    deficits: dict[str, tuple[float, str, bool]] = {}
    for by_method in graphs:
        if OURS not in by_method:
            continue
        ours = _tests(by_method[OURS], metric)
        others = {method: _tests(seeds, metric) for method, seeds in by_method.items() if method != OURS}
        best = max(others, key=lambda method: statistics.fmean(others[method]))
        gap = statistics.fmean(others[best]) - statistics.fmean(ours)
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # nearly equal differences
            is_clear = len(ours) > 1 and bool(ttest_rel(others[best], ours, alternative="greater").pvalue < LEVEL)
        deficits[_first(by_method)["graph"]] = gap, best, gap > MARGIN and is_clear
    if deficits:
        worst = max(deficits, key=lambda graph: deficits[graph])
        gap, method, _ = deficits[worst]
        clearly_behind = [graph for graph, (*_, is_clear) in deficits.items() if is_clear]
        yield {
            "table": title,
            "graphs": len(deficits),
            "fewest seeds": min(len(by_method[OURS]) for by_method in graphs if OURS in by_method),
            f"{OURS} best or within {MARGIN}": sum(gap <= MARGIN for gap, *_ in deficits.values()),
            "largest deficit": f"{gap:.3f} ({worst}, {method})" if gap > 0 else "none",
            "deficits beyond noise": f"{len(clearly_behind)} ({', '.join(clearly_behind)})" if clearly_behind else 0,
        }


def _seconds(graph: str, task: str, by_method: dict[str, dict[int, Record]]) -> dict[str, Any]:
    names = dict.fromkeys((*METHODS["lp"], *METHODS["nc"]))
    means = {
        name: statistics.fmean(record["seconds"] for record in by_method[name].values()) if name in by_method else ""
        for name in names
    }
    return {"graph": graph, "task": task, **means}


def options_of(arguments: argparse.ArgumentParser) -> argparse.Namespace:
    every_method = dict.fromkeys((*METHODS["lp"], *METHODS["nc"]))
    arguments.add_argument("--graphs", nargs="+", choices=GRAPHS, default=list(GRAPHS), metavar="GRAPH")
    arguments.add_argument("--methods", nargs="+", choices=every_method, default=list(every_method), metavar="METHOD")
    arguments.add_argument("--task", choices=METHODS, help="links or nodes only (default: both)")
    arguments.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4], metavar="SEED")
    arguments.add_argument("--jobs", type=int, default=1, help="processes (default: %(default)s)")
    arguments.add_argument("--out", type=Path, default=RECORDS, help="the file of records")
    return arguments.parse_args()


def cells_of(options: argparse.Namespace) -> Iterator[Cell]:
    for seed in options.seeds:
        for graph in options.graphs:
            for task in GRAPHS[graph].tasks:
                if options.task in (None, task):
                    yield from (Cell(graph, task, name, seed) for name in METHODS[task] if name in options.methods)


def main() -> None:
    options = options_of(parser(__doc__))
    if not (options.json or options.markdown):
        run(cells_of(options), options.out, options.jobs)
    publish(tables(read_records(options.out)), options)


if __name__ == "__main__":
    main()
