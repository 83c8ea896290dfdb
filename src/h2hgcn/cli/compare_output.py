"""The table of ``h2hgcn compare``, for people and as JSON."""

from typing import TYPE_CHECKING, Any

from rich.table import Column, Table

from h2hgcn.cli.output import counted, print_title, stdout

if TYPE_CHECKING:
    from h2hgcn.experiments.comparison import Comparison
    from h2hgcn.experiments.comparison_table import ComparisonTable, Row


def print_table(comparison: "Comparison", table: "ComparisonTable") -> None:
    names = ("model", f"test {table.metric}", "val", "parameters", "s/run", "against the best")
    # on a narrow terminal names and words are broken, numbers are not
    columns = [Column(name, no_wrap=name not in (names[0], names[-1])) for name in names]
    shown = Table(*columns, box=None, header_style="bold", pad_edge=False)
    for row in table.rows:
        shown.add_row(
            row.model, _scores(row), "" if row.val_mean is None else f"{row.val_mean:.4f}",
            "" if row.parameters is None else f"{row.parameters:,}",
            "" if row.seconds is None else f"{row.seconds:.1f}",
            _against_best(row, table, comparison.vary_split),
        )  # fmt: skip
    for name, score in table.trivial.items():
        shown.add_row(name, f"{score:.4f}", "", "", "", "no learning")
    stdout.print()
    print_title(f"mean and deviation over {counted(len(comparison.seeds), 'seed')}")
    stdout.print(shown)
    if any(row.p_value is not None for row in table.rows):
        kind = f"paired t-test over {comparison.varied}s" if comparison.vary_split else "Welch's t-test over seeds"
        shared = f"0.05 shared out over {counted(len(table.rows) - 1, 'comparison')}"
        stdout.print(f"differs: p < {table.level:.3g} ({kind}; {shared})")


def _scores(row: "Row") -> str:
    if row.mean is None:
        return "diverged" if row.diverged else ""
    deviation = "" if row.deviation is None else f" ± {row.deviation:.4f}"
    lost = f" ({row.diverged} diverged)" if row.diverged else ""
    return f"{row.mean:.4f}{deviation}{lost}"


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


def as_json(comparison: "Comparison", table: "ComparisonTable") -> dict[str, Any]:
    first = comparison.first
    return {
        "dataset": first.graph.name,
        "task": first.task.name,
        "protocol": first.task.protocol,
        "seeds": list(comparison.seeds),
        "vary_split": comparison.vary_split,
        "metric": table.metric,
        "level": table.level,
        "best": None if table.best is None else table.best.model,
        "models": [
            {
                "model": row.model, "space": row.space, "test": row.test, "mean": row.mean, "deviation": row.deviation,
                "validation": row.val, "diverged": row.diverged, "better_than_chance": row.learnt,
                "parameters": row.parameters, "seconds": row.seconds, "p_value": row.p_value,
                "differs": table.differs(row),
            }
            for row in table.rows
        ],
        "trivial": table.trivial,
    }  # fmt: skip
