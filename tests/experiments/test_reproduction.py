import json
from dataclasses import replace
from pathlib import Path

import pytest

from h2hgcn.errors import DataError
from h2hgcn.experiments.reproduce import (
    TABLES,
    paper_table,
    record_of,
    runs_of,
    still_unfinished,
    table_scores,
    unfinished,
)
from h2hgcn.experiments.results_page import budget, results_page, shown, table_lines, words_of
from h2hgcn.experiments.runner import Outcome, Records
from h2hgcn.models import ENCODERS
from h2hgcn.tasks import TASKS

CONFIG = {"data": {}, "task": {}, "model": {}, "training": {}, "versions": {}}


def finished(run, score):
    metrics = {"val": {run.column.metric: 0.5}, "test": {run.column.metric: score}}
    result = {
        "selection": run.column.metric, "metrics": metrics, "trivial": {"majority class": 0.3}, "best_epoch": 1,
        "epochs": 2, "seconds": 3.0, "parameters": 4,
    }  # fmt: skip
    return record_of(run, Outcome("finished", result, config=CONFIG, peak_megabytes=5.0))


@pytest.mark.parametrize("name", TABLES)
def test_tables_name_what_there_is(name):
    table = paper_table(name)
    assert {row.model for row in table.rows} <= set(ENCODERS)
    columns = {column.id for column in table.columns}
    for row in table.rows:
        assert {*row.paper, *row.by_column, *row.columns, *row.choices} <= columns
        assert all(table.column(name).folds for name in row.choices)
        assert all(0 < value < 100 for value in row.paper.values())
    for column in table.columns:
        assert column.settings["task"]["name"] in TASKS
        for row in table.rows:
            assert column.settings["task"]["name"] in ENCODERS[row.model].tasks


def test_runs_have_hashes_of_their_settings():
    table = paper_table("table4")
    runs = runs_of(table, "legacy", 2, ("dim3", "dim5"), ("h2h-gcn", "hgcn"))
    assert len(runs) == len({run.key for run in runs}) == 8
    assert len({run.digest for run in runs}) == 4  # the seed is no setting
    clean = runs_of(table, "clean", 2, ("dim3",), ("hgcn",))
    assert [run.flags["task"]["split_seed"] for run in clean] == [1234, 1235]
    folds = runs_of(paper_table("table3"), "legacy", 1, ("enzymes",), ("gin",))
    assert [run.fold for run in folds] == list(range(10))


def test_settings_of_single_columns_go_before_those_of_the_row():
    table = paper_table("table4")
    row = replace(table.row("hgcn"), settings={"training": {"lr": 0.5}}, by_column={"dim3": {"training": {"lr": 0.25}}})
    runs = runs_of(replace(table, rows=(row,)), "legacy", 1, ("dim3", "dim5"))
    assert [run.flags["training"]["lr"] for run in runs] == [0.25, 0.5]


def test_rows_that_are_not_for_a_protocol_run_and_show_if_they_are_named():
    table = paper_table("table1")
    asked = {run.row.name for run in runs_of(table, "clean", 1, ("cora-lp",))}
    assert asked == {"h2h-gcn", "hgcn", "gcn", "gat", "mlp", "hnn"}
    (named,) = runs_of(table, "clean", 1, ("cora-lp",), ("euc",))
    titles = {line[0] for line in table_lines(table, [finished(named, 0.8)], "clean")}
    assert "EUC" in titles
    assert "HYP" not in titles
    assert "HYP" in {line[0] for line in table_lines(table, [], "legacy")}


def test_only_the_papers_protocol_is_held_against_the_paper():
    table = paper_table("table1")
    for protocol, said in (("legacy", True), ("clean", False)):
        (run,) = runs_of(table, protocol, 1, ("cora-lp",), ("h2h-gcn",))
        (sentence,) = words_of(table_scores(table, [finished(run, 0.9)], protocol))
        assert ("below the paper's" in sentence) == said


def test_other_data_than_the_papers_are_not_held_against_it():
    table = paper_table("table1")
    (run,) = runs_of(table, "legacy", 1, ("disease-nc",), ("h2h-gcn",))
    (sentence,) = words_of(table_scores(table, [finished(run, 0.5)], "legacy"))
    assert "H2H-GCN has 50.0; the paper's 90.3 is of another task." in sentence


def test_budgets_come_from_how_settings_were_chosen():
    table = paper_table("table1")
    cells = {("h2h-gcn", "cora-lp"): "40 + 80 tune, 15 hand", ("gcn", "pubmed-lp"): "as Cora LP"}
    for (row, column), said in cells.items():
        assert budget(table.row(row).chosen_for(table.column(column), "legacy")) == said
    assert budget(table.row("gcn").chosen_for(table.column("pubmed-lp"), "clean")) == "5 tune"
    (dim3, *_, dim128), ours = paper_table("table4").columns, paper_table("table4").row("h2h-gcn")
    assert [budget(ours.chosen_for(column, "legacy")) for column in (dim3, dim128)] == ["24 tune", "30 tune, 9 hand"]
    ablations = paper_table("ablations")
    assert not ablations.row("no-stem").chosen_for(ablations.columns[0], "legacy")


