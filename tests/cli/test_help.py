"""The examples that --help prints run as they stand."""

import inspect
import re
import shlex

import pytest
from runs import write_graphs

from h2hgcn.cli.app import app

COMMANDS = {command.callback.__name__: command.callback for command in app.registered_commands}


def examples_of(command):
    """The commands of the paragraph that starts with "Example", which semicolons part."""
    (paragraph,) = re.findall(r"Examples?: (.+?)(?:\n\n|$)", inspect.getdoc(command), re.DOTALL)
    return [" ".join(example.split()) for example in paragraph.split(";")]


def test_every_command_has_an_example_in_its_help(run):
    assert "Usage" in run("--help").stdout
    for name, command in COMMANDS.items():
        result = run(name, "--help")
        printed = " ".join(result.stdout.split())
        assert result.returncode == 0
        assert all(example in printed for example in examples_of(command))


@pytest.mark.filterwarnings("ignore::h2hgcn.errors.DataWarning")
def test_the_examples_run(run, files, monkeypatch, inline):
    (files / "data").mkdir()
    (files / "labels.csv").write_text((files / "y.csv").read_text())
    (files / "pairs.csv").write_text("source,target\n1,2\n3,50\n")  # of the disease tree
    write_graphs(files / "shapes", 40)
    write_graphs(files / "new-shapes", 3)
    monkeypatch.setenv("HOME", str(files))
    for name, command in COMMANDS.items():  # train comes first, and the others use its runs
        if name in ("push", "pull"):  # test_share.py runs them on a double of the hub
            continue
        for example in examples_of(command):
            program, *arguments = shlex.split(example.replace("~", "$HOME").replace("$HOME", str(files)))
            assert program == "h2hgcn"
            result = run(*arguments)
            assert result.returncode == 0, f"{example}: {result.stderr}"
