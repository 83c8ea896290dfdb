"""A graph of one's own, from CSV files to recommended links: who else supplies whom?

The script writes the records of a supply chain itself: companies in five tiers, from mines to brands, most with one
customer, some with two. Each has a place and a mix of goods that resemble its customer's, and figures that have nothing
to do with who supplies whom. Some relations are left out of the records, as they are in life; they are what a good
recommendation ought to find. The meaningless figures are there so that likeness of features alone does not do the job:
this shows the way from records to recommendations, and is no evidence for a model.
"""

import argparse
from pathlib import Path

import numpy as np

import h2hgcn
from h2hgcn.datasets import inspect_graph
from h2hgcn.embeddings import layout_in_disk, plot_disk

TIERS = {"brand": 6, "assembler": 30, "maker": 120, "processor": 280, "mine": 400}
TRAITS = ["longitude", "latitude", "steel", "cotton", "silicon", "copper", "timber", "resin"]
EMPTY = ["employees", "revenue", "debt", "founded", "patents", "sites", "rating", "growth", "offices", "vehicles"]
SECOND_CUSTOMERS, LEFT_OUT = 0.05, 0.06  # shares
LISTED = 10


def write_records(folder: Path, random: np.random.Generator) -> list[tuple[str, str]]:
    """Writes supplies.csv, companies.csv and tiers.csv; gives the relations that they do not have."""
    traits: dict[str, np.ndarray] = {}
    tiers: dict[str, str] = {}
    supplies: list[tuple[str, str]] = []
    customers: list[str] = []
    for tier, count in TIERS.items():
        names = [f"{tier}-{number:03}" for number in range(count)]
        for name in names:
            chosen = random.choice(customers) if customers else None
            near = traits[chosen] if chosen else random.normal(size=len(TRAITS)) * 2
            traits[name], tiers[name] = near + random.normal(size=len(TRAITS)) * 0.6, tier
            if chosen:
                supplies.append((name, chosen))
            if chosen and random.random() < SECOND_CUSTOMERS:
                supplies.append((name, random.choice(customers)))
        customers = names
    supplies = sorted(set(supplies))
    left_out = [supplies[k] for k in random.permutation(len(supplies))[: int(LEFT_OUT * len(supplies))]]
    known = set(supplies) - set(left_out)
    _write(folder / "supplies.csv", ["supplier,customer", *(f"{a},{b}" for a, b in sorted(known))])
    rows = []
    for name, true in traits.items():
        seen = [*(true + random.normal(size=len(TRAITS))), *random.normal(size=len(EMPTY)) * 5]
        rows.append(f"{name},{','.join(f'{value:.3f}' for value in seen)}")
    _write(folder / "companies.csv", [f"id,{','.join(TRAITS + EMPTY)}", *rows])
    _write(folder / "tiers.csv", ["id,tier", *(f"{name},{tier}" for name, tier in tiers.items())])
    return left_out


def _write(path: Path, lines: list[str]) -> None:
    path.write_text("\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=Path("own-graph"))
    parser.add_argument("--epochs", type=int, default=100)
    arguments = parser.parse_args()
    folder: Path = arguments.out
    folder.mkdir(parents=True, exist_ok=True)
    left_out = write_records(folder, np.random.default_rng(0))

    # 1. Train on links, from files. Ids stay as they are written; companies without a recorded relation are kept.
    run = h2hgcn.train(
        folder / "supplies.csv", features=folder / "companies.csv", labels=folder / "tiers.csv",
        columns=("supplier", "customer"), unlinked="keep", epochs=arguments.epochs, out=folder / "run", force=True,
    )  # fmt: skip
    graph = run.data
    print(f"{graph.num_nodes} companies, {graph.edge_index.shape[1] // 2} relations; {len(left_out)} are not recorded.")
    trivial = max(run.result["trivial"].values())
    print(f"test AUC {run.metrics['test']['auc']:.3f}; the best score without learning has {trivial:.3f}")

    # 2. Inspect. Is it the kind of graph that hyperbolic space suits?
    print(inspect_graph(graph).verdict.sentences[0])

    # 3. Recommend. How many of the relations that nobody recorded are on the lists of their suppliers?
    lists = {supplier: run.recommend(supplier, k=LISTED) for supplier, _ in left_out}
    found = [pair for pair in left_out if pair[1] in [link.node for link in lists[pair[0]]]]
    chance = len(left_out) * LISTED / graph.num_nodes
    print(f"{len(found)} of the {len(left_out)} are among the {LISTED} likeliest missing links of their suppliers;")
    print(f"by chance it would be {chance:.1f}.")
    supplier, customer = found[0] if found else left_out[0]
    print(f"{supplier} supplies {customer}. Its likeliest missing links:")
    for link in lists[supplier]:
        print(f"  {link.node:15} probability {link.probability:.2f}, distance {link.distance:.2f}")

    # 4. See. The folder has report.html and embeddings.parquet; a picture for slides is one call more.
    tiers = [graph.label_names[label] for label in graph.y]
    disk = layout_in_disk(run.embeddings, graph.edge_index)
    picture = plot_disk(folder / "companies.svg", disk, tiers, graph.edge_index)
    print(f"{picture}; to walk through it: h2hgcn explore {folder / 'run'}")


if __name__ == "__main__":
    main()
