"""What ``h2hgcn tune`` prints and writes when its trials are over."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Column, Table

from h2hgcn.cli.output import counted, print_title, stdout

if TYPE_CHECKING:
    from h2hgcn.experiments.tuning import TrialResult, Tuning

# Trials that the closing table shows.
_SHOWN = 5


def write_best(tuning: "Tuning", results: "list[TrialResult]", metric: str) -> Path | None:
    """The file of the best settings; None if no trial has a score."""
    from h2hgcn.experiments.chosen_settings import write_settings

    if not results or results[0].score is None:
        return None
    path = tuning.folder / "best.toml"
    seeds = f"seed {tuning.seeds[0]}" if tuning.num_seeds == 1 else f"seeds {tuning.seeds[0]} to {tuning.seeds[-1]}"
    trials = counted(len(results), "trial")
    how = f"chosen by h2hgcn tune: validation {metric} {results[0].score:.4f}, the best of {trials}, {seeds}"
    write_settings(path, tuning, results[0], how)
    return path


def print_results(results: "list[TrialResult]", metric: str, best: Path | None) -> None:
    shown = Table(Column("trial", no_wrap=True), Column(f"validation {metric}", no_wrap=True), "settings", box=None)
    shown.header_style, shown.pad_edge = "bold", False
    for result in results[:_SHOWN]:
        shown.add_row(str(result.number), score_of(result), _words(result))
    stdout.print()
    print_title(f"the best of {counted(len(results), 'trial')} (trial 0: the settings before)")
    stdout.print(shown)
    if best is not None:
        stdout.print(f"\n{best}  the settings of the first; train with --config {best}", soft_wrap=True)


def score_of(result: "TrialResult") -> str:
    return "failed" if result.score is None else f"{result.score:.4f}"


def _words(result: "TrialResult") -> str:
    pairs = ((name, value) for options in result.settings.values() for name, value in options.items())
    return ", ".join(f"{name}={value:.3g}" if isinstance(value, float) else f"{name}={value}" for name, value in pairs)


def as_json(results: "list[TrialResult]", metric: str) -> dict[str, Any]:
    trials = [{"trial": result.number, "validation": result.score, "settings": result.settings} for result in results]
    return {"metric": metric, "trials": trials}
