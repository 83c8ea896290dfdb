"""What size costs: an epoch of link prediction by number of edges, sampled beside full-batch training, two processes
beside one, and the nearest of all points.

- `epochs`: hyperbolic random graphs with ten times as many edges as nodes. Each row is a process of its own; the sizes
  take turns, since a machine is not equally fast at all times. `seconds` is the least of the epochs of four turns, the
  first epoch of each left out, without evaluation, and `MB` the peak of the whole process, data and their split
  included. Threads are as many of `--threads` as training takes for a graph of this size. Sampled epochs have batches
  of a sixteenth of the links, at least 1,024, as `--batch-size auto` makes them, and a fanout of 15,10. `by the least`
  compares costs of an edge.
- `quality`: PubMed (`H2HGCN_DATA`), both kinds of training for the same number of epochs.
- `processes`: steps of one process with one thread, and of two that share each batch. `speed-up` is in links a second;
  `loss` the largest relative difference from one process with the same batch, over all steps.
- `links`: the ten nearest of each of many points, re-ranked; exact search is measured on some and reckoned for all.

Other programs on the machine show in all figures but those of memory, recall and quality.
"""

import os
from pathlib import Path

import torch
from report import parser, publish
from scale_epochs import epochs_table, plot
from scale_links import links_table
from scale_processes import processes_table
from scale_quality import quality_table

PARTS = ("epochs", "quality", "processes", "links")


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="what to measure (default: all)")
    arguments.add_argument(
        "--sizes", type=int, nargs="+", default=[10**4, 10**5, 10**6, 10**7], help="numbers of edges of `epochs`"
    )
    arguments.add_argument("--seconds", type=float, default=10, help="of a turn of `epochs` (default: %(default)s)")
    arguments.add_argument("--dim", type=int, default=64, help="of `epochs` and `processes` (default: %(default)s)")
    arguments.add_argument("--epochs", type=int, default=100, help="of `quality` (default: %(default)s)")
    arguments.add_argument("--edges", type=int, default=10**6, help="of `processes` (default: %(default)s)")
    arguments.add_argument("--batch", type=int, default=1024, help="links of a process (default: %(default)s)")
    arguments.add_argument("--points", type=int, default=10**6, help="of `links` (default: %(default)s)")
    arguments.add_argument("--indexes", nargs="*", default=["hnsw"], help="of `links`: hnsw, ivf")
    arguments.add_argument("--plot", type=Path, help="file for the log-log plot of `epochs`")
    options = arguments.parse_args()
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # for processes that are started, as the command line does
    torch.set_num_threads(options.threads)
    tables = {}
    if "epochs" in options.parts:
        rows = epochs_table(options.sizes, options.dim, options.threads, options.seconds)
        tables[f"An epoch of link prediction, dim {options.dim}"] = rows
        if options.plot is not None:
            plot(rows, options.plot)
    if "quality" in options.parts:
        tables["Sampled and full-batch training at equal epochs"] = quality_table("pubmed", options.epochs)
    if "processes" in options.parts:
        title = f"Two processes on a graph of {options.edges:,} edges, dim {options.dim}"
        tables[title] = processes_table(options.edges, options.dim, options.batch)
    if "links" in options.parts:
        tables["The ten nearest of all points, dim 32"] = links_table(options.points, 32, options.indexes)
    publish(tables, options)


if __name__ == "__main__":
    main()
