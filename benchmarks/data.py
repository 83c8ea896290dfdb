"""Time and memory of loading, splitting, generating and inspecting graphs.

Every job has a process of its own. `seconds` are those of the job without imports, `MB` is its peak beyond what the
process held before it, and `MB in all` is the peak of the whole process, PyTorch included. The limits are what we want
to keep to on two cores.
"""

import multiprocessing
import tempfile
import time
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import torch
from report import parser, publish
from torch_geometric.data import Data

from h2hgcn.datasets import DataWarning, inspect_graph, load_graph, split_edges
from h2hgcn.datasets.disease import generate_disease
from h2hgcn.datasets.synthetic import load_synthetic


def write_edges(folder: Path, num_edges: int, num_nodes: int, kind: str) -> Path:
    """Random edges, one end of which comes from a heavy-tailed distribution."""
    random = np.random.RandomState(0)
    first = (num_nodes * random.rand(num_edges) ** 3).astype(np.int64)
    second = random.randint(0, num_nodes, num_edges)
    if kind == "names":
        columns = [np.char.add("node ", ends.astype(np.str_)) for ends in (first, second)]
    else:
        columns = [first, second]  # type: ignore[list-item]  # either will do
    table = pa.table(dict(zip(("source", "target"), columns, strict=True)))
    path = folder / ("edges.parquet" if kind == "parquet" else f"{kind}.csv")
    if kind == "parquet":
        pq.write_table(table, path)
    else:
        pa_csv.write_csv(table, path)
    return path


def load_split_inspect(path: Path) -> None:
    graph = load_graph(path)
    split_edges(graph)
    inspect_graph(graph)


def legacy_split_of_pubmeds_size(_: Path) -> None:
    random = np.random.RandomState(0)
    index = torch.from_numpy(random.randint(0, 19_717, (2, 44_327)))
    split_edges(Data(edge_index=index, num_nodes=19_717), protocol="legacy")


def inspect_large(path: Path) -> None:
    inspect_graph(load_graph(path))


JOBS: dict[str, tuple[Callable[[Path], Any], Callable[[Path], Any], float | None, float | None]] = {
    "CSV, 1 million edges, integer ids": (lambda f: write_edges(f, 1_000_000, 200_000, "numbers"), load_graph, 5, 500),
    "CSV, 1 million edges, text ids": (lambda f: write_edges(f, 1_000_000, 200_000, "names"), load_graph, 5, 500),
    "Parquet, 5 million edges: load, clean split, inspect": (
        lambda f: write_edges(f, 5_000_000, 1_000_000, "parquet"), load_split_inspect, None, 4000,
    ),
    "load and inspect 100,000 nodes, 500,000 edges": (
        lambda f: write_edges(f, 500_000, 100_000, "parquet"), inspect_large, 60, None,
    ),
    "legacy split of PubMed's size": (lambda f: f, legacy_split_of_pubmeds_size, 60, 6000),
    "generate disease": (lambda f: f, lambda f: generate_disease(), None, None),
    "generate synthetic, 18,000 graphs": (lambda f: f, load_synthetic, None, None),
}  # fmt: skip


def serve(connection: Connection, name: str, source: Path, threads: int) -> None:
    torch.set_num_threads(threads)
    warnings.simplefilter("ignore", DataWarning)
    job = JOBS[name][1]
    before = _status_megabytes("VmRSS")
    start = time.perf_counter()
    job(source)
    connection.send((time.perf_counter() - start, _status_megabytes("VmHWM") - before, _status_megabytes("VmHWM")))


def _status_megabytes(key: str) -> float:
    """Linux alone tells."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(key)) / 1024


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--jobs", nargs="+", choices=list(JOBS), default=list(JOBS), help="which (default: all)")
    options = arguments.parse_args()
    context = multiprocessing.get_context("spawn")
    rows = []
    for name in options.jobs:
        prepare, _, seconds_limit, megabytes_limit = JOBS[name]
        with tempfile.TemporaryDirectory() as folder:
            source = prepare(Path(folder))
            here, there = context.Pipe()
            process = context.Process(target=serve, args=(there, name, source, options.threads), daemon=True)
            process.start()
            there.close()
            seconds, extra, peak = here.recv()
            process.join()
        rows.append(
            {
                "job": name,
                "seconds": round(seconds, 2),
                "limit": seconds_limit,
                "MB": round(extra),
                "MB limit": megabytes_limit,
                "MB in all": round(peak),
            }
        )
    publish({"Loading, splitting, generating, inspecting": rows}, options)


if __name__ == "__main__":
    main()
