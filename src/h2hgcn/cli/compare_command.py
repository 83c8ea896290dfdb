"""``h2hgcn compare``: several models on one graph and one split, in one table."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Column, Table

from h2hgcn.cli.cell_runs import run_cells
from h2hgcn.cli.graph_options import (
    DataFolder,
    Directed,
    Edges,
    Features,
    Header,
    Labels,
    Source,
    Target,
    Unlinked,
    Weights,
    given,
)
from h2hgcn.cli.output import print_json, print_title, say, starting, stderr, stdout

if TYPE_CHECKING:
    from h2hgcn.experiments.cells import Outcome
    from h2hgcn.experiments.comparison import Comparison, ComparisonTable, Row

Outcomes = dict[tuple[str, int], "Outcome"]


def compare(
    models: Annotated[str, typer.Option(help="Names of models, joined by commas; see h2hgcn models.")],
    task: Annotated[str | None, typer.Option(help="lp, nc or gc. Default: lp, or gc.")] = None,
    dataset: Annotated[str | None, typer.Option(help="A named dataset; see h2hgcn datasets.")] = None,
    edges: Edges = None,
    features: Features = None,
    labels: Labels = None,
    weights: Weights = None,
    directed: Directed = None,
    source: Source = None,
    target: Target = None,
    header: Header = None,
    unlinked: Unlinked = None,
    data: DataFolder = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds, each a run of every model.")] = 3,
    vary_split: Annotated[
        bool, typer.Option("--vary-split", help="Another split for each seed, the same for all models.")
    ] = False,
    epochs: Annotated[int | None, typer.Option(help="Largest number of epochs, of all models.")] = None,
    dim: Annotated[int | None, typer.Option(help="Dimension of the embedding space, of all models.")] = None,
    protocol: Annotated[str | None, typer.Option(help="How data are split: clean, legacy, planetoid, ...")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Any other setting of all models, as section.option=value.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file of settings of all models.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the runs. Default: runs/compare-DATA-TASK.")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes, of one thread each. Default: one a core.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Train anew what is in the folder.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
) -> None:
    """Compare models on the same graph and the same split, several seeds each.

    Every model has its own settings, those that h2hgcn train has for it. A comparison that was stopped or killed goes
    on when the same command is given again.

    Example: h2hgcn compare --models h2h-gcn,gcn,mlp --seeds 2 --epochs 20
    """
    with starting():
        from h2hgcn.experiments.comparison import plan, tabulate
        from h2hgcn.experiments.graph_choice import open_graph
        from h2hgcn.experiments.sections import absolute_paths, merged, setting
        from h2hgcn.models import ENCODERS
    graph = given(
        dataset=dataset, edges=edges, features=features, labels=labels, weights=weights, directed=directed,
        source=source, target=target, header=header, unlinked=unlinked,
    )  # fmt: skip
    flags = {
        "data": absolute_paths(graph, Path()),
        "task": given(name=task, protocol=protocol),
        "model": given(dim=dim),
        "training": given(epochs=epochs),
    }
    names = [name.strip() for name in models.split(",") if name.strip()]
    comparison = plan(merged(flags, *map(setting, settings or ())), names, seeds, out, config, data, force, vary_split)
    # said once, here: what is strange about the data, and whether the task fits them
    comparison.first.task.bind(open_graph(comparison.first.graph, data))
    _announce(comparison)
    outcomes, stopped = _run(comparison, jobs)
    table = tabulate(comparison, outcomes, {name: str(ENCODERS[name].space) for name in names})
    if json:
        print_json(_as_json(comparison, table))
    else:
        _print(comparison, table)
    if stopped:
        say("stopped", "bold yellow", f"{len(outcomes)} of {len(comparison.cells)} runs; the same command goes on")
        raise typer.Exit(1)


def _run(comparison: "Comparison", jobs: int | None) -> tuple[Outcomes, bool]:
    """What came to an end, and whether something did not."""
    places = list(comparison.cells)
    outcomes: Outcomes = {}

    def finished(number: int, outcome: "Outcome") -> str:
        outcomes[places[number]] = outcome
        return _words(places[number], outcome)

    run_cells(comparison.cells.values(), len(places), jobs, finished)
    return outcomes, len(outcomes) < len(places)


def _words(place: tuple[str, int], outcome: "Outcome") -> str:
    model, seed = place
    if outcome.status != "finished":
        return f"{model}, seed {seed}: {outcome.status}"
    selection = outcome.result["selection"]
    return f"{model}, seed {seed}: test {selection} {outcome.result['metrics']['test'][selection]:.4f}"


def _announce(comparison: "Comparison") -> None:
    first = comparison.first
    split = f"{first.task.protocol} split" + (", another for each seed" if comparison.vary_split else "")
    stderr.print(
        f"{', '.join(comparison.experiments)} for {first.task.name} on {first.graph.name}, {split}, "
        f"{len(comparison.seeds)} seeds, to {next(iter(comparison.cells.values())).folder.parent}",
        soft_wrap=True,
    )


def _print(comparison: "Comparison", table: "ComparisonTable") -> None:
    names = ("model", f"test {table.metric}", "val", "weights", "s/run", "against the best")
    # on a narrow terminal names and words are broken, numbers are not
    columns = [Column(name, no_wrap=name not in (names[0], names[-1])) for name in names]
    shown = Table(*columns, box=None, header_style="bold", pad_edge=False)
    for row in table.rows:
        shown.add_row(
            row.model, _scores(row), _mean(row.val_scores), _number(row.parameters),
            "" if row.seconds is None else f"{row.seconds:.1f}", _against_best(row, table),
        )  # fmt: skip
    for name, score in table.trivial.items():
        shown.add_row(name, f"{score:.4f}", "", "", "", "no learning")
    stdout.print()
    print_title(f"mean and deviation over {len(comparison.seeds)} seeds")
    stdout.print(shown)
    if len(table.rows) > 1 and any(row.p_value is not None for row in table.rows):
        kind = "paired t-test over splits" if comparison.vary_split else "Welch's t-test over seeds"
        stdout.print(f"differs: p < {table.level:.3g} ({kind}; 0.05 shared out over {len(table.rows) - 1} comparisons)")


def _scores(row: "Row") -> str:
    if row.mean is None:
        return "diverged" if row.diverged else ""
    deviation = "" if row.deviation is None else f" ± {row.deviation:.4f}"
    lost = f" ({row.diverged} diverged)" if row.diverged else ""
    return f"{row.mean:.4f}{deviation}{lost}"


def _mean(scores: tuple[float, ...]) -> str:
    return f"{sum(scores) / len(scores):.4f}" if scores else ""


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _against_best(row: "Row", table: "ComparisonTable") -> str:
    if row is table.rows[0]:
        return "" if row.mean is None else "best"
    differs = table.differs(row)
    if differs is None:
        return "too few seeds to tell" if row.mean is not None else ""
    return f"{'differs' if differs else 'within noise'}, p = {row.p_value:.2g}"


def _as_json(comparison: "Comparison", table: "ComparisonTable") -> dict[str, Any]:
    first = comparison.first
    return {
        "dataset": first.graph.name,
        "task": first.task.name,
        "protocol": first.task.protocol,
        "seeds": list(comparison.seeds),
        "vary_split": comparison.vary_split,
        "metric": table.metric,
        "level": table.level,
        "models": [
            {
                "model": row.model, "space": row.space, "test": list(row.scores), "mean": row.mean,
                "deviation": row.deviation, "validation": list(row.val_scores), "diverged": row.diverged,
                "parameters": row.parameters, "seconds": row.seconds, "p_value": row.p_value,
                "differs": table.differs(row),
            }
            for row in table.rows
        ],
        "trivial": table.trivial,
    }  # fmt: skip
