"""``h2hgcn reproduce``: what is shown, what is left to other processes, and mistakes."""

import os

import pytest

from h2hgcn.cli.console import stdout
from h2hgcn.experiments.reproduce import paper_table, record_of, runs_of
from h2hgcn.experiments.runner import Outcome, Records
from h2hgcn.training.folder import BusyFolderError

ASKED = ("reproduce", "table4", "--cells", "dim3", "--models", "hgcn", "--seeds", 2)


@pytest.fixture
def runs():
    return runs_of(paper_table("table4"), "legacy", 2, ("dim3",), ("hgcn",))


def finished(score=0.7):
    metrics = {"val": {"accuracy": score}, "test": {"accuracy": score}}
    result = {
        "selection": "accuracy", "metrics": metrics, "trivial": {}, "best_epoch": 1, "epochs": 2, "seconds": 3.0,
        "parameters": 4,
    }  # fmt: skip
    config = {name: {} for name in ("data", "task", "model", "training", "versions")}
    return Outcome("finished", result, config=config)


def folder_of(run):
    return f"{run.digest}-seed{run.seed}"


def test_what_another_process_trains_is_left_to_it(run, tmp_path, inline, runs):
    inline |= {folder_of(runs[0]): BusyFolderError("another process trains in it"), folder_of(runs[1]): finished()}
    result = run(*ASKED)
    assert result.returncode == 1  # not all that was asked for is there
    assert "1 run left to another process" in result.stderr
    assert "70.0 (1) / 70.8" in result.stdout
    inline[folder_of(runs[0])] = finished(0.8)
    assert "75.0 ± 7.1 (2) / 70.8" in run(*ASKED).stdout
    assert "all of these runs are finished" in run(*ASKED).stderr


def test_other_errors_end_the_command(run, inline, runs):
    inline[folder_of(runs[0])] = OSError(28, "No space left on device")
    result = run(*ASKED)
    assert result.returncode == 1
    assert "no space left on device" in result.stderr


def test_show_shows_what_was_asked_for(run, tmp_path, runs):
    Records(tmp_path / "results" / "table4.jsonl").add(record_of(runs[0], finished()))
    shown = run(*ASKED, "--show")
    assert "70.0 (1) / 70.8" in shown.stdout
    assert "H2H-GCN" not in shown.stdout
    assert "missing" not in shown.stdout


def test_lines_that_were_cut_short_are_told_of(run, tmp_path, runs):
    records = Records(tmp_path / "results" / "table4.jsonl")
    for number in (0, 1):
        records.add(record_of(runs[number], finished()))
    whole = records.path.read_bytes()
    assert "cannot be used" not in run(*ASKED, "--show").stderr
    records.path.write_bytes(whole[:-20])
    for arguments in ((*ASKED, "--show"), ("reproduce", "--write", str(tmp_path / "page.md"), "--results", "results")):
        told = run(*arguments)
        assert told.returncode == 0
        assert "table4.jsonl has 1 line that cannot be used (2)" in " ".join(told.stderr.split())
    assert "70.0 (1) / 70.8" in run(*ASKED, "--show").stdout
    records.add({"of": "something else"})
    told = run(*ASKED, "--show")
    assert "table4.jsonl has 2 lines that cannot be used (2, 3)" in " ".join(told.stderr.split())


def test_what_another_process_has_recorded_meanwhile_is_not_written_twice(run, tmp_path, inline, runs):
    records = Records(tmp_path / "results" / "table4.jsonl")

    class Late(Outcome):
        """One that comes when another process has just recorded the run."""

        def __getattribute__(self, name):
            if name == "error" and not list(records):
                records.add(record_of(runs[0], finished(0.6)))
            return super().__getattribute__(name)

    outcome = finished()
    inline |= {
        folder_of(runs[0]): Late(outcome.status, outcome.result, config=outcome.config),
        folder_of(runs[1]): finished(),
    }
    assert run(*ASKED).returncode == 0
    assert [record["seed"] for record in records] == [0, 1]


def test_columns_that_do_not_fit_go_on_below(run, monkeypatch):
    for width, groups in ((80, 2), (400, 1)):
        monkeypatch.setattr(stdout, "_width", width)
        lines = run("reproduce", "table4", "--show", "--results", "none").stdout.splitlines()
        assert max(map(len, lines)) <= width
        assert sum(line.startswith("HGNN ") for line in lines) == groups
        assert sum(line.count("missing / ") for line in lines) == 20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("table4", "--show", "--cells", "dim4"), "table4 has no column 'dim4'"),
        (("table4", "--show", "--models", "hgnc"), "table4 has no row 'hgnc'; did you mean 'hgnn'"),
        (("--show", "--protocol", "lagacy"), "is not one of 'legacy', 'clean'"),
        (("--show", "--cells", "dim3"), "say of which table they are"),
        (("table9",), "'table9' is not one of 'table1', 'table2', 'table3', 'table4', 'ablations'"),
        (("--write", "."), ". is a folder; name a file"),
        (("--write", "folder/"), "folder is a folder; name a file"),
        (("--write", "diary.md"), "diary.md is there already, and is no page of results"),
        (("--write", "new.md", "--results", "none"), "none has no records of any table, so new.md is not written"),
        (("--write", "pipe"), "pipe is no file that a page could be written to"),
        (("table4", "--show", "--results", "diary.md"), "--results diary.md is a file; name the folder"),
        (("table2", "--protocol", "clean"), "table2 has no clean runs"),
        (("ablations", "--cells", "cora-lp", "--models", "no-stem"), "ablations has no legacy runs of these"),
    ],
)
def test_mistakes(run, tmp_path, arguments, message):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "diary.md").write_text("# My days\n", encoding="utf-8")
    result = run("reproduce", *arguments)
    assert result.returncode == 2
    assert message in result.stderr


def test_a_page_is_written_again_but_not_without_records(run, tmp_path, runs):
    Records(tmp_path / "results" / "table4.jsonl").add(record_of(runs[0], finished()))
    for _ in range(2):
        assert run("reproduce", "--write", "page.md").returncode == 0
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "70.0 (1) / 70.8" in page
    assert run("reproduce", "--write", "page.md", "--results", "reslts").returncode == 2
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == page


def test_rows_that_are_named_show_by_every_protocol(run):
    shown = run("reproduce", "table1", "--show", "--protocol", "clean", "--models", "euc", "--cells", "cora-nc,cora-nc")
    assert shown.stdout.count("missing / 23.8") == 1


def test_a_folder_of_records_that_is_not_there_is_said(run):
    result = run("reproduce", "table4", "--show", "--results", "none")
    assert result.returncode == 0
    assert "note: none does not exist, so there are no records" in result.stderr
