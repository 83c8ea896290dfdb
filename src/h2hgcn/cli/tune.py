"""``h2hgcn tune``: settings chosen on validation data."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Column

from h2hgcn.cli import console
from h2hgcn.cli import options as flags

if TYPE_CHECKING:
    from h2hgcn.experiments.config import Experiment
    from h2hgcn.experiments.runner import Cell, Outcome
    from h2hgcn.experiments.tune import Study, TrialResult, Tuning

# Trials that the closing table shows.
_SHOWN = 5


@flags.with_flags(given=("task", "model", "epochs", "dim", "protocol"), graph=flags.GRAPH)
def tune(
    given: flags.Given,
    graph: flags.Given,
    data: flags.DataFolder = None,
    trials: Annotated[int, typer.Option(min=1, help="Settings to try, all in all.")] = 30,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each setting; their mean counts.")] = 1,
    seed: Annotated[int | None, typer.Option(help="The first seed, of the runs and of the search.")] = None,
    settings: flags.Settings = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file of settings to start from.")] = None,
    space: Annotated[Path | None, typer.Option(help="A TOML file of what is searched. Default: our own.")] = None,
    search: flags.Search = "auto",
    out: Annotated[Path | None, typer.Option(help="Folder of the study. Default: runs/tune-DATA-TASK-MODEL.")] = None,
    jobs: flags.Jobs = None,
    json: flags.Json = False,
) -> None:
    """Choose settings by the validation metric. Test metrics play no part in the choice and are not kept.

    The first trial has the settings that h2hgcn train chooses; Optuna proposes the others. The best go to best.toml,
    for --config of h2hgcn train and h2hgcn compare. Run the same command again to resume, with more --trials to
    continue.

    Example: h2hgcn tune --trials 2 --epochs 5 --jobs 1
    """
    with console.starting():
        from h2hgcn.experiments.config import read_layer, sections_of
        from h2hgcn.experiments.tune import open_study, plan_tuning
    sections = sections_of(graph, settings, seed, **given)
    files = () if config is None else (read_layer(config),)
    tuning, base, opened, metric = plan_tuning(sections, search, files, space, seeds, out, data)
    tuning = _with_start(tuning, base, opened)
    with open_study(tuning) as study:
        console.tell(
            f"{base.model_name} for {base.task.name} on {base.graph.name}, {base.task.protocol} split, "
            f"{console.counted(trials, 'trial')} of {console.counted(seeds, 'run')} each, to {tuning.folder}"
        )
        _run(study, trials, seeds, jobs)
        results = study.results
        best = _write_best(tuning, results, metric)
    if json:
        found = [{"trial": one.number, "validation": one.score, "settings": one.settings} for one in results]
        console.print_json({"metric": metric, "trials": found})
    elif results:
        _print_results(results, metric, best)
    if len(results) < trials:
        console.stop(f"{len(results)} of {trials} trials")
    if best is None:
        console.error("every trial failed; try other settings, such as a smaller learning rate")
        raise typer.Exit(1)


def _with_start(tuning: "Tuning", base: "Experiment", data: Any) -> "Tuning":
    """A study whose first trial has the best of the candidates that h2hgcn train races, if there are any."""
    from h2hgcn.experiments.search import SearchStopped, choose_settings, settings_layer

    progress = console.TrainingProgress(0)
    try:
        with console.StopAfterEpoch() as signals, progress:
            chosen, found = choose_settings(
                base, data, tuning.folder / ".start", on_search=progress.search, should_stop=signals.wanted
            )
    except SearchStopped:
        console.stop("while choosing the settings of the first trial")
    if found is None:
        return tuning
    progress.chosen(found)
    return replace(tuning, files=(settings_layer(chosen, found.summary), *tuning.files))


def _run(study: "Study", trials: int, seeds: int, jobs: int | None) -> None:
    """Runs the trials that are missing."""

    def finished(cell: "Cell", outcome: "Outcome") -> str:
        result = study.finish(cell, outcome)
        if result is not None and result.why:
            console.note(f"trial {result.number} failed: {result.why}")
        return "" if result is None else f"trial {result.number}: {_score(result)}"

    missing = trials - len(study.results)
    if missing < 0:
        there = console.counted(trials - missing, "trial")
        console.tell(f"{there} are there already, more than --trials {trials}")
    if missing > 0:
        console.run_cells(study.cells(trials), missing * seeds, jobs, finished)


def _write_best(tuning: "Tuning", results: "list[TrialResult]", metric: str) -> Path | None:
    """The file of the best settings; None if no trial has a score."""
    from h2hgcn.experiments.tune import write_settings

    if not results or results[0].score is None:
        return None
    path = tuning.folder / "best.toml"
    seeds = f"seed {tuning.seeds[0]}" if tuning.num_seeds == 1 else f"seeds {tuning.seeds[0]} to {tuning.seeds[-1]}"
    trials = console.counted(len(results), "trial")
    how = f"chosen by h2hgcn tune: validation {metric} {results[0].score:.4f}, the best of {trials}, {seeds}"
    write_settings(path, tuning, results[0], how)
    return path


def _print_results(results: "list[TrialResult]", metric: str, best: Path | None) -> None:
    columns = (Column("trial", no_wrap=True), Column(f"validation {metric}", no_wrap=True), "settings")
    rows = ((str(result.number), _score(result), _words(result)) for result in results[:_SHOWN])
    console.stdout.print()
    trials = console.counted(len(results), "trial")
    console.print_title(f"the best of {trials} (trial 0: the settings before)")
    console.stdout.print(console.plain_table(*columns, rows=rows))
    if best is not None:
        console.stdout.print(f"\n{best}  the settings of the first; train with --config {best}", soft_wrap=True)


def _score(result: "TrialResult") -> str:
    return "failed" if result.score is None else f"{result.score:.4f}"


def _words(result: "TrialResult") -> str:
    pairs = ((name, value) for options in result.settings.values() for name, value in options.items())
    return ", ".join(f"{name}={value:.3g}" if isinstance(value, float) else f"{name}={value}" for name, value in pairs)
