"""``h2hgcn compare``: several models on one graph and one split, in one table."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Column

from h2hgcn.cli import console
from h2hgcn.cli import options as flags

if TYPE_CHECKING:
    from h2hgcn.experiments.compare import Comparison, ComparisonTable, Row
    from h2hgcn.experiments.runner import Cell, Outcome


@flags.with_flags(given=("task", "epochs", "dim", "protocol"), graph=flags.GRAPH)
def compare(
    given: flags.Given,
    graph: flags.Given,
    models: Annotated[
        str | None,
        typer.Option(
            help="Names of models, joined by commas; see h2hgcn models. Default: h2h-gcn,hgcn,gcn,mlp; without "
            "features h2h-gcn,gcn,hyp,euc; for gc h2h-gcn,gin,fingerprint."
        ),
    ] = None,
    data: flags.DataFolder = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds, each a run of every model.")] = 3,
    vary_split: Annotated[
        bool,
        typer.Option("--vary-split", help="Another split (gc: another fold) for each seed, the same for all models."),
    ] = False,
    search: flags.Search = "auto",
    settings: flags.Settings = None,
    config: Annotated[
        list[Path] | None,
        typer.Option(
            help="A TOML file of settings: of the model that it names, as best.toml of h2hgcn tune does, or of all; "
            "repeat it."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the runs. Default: runs/compare-DATA-TASK.")] = None,
    jobs: flags.Jobs = None,
    force: flags.Retrain = False,
    json: flags.Json = False,
) -> None:
    """Compare models on the same graph and the same split, several seeds each.

    Without --models, usual ones are compared: hyperbolic and Euclidean, with the graph and without. Every run has the
    settings that h2hgcn train finds for its model, by the same search with the same budget. What h2hgcn train adds to
    all models alike (task.neighborhood_terms, task.feature_terms) is left out. Run the same command again to resume.

    Example: h2hgcn compare --models h2h-gcn,gcn,mlp --seeds 2 --epochs 20
    """
    with console.starting():
        from h2hgcn.experiments.compare import check_varied, default_models, plan, tabulate
        from h2hgcn.experiments.config import open_graph, read_layer, sections_of
    sections = sections_of(graph, settings, None, search, **given)
    files = [read_layer(path) for path in config or ()]
    names = default_models(sections, files, data) if models is None else flags.split_names(models)
    comparison = plan(sections, names, seeds, out, files, data, force, vary_split)
    first = comparison.first
    opened = open_graph(first.graph, data)  # notes on the data are printed once, here
    metric = first.task.bind(opened).selection_metric
    check_varied(comparison, opened)
    split = f"{first.task.protocol} split" + (f", another {comparison.varied} for each seed" * vary_split)
    console.tell(
        f"{', '.join(comparison.experiments)} for {first.task.name} on {first.graph.name}, {split}, "
        f"{console.counted(seeds, 'seed')}, to {comparison.cells[0].folder.parent}"
    )
    outcomes, error = _run(comparison, jobs, force)
    table = tabulate(comparison, outcomes, metric)
    if json:
        console.print_json(_as_json(comparison, table))
    elif outcomes or error is None:
        _print_table(comparison, table)
    if error is not None:
        raise error
    if len(outcomes) < len(comparison.cells):
        console.stop(f"{len(outcomes)} of {len(comparison.cells)} runs", force)
    if all(row.mean is None for row in table.rows):
        console.error("all runs diverged; try a smaller learning rate, --set training.lr=...")
        raise typer.Exit(1)


def _run(
    comparison: "Comparison", jobs: int | None, force: bool
) -> "tuple[dict[tuple[str, int], Outcome], Exception | None]":
    """The outcomes, and the first error, if there was one; others are printed."""
    outcomes: dict[tuple[str, int], Outcome] = {}
    errors: list[Exception] = []

    def finished(cell: "Cell", outcome: "Outcome") -> str:
        if outcome.error is None:
            outcomes[cell.key] = outcome
        else:
            errors.append(outcome.error)
        score, (model, seed) = outcome.score("test"), cell.key
        status = outcome.status if score is None else f"test {outcome.result['selection']} {score:.4f}"
        return f"{model}, seed {seed}: {status}"

    try:
        console.run_cells(comparison.cells, len(comparison.cells), jobs, finished, force)
    except ChildProcessError as error:
        errors.append(error)
    for other in errors[1:]:
        console.error(other)
    return outcomes, errors[0] if errors else None


def _print_table(comparison: "Comparison", table: "ComparisonTable") -> None:
    names = ("model", f"test {table.metric}", "val", "parameters", "s/run", "against the best")
    rows = [
        (
            row.model, _scores(row), "" if row.val_mean is None else f"{row.val_mean:.4f}",
            "" if row.parameters is None else f"{row.parameters:,}",
            "" if row.seconds is None else f"{row.seconds:.1f}",
            _against_best(row, table, comparison.vary_split),
        )
        for row in table.rows
    ]  # fmt: skip
    rows += [(name, f"{score:.4f}", "", "", "", "no learning") for name, score in table.trivial.items()]
    # on a narrow terminal names and words are broken, numbers are not
    columns = (Column(name, no_wrap=name not in (names[0], names[-1])) for name in names)
    console.stdout.print()
    console.print_title(f"mean and deviation over {console.counted(len(comparison.seeds), 'seed')}")
    console.stdout.print(console.plain_table(*columns, rows=rows))
    if any(row.p_value is not None for row in table.rows):
        kind = f"paired t-test over {comparison.varied}s" if comparison.vary_split else "Welch's t-test over seeds"
        shared = f"0.05 shared out over {console.counted(len(table.rows) - 1, 'comparison')}"
        console.stdout.print(f"differs: p < {table.level:.3g} ({kind}; {shared})")


def _scores(row: "Row") -> str:
    if row.mean is None:
        return "diverged" if row.diverged else ""
    deviation = "" if row.deviation is None else f" ± {row.deviation:.4f}"
    return f"{row.mean:.4f}{deviation}" + (f" ({row.diverged} diverged)" if row.diverged else "")


def _against_best(row: "Row", table: "ComparisonTable", paired: bool) -> str:
    if row.mean is None:
        return ""
    if not row.learnt:
        return "no better than chance"
    best = table.best
    if best is None or row.model == best.model:
        return "best"
    differs = table.differs(row)
    if differs is None:
        enough = paired and min(len(row.scores), len(best.scores)) > 1
        return "too few seeds in common with the best to tell" if enough else "too few seeds to tell"
    return f"{'differs' if differs else 'within noise'}, p = {row.p_value:.2g}"


def _as_json(comparison: "Comparison", table: "ComparisonTable") -> dict[str, Any]:
    from h2hgcn.models import ENCODERS

    first = comparison.first
    models = [
        {
            "model": row.model, "space": str(ENCODERS[row.model].space), "test": row.test, "mean": row.mean,
            "deviation": row.deviation, "validation": row.val, "diverged": row.diverged,
            "better_than_chance": row.learnt, "parameters": row.parameters, "seconds": row.seconds,
            "p_value": row.p_value, "differs": table.differs(row),
        }
        for row in table.rows
    ]  # fmt: skip
    return {
        "dataset": first.graph.name, "task": first.task.name, "protocol": first.task.protocol,
        "seeds": list(comparison.seeds), "vary_split": comparison.vary_split, "metric": table.metric,
        "level": table.level, "best": None if table.best is None else table.best.model,
        "models": models, "trivial": table.trivial,
    }  # fmt: skip
