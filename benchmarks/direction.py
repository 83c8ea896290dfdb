"""The symmetric and the directed decoder on directed graphs.

By default the graphs are the imports among the modules of installed Python packages, which need no download:

    python benchmarks/direction.py
    python benchmarks/direction.py --edges my.csv other.csv --seeds 3
"""

import ast
import importlib.util
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import report
import torch

from h2hgcn.datasets import load_graph
from h2hgcn.models import H2HGCN
from h2hgcn.tasks import LinkPrediction
from h2hgcn.training import TrainingSettings, fit

METRICS = {"AUC": "auc", "AP": "ap", "MRR": "mrr", "direction AUC": "direction_auc"}


def imports_of(package: str) -> list[tuple[str, str]]:
    """Edges from each module of a package to the modules of the same package that it imports."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.submodule_search_locations is None:
        raise SystemExit(f"{package} is not an installed package; install it, or name others: --packages")
    root = Path(spec.submodule_search_locations[0])
    files = {".".join((package, *path.relative_to(root).with_suffix("").parts)): path for path in root.rglob("*.py")}
    modules = {name.removesuffix(".__init__"): path for name, path in files.items()}
    return sorted(
        {(module, name) for module, path in modules.items() for name in _imported(module, path) if name in modules}
    )


def _imported(module: str, path: Path) -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(path.read_bytes())
        except SyntaxError:  # templates that end with .py
            return
    parts = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = parts[: len(parts) - node.level + 1] if node.level else []
            origin = ".".join([*start, *filter(None, [node.module])])
            yield origin
            yield from (f"{origin}.{alias.name}" for alias in node.names)


def compare(name: str, edges: Any, seeds: int, epochs: int, dim: int) -> Iterator[dict[str, Any]]:
    """A row for each decoder: means over seeds, which decide on the split, too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = load_graph(edges, directed=True)
    model = partial(H2HGCN, dim=dim, activation="leaky_relu", stem_activation=None, node_vectors=True)
    settings = TrainingSettings(epochs=epochs, lr=0.01, stiefel_lr=0.1, device="cpu")
    for decoder in ("symmetric", "directed"):
        runs = []
        for seed in range(seeds):
            task = cast(Any, LinkPrediction(decoder=decoder, scaling="auto", split_seed=1234 + seed))
            runs.append(fit(task, graph, model, seed=seed, settings=settings))
        test = {
            title: np.mean([run.metrics["test"].get(key, np.nan) for run in runs]) for title, key in METRICS.items()
        }
        yield {
            "graph": name, "nodes": graph.num_nodes, "edges": graph.edge_index.shape[1], "decoder": decoder,
            **{title: round(float(value), 3) for title, value in test.items()},
            "seconds": round(float(np.mean([run.result["seconds"] for run in runs])), 1),
        }  # fmt: skip


def main() -> None:
    arguments = report.parser(__doc__)
    arguments.add_argument("--packages", nargs="*", default=["networkx", "torch"], help="default: %(default)s")
    arguments.add_argument("--edges", nargs="*", default=[], help="files of directed edges, instead of packages")
    arguments.add_argument("--seeds", type=int, default=3)
    arguments.add_argument("--epochs", type=int, default=300)
    arguments.add_argument("--dim", type=int, default=64)
    options = arguments.parse_args()
    torch.set_num_threads(options.threads)
    graphs: dict[str, Any] = {Path(path).stem: path for path in options.edges}
    graphs = graphs or {f"imports of {package}": imports_of(package) for package in options.packages}
    rows = [
        row
        for name, edges in graphs.items()
        for row in compare(name, edges, options.seeds, options.epochs, options.dim)
    ]
    report.publish({"Directed links": rows}, options)


if __name__ == "__main__":
    main()