def test_what_was_tried_is_told_of_a_number_that_was_not_reached():
    table = paper_table("table4")
    for score, said in ((0.7, True), (0.9, False)):
        runs = runs_of(table, "legacy", 1, ("dim3", "dim5"), ("h2h-gcn",))
        first, second = words_of(table_scores(table, [finished(run, score) for run in runs], "legacy"))
        assert ("Tried: 24 trials of `h2hgcn tune`, 2 seeds each." in first) == said
        assert ("Tried: as for 3." in second) == said


@pytest.mark.parametrize(("score", "said"), [(0.45, True), (0.55, False)])
def test_scores_below_chance_are_called_so(score, said):
    table = paper_table("table1")
    (run,) = runs_of(table, "legacy", 1, ("disease-lp-10",), ("h2h-gcn",))
    (sentence,) = words_of(table_scores(table, [finished(run, score)], "legacy"))
    assert ("Below chance (50): H2H-GCN." in sentence) == said


def test_a_run_of_two_protocols_counts_for_both():
    """The generated tree has the same split by both, for the first seed."""
    table = paper_table("table1").part(("disease-nc-generated",), ("hyp",))
    legacy, clean = (runs_of(table, protocol, 1)[0] for protocol in ("legacy", "clean"))
    assert legacy.key == clean.key
    for run in (legacy, clean):
        for protocol in ("legacy", "clean"):
            assert list(table_scores(table, [finished(run, 0.5)], protocol).scores) == [("hyp", "disease-nc-generated")]


def test_a_row_has_no_runs_of_a_protocol_it_is_not_for_that_were_asked_for_by_another():
    table = paper_table("table1")
    for protocol, rows in (("legacy", []), ("clean", ["euc"])):
        (run,) = runs_of(table, protocol, 1, ("disease-nc-generated",), ("euc",))
        scores = table_scores(table, [finished(run, 0.5)], "clean")
        assert [name for name, _ in scores.scores] == rows


def test_folds_that_are_missing_are_told_and_not_compared():
    table = paper_table("table3")
    ours, other = (runs_of(table, "legacy", 1, ("enzymes",), (name,)) for name in ("h2h-gcn", "gin"))
    records = [finished(run, 0.5) for run in (*ours[:9], *other)]
    (sentence,) = words_of(table_scores(table, records, "legacy"))
    assert sentence == "ENZYMES: H2H-GCN has 50.0 on 9 of 10 folds; the others are missing."
    records = [finished(run, 0.5) for run in (*ours, *other[:9])]
    (sentence,) = words_of(table_scores(table, records, "legacy"))
    assert "best other row" not in sentence


def test_folds_and_their_runs_are_counted_apart():
    table = paper_table("table3")
    runs = [run for run in runs_of(table, "legacy", 3, ("enzymes",), ("gin",)) if run.fold in (0, 1)]
    (score,) = table_scores(table, [finished(run, 0.5) for run in runs], "legacy").scores.values()
    assert shown(score) == "50.0 ± 0.0 (2 folds, 6 runs)"


def test_what_is_recorded_is_not_run_again(tmp_path):
    records = Records(tmp_path / "table4.jsonl")
    runs = runs_of(paper_table("table4"), "legacy", 2, ("dim3",), ("hgcn",))
    assert unfinished(runs, records) == runs
    records.add(finished(runs[0], 0.7))
    assert unfinished(runs, records) == runs[1:]
    records.add(record_of(runs[1], Outcome("diverged", {}, "the loss is nan")))
    assert unfinished(runs, records) == []


def test_scores_are_means_in_per_cent_of_the_settings_that_hold(tmp_path):
    table = paper_table("table4")
    runs = runs_of(table, "legacy", 3, ("dim3",), ("hgcn",))
    records = [finished(run, score) for run, score in zip(runs, (0.7, 0.72, 0.74), strict=True)]
    records.append(records[0] | {"hash": "of other settings", "metrics": {"test": {"accuracy": 0.1}}})
    records[1] |= {"seconds": 9000.0, "peak_megabytes": 8.0}  # on a machine that was put to sleep
    score = table_scores(table, records, "legacy").scores["hgcn", "dim3"]
    assert score.mean == pytest.approx(72)
    assert score.deviation == pytest.approx(2)
    assert len(score.values) == 3
    assert (score.seconds, score.megabytes) == (3.0, 8.0)
    for record in records:
        Records(tmp_path / "table4.jsonl").add(record)
    lines = table_lines(table, records, "legacy")
    assert next(line for line in lines if line[0] == "HGCN")[:3] == ["HGCN", "72.0 ± 2.0 (3) / 70.8", "missing / 75.4"]
    assert any(line[0] == "no learning: majority class" for line in lines)
    page = results_page(tmp_path)
    assert "| HGCN `hgcn` | 72.0 ± 2.0 (3) / 70.8 |" in page
    assert "## Table 1" not in page  # of which there are no records


