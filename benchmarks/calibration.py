"""How far probabilities are off, before and after calibration on validation data.

The default command on named graphs, and on the edges of Cora alone as a graph of your own. The expected calibration
error (ECE) is the mean distance of predicted probabilities and reality over bins of the test part.

Links are counted among all pairs that are not training edges, where they are rare: predicting 0 for all pairs has an
ECE as small as the density. So the error of the likeliest pairs stands beside it, as many as links are held out
(`top`), with their mean probability and the fraction that are links.

Classes have 15 bins of the likeliest class. The ECE of a few hundred predictions is not 0 even if all probabilities
are right; `perfect` is what it would be on average. Mean over seeds, which decide on weights alone: three for links
and ten for classes, whose test parts are small.

    python benchmarks/calibration.py
"""

import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import report
import torch
from graph_sources import load

import h2hgcn
from h2hgcn.datasets import DataWarning
from h2hgcn.tasks.metrics import CLASS_BINS, calibration_error, reliability

LINKS, CLASSES = ["disease", "cora", "airport", "cora-edges"], ["cora", "airport"]


def trained(name: str, task: str, seed: int, epochs: int | None) -> Any:
    print(f"{name} {task} seed {seed}", file=sys.stderr)
    data: Any = load(name) if name.endswith("-edges") else name
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return h2hgcn.train(data, task, seed=seed, epochs=epochs)


def before_and_after(run: Any) -> Iterator[dict[str, float]]:
    """The test metrics with what calibration replaced, and as they are."""
    head = run.model.head
    owner = head if run.task.name == "lp" else head.classes
    calibration, owner.calibration = owner.calibration, None
    yield run.evaluate()
    owner.calibration = calibration
    yield run.evaluate()


def links(name: str, seed: int, epochs: int | None) -> dict[str, float]:
    run = trained(name, "lp", seed, epochs)
    before, after = before_and_after(run)
    top = run.problem.reliability(run.model, "test")[1]
    sizes = [one["count"] for one in top]
    return {
        "AUC": after["auc"], "ECE before": before["ece"], "ECE after": after["ece"],
        "top ECE before": before["ece_top"], "top ECE after": after["ece_top"],
        "top: probability": float(np.average([one["predicted"] for one in top], weights=sizes)),
        "top: links": float(np.average([one["actual"] for one in top], weights=sizes)),
    }  # fmt: skip


def classes(name: str, seed: int, epochs: int | None) -> dict[str, float]:
    run = trained(name, "nc", seed, epochs)
    before, after = before_and_after(run)
    sure = run.predict(run.nodes[run.problem.split.test]).max(1).values.double().numpy()
    random = np.random.RandomState(0)
    perfect = [
        calibration_error(reliability(sure, random.rand(len(sure)) < sure, None, CLASS_BINS)) for _ in range(200)
    ]
    return {
        "accuracy": after["accuracy"], "ECE before": before["ece"], "ECE after": after["ece"],
        "perfect": float(np.mean(perfect)),
    }  # fmt: skip


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")


def rows(names: list[str], measure: Any, count: int, epochs: int | None) -> list[dict[str, Any]]:
    found = []
    for name in names:
        seeds = [measure(name, seed, epochs) for seed in range(count)]
        means = {key: _rounded(np.mean([one[key] for one in seeds])) for key in seeds[0]}
        found.append({"graph": name, **means, "largest ECE after": _rounded(max(one["ECE after"] for one in seeds))})
    return found


def main() -> None:
    arguments = report.parser(__doc__)
    arguments.add_argument("--links", nargs="*", default=LINKS, help="graphs (default: %(default)s)")
    arguments.add_argument("--classes", nargs="*", default=CLASSES, help="graphs (default: %(default)s)")
    arguments.add_argument("--link-seeds", type=int, default=3)
    arguments.add_argument("--class-seeds", type=int, default=10)
    arguments.add_argument("--epochs", type=int, help="instead of those of the settings")
    options = arguments.parse_args()
    torch.set_num_threads(options.threads)
    tables = {
        "Links": rows(options.links, links, options.link_seeds, options.epochs),
        "Classes": rows(options.classes, classes, options.class_seeds, options.epochs),
    }
    report.publish({title: table for title, table in tables.items() if table}, options)


if __name__ == "__main__":
    main()
