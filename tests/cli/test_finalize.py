"""``h2hgcn finalize`` and ``train --final``: the final fit, and who uses it."""

import json

import pytest

GRAPH = ("--edges", "my.csv", "--features", "x.csv", "--search", "none")


def test_a_run_and_its_final_fit(run, files):
    command = ("train", *GRAPH, "--epochs", 4, "--out", "r", "--final")
    result = run(*command, "--json")
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)
    assert told["final"] == "r/final"
    assert set(told["metrics"]) == {"val", "test"}
    assert json.loads((files / "r" / "final" / "result.json").read_text())["metrics"] == {}
    again = run(*command)
    assert again.returncode == 0
    assert "finished already, in r/final" in again.stderr
    assert "r/final  the final fit on all data" in again.stdout
    using = "using the final fit in r/final; --no-final uses the run itself\n"
    answers = {}
    for option in ((), ("--no-final",)):
        result = run("predict", "r", "pairs.csv", "--json", *option)
        answers[option] = json.loads(result.stdout)
        assert (using in result.stderr) is (not option)
        result = run("recommend", "r", "--node", "n01", "-k", 2, *option)
        assert (using in result.stderr) is (not option)
        result = run("embed", "r", "--out", f"points{len(option)}.csv", *option)
        assert (using in result.stderr) is (not option)
        result = run("explore", "r", "--export", f"page{len(option)}.html", *option)
        assert (using in result.stderr) is (not option)
        assert ("by h2h-gcn, final fit" in (files / f"page{len(option)}.html").read_text()) is (not option)
    assert answers[()] != answers["--no-final",]
    assert answers[()] == json.loads(run("predict", "r/final", "pairs.csv", "--json").stdout)
    assert (files / "points0.csv").read_text() != (files / "points1.csv").read_text()
    assert json.loads(run("evaluate", "r", "--json").stdout)["metrics"] == told["metrics"]
    final = json.loads(run("evaluate", "r/final", "--json").stdout)
    assert (final["metrics"], final["of_run"]["metrics"]) == ({}, told["metrics"])
    assert "Nothing was held out. Metrics of its run" in run("evaluate", "r/final").stdout
    page = (files / "r" / "final" / "report.html").read_text()
    assert "Of the run that this final fit comes from" in page
    assert "nothing was held out to measure it on" in page
    assert "Of the selected model" not in page
    assert str((files / "r").resolve()) in page


def test_a_run_that_is_finalized_later(run, files):
    for out in ("a", "b"):
        assert run("train", *GRAPH, "--epochs", 3, "--out", out).returncode == 0
    told = json.loads(run("finalize", "a", "--json").stdout)
    assert told["folder"] == "a/final"
    result = run("finalize", "b", "--out", "elsewhere")
    assert result.returncode == 0, result.stderr
    assert "Nothing was held out. Metrics of its run" in result.stdout
    assert "using the final fit" not in run("predict", "b", "pairs.csv").stderr
    weights = [(files / folder / "model.safetensors").read_bytes() for folder in ("a/final", "elsewhere")]
    assert len(weights[0]) == len(weights[1])
    longer = run("train", *GRAPH, "--epochs", 5, "--out", "a")
    assert longer.returncode == 0, longer.stderr
    assert "resuming after epoch 3" in longer.stderr


def test_a_collection(run, shapes, files):
    assert (
        run("train", "--dataset", "shapes", "--epochs", 2, "--out", "g", "--search", "none", "--final").returncode == 0
    )
    result = run("predict", "g")
    assert result.returncode == 0, result.stderr
    assert "using the final fit in g/final" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "--edges", "my.csv", "--task", "embed", "--final"), "--final: --task embed holds nothing out"),
        (("train", *GRAPH, "--set", "task.val=0"), "--final (final=True) afterwards trains on all links"),
        (("train", *GRAPH, "--set", "task.final=true"), "task.final holds nothing out to choose settings and epochs"),
        (("finalize", "my.csv"), "my.csv is not a folder; give the folder of a run"),
    ],
)
def test_what_cannot_be_finalized(run, files, arguments, message):
    result = run(*arguments)
    assert result.returncode == 2
    assert message in result.stderr


def test_a_run_that_is_not_finished(run, files, monkeypatch):
    from h2hgcn.cli.console import StopAfterEpoch

    with monkeypatch.context() as patch:
        patch.setattr(StopAfterEpoch, "wanted", lambda self: True)
        assert run("train", *GRAPH, "--epochs", 3, "--out", "r", "--final").returncode == 1
    result = run("finalize", "r")
    assert result.returncode == 2
    assert "holds a run that is not finished" in result.stderr
