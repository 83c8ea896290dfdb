"""What the presets reach: the documented commands, run as a user runs them, over several seeds.

Every figure is a whole run of ``h2hgcn train`` in a process of its own: test metrics at the epoch that validation data
selected, seeds of weights and batches varied on one split. The data are named datasets, from ``$H2HGCN_DATA`` or
downloaded; those that are not at hand are left out, which is said.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from report import parser, publish

COLUMNS = (
    "command", "metric", "test mean", "deviation", "tests", "validation mean", "best without learning", "seconds a run",
)  # fmt: skip
CELLS = (("disease", "lp"), ("disease_lp", "lp"), ("cora", "lp"), ("cora", "nc"), ("enzymes", "gc"))


def train(dataset: str, task: str, seed: int, threads: int) -> dict[str, Any] | str:
    """The result of a run, or why there is none."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "h2hgcn", "train", "--dataset", dataset, "--task", task, "--seed", str(seed)]
        options = ["--set", f"training.threads={threads}", "--json", "--out", str(Path(folder) / "run")]
        done = subprocess.run([*command, *options], capture_output=True, text=True)
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["no message"])[-1]
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def row(dataset: str, task: str, seeds: int, threads: int) -> dict[str, Any]:
    """One line of the table."""
    command = f"h2hgcn train --dataset {dataset} --task {task}"
    results: list[dict[str, Any]] = []
    for seed in range(seeds):
        result = train(dataset, task, seed, threads)
        if isinstance(result, str):
            return dict.fromkeys(COLUMNS) | {"command": command, "metric": f"not run: {result}"}
        results.append(result)
    metric = results[0]["selection"]
    tests = [result["metrics"]["test"][metric] for result in results]
    trivial = {name: value for name, value in (results[0]["trivial"] or {}).items() if value is not None}
    best = max(trivial, key=lambda name: trivial[name])
    return {
        "command": command,
        "metric": metric,
        "test mean": round(statistics.fmean(tests), 4),
        "deviation": round(statistics.stdev(tests), 4) if seeds > 1 else None,
        "tests": ", ".join(f"{value:.4f}" for value in tests),
        "validation mean": round(statistics.fmean(result["metrics"]["val"][metric] for result in results), 4),
        "best without learning": f"{trivial[best]:.4f} ({best})",
        "seconds a run": round(statistics.fmean(result["seconds"] for result in results), 1),
    }


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--seeds", type=int, default=3, help="runs of each command (default: %(default)s)")
    arguments.add_argument("--datasets", nargs="+", default=sorted({cell[0] for cell in CELLS}), help="which of them")
    options = arguments.parse_args()
    rows = [row(*cell, options.seeds, options.threads) for cell in CELLS if cell[0] in options.datasets]
    publish({f"Seeds 0 to {options.seeds - 1} of each command": rows}, options)


if __name__ == "__main__":
    main()