def test_a_run_that_two_processes_carried_out_counts_once():
    table = paper_table("table4")
    run, other = runs_of(table, "legacy", 2, ("dim3",), ("hgcn",))
    records = [finished(run, 0.7), finished(run, 0.7), finished(other, 0.8)]
    assert table_scores(table, records, "legacy").scores["hgcn", "dim3"].values == (70.0, 80.0)


def test_what_another_process_has_recorded_meanwhile_is_not_begun(tmp_path):
    records = Records(tmp_path / "table4.jsonl")
    runs = runs_of(paper_table("table4"), "legacy", 3, ("dim3",), ("hgcn",))
    begun = still_unfinished(runs, records)
    assert next(begun) == runs[0]
    records.add(finished(runs[1], 0.7))
    assert list(begun) == runs[2:]


def test_lines_that_lack_something_are_left_out(tmp_path):
    table = paper_table("table4")
    (run,) = runs_of(table, "legacy", 1, ("dim3",), ("hgcn",))
    whole = finished(run, 0.7)
    records = Records(tmp_path / "table4.jsonl")
    wrong = (
        {"seed": "0"}, {"seed": -5}, {"seed": 10**8}, {"fold": "first"}, {"seconds": None}, {"peak_megabytes": "many"},
        {"metrics": {}}, {"metrics": {"test": {"accuracy": None}}}, {"metrics": {"test": {"accuracy": float("nan")}}},
        {"trivial": [1]}, {"selection": "auc"}, {"selection": ["accuracy"]}, {"metrics": {"test": {"accuracy": 0.7}}},
    )  # fmt: skip
    with (tmp_path / "table4.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(line)}\n" for line in ({"seed": 0}, *({**whole, **part} for part in wrong)))
    assert unfinished([run], records) == [run]
    assert "## Table 4" not in results_page(tmp_path)
    records.add(whole)
    assert "| HGCN `hgcn` | 70.0 (1) / 70.8 |" in results_page(tmp_path)


def test_cells_that_diverged_say_so():
    table = paper_table("table4")
    runs = runs_of(table, "legacy", 2, ("dim3",), ("hgcn",))
    records = [record_of(run, Outcome("diverged", {}, "the loss is nan")) for run in runs]
    lines = table_lines(table, records, "legacy", ["dim3"], ["hgcn"])
    assert lines[1:] == [["HGCN", "diverged (2) / 70.8"]]


def test_what_needs_no_learning_is_that_of_the_settings_that_hold():
    table = paper_table("table4")
    (run,) = runs_of(table, "legacy", 1, ("dim3",), ("hgcn",))
    old = finished(run, 0.7) | {"hash": "of other settings", "trivial": {"majority class": 0.9}}
    assert table_scores(table, [old, finished(run, 0.7)], "legacy").trivial["dim3"] == {"majority class": 30.0}


def test_folds_are_averaged_over_seeds_first():
    table = paper_table("table3")
    runs = runs_of(table, "legacy", 2, ("enzymes",), ("gin",))
    records = [finished(run, 0.5 + 0.01 * run.fold + 0.1 * run.seed) for run in runs]
    score = table_scores(table, records, "legacy").scores["gin", "enzymes"]
    assert len(score.values) == 10
    assert score.mean == pytest.approx(59.5)
    assert score.deviation == pytest.approx(3.0277, abs=1e-3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("legacy", 0), "--seeds 0"),
        (("lagacy", 1), "did you mean 'legacy'"),
        (("legacy", 1, ("dim4",)), "table4 has no column 'dim4'"),
        (("legacy", 1, (), ("hgnc",)), "table4 has no row 'hgnc'"),
    ],
)
def test_what_is_not_there(arguments, message):
    with pytest.raises(DataError, match=message):
        runs_of(paper_table("table4"), *arguments)


def test_tables_that_are_not_there():
    with pytest.raises(DataError, match="there is no 'table5'"):
        paper_table("table5")


def test_variants_that_are_what_was_chosen_share_its_runs():
    table = paper_table("ablations")
    asked = ("h2h-gcn", "symmetric", "uniform", "linear")
    runs = runs_of(table, "legacy", 1, ("cora-lp",), asked)
    assert [run.row.name for run in runs] == ["h2h-gcn", "symmetric", "uniform"]  # a classifier needs classes
    chosen, symmetric, uniform = (run.digest for run in runs)
    assert (chosen == symmetric) != (chosen == uniform)
    lines = {line[0]: line[3] for line in table_lines(table, [finished(runs[0], 0.9)], "legacy")}
    assert lines["as tuned"] == "90.0 (1)"
    assert sorted(lines[table.row(name).title] for name in asked[1:]) == ["", "90.0 (1)", "missing"]


def test_the_page_of_results_is_what_the_records_say():
    """Nothing on it is typed by hand."""
    root = Path(__file__).parents[2]
    if not (root / "docs" / "results.md").exists():
        pytest.skip("the package was installed without its documentation")
    assert (root / "docs" / "results.md").read_text(encoding="utf-8") == results_page(root / "results")
