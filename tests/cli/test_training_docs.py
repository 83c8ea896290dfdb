"""What docs/training.md shows runs as it stands."""

import re
import shlex
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[2] / "docs" / "training.md").read_text()
NAMES = {"n01": "ann", "n02": "bob", "n03": "eve", "new1": "zoe", "new2": "yan"}


@pytest.fixture
def folder(files):
    """The files that the page names."""
    for path in files.glob("*.csv"):
        path.write_text(re.sub("|".join(NAMES), lambda match: NAMES[match[0]], path.read_text()))
    (files / "nodes.csv").write_text("ann\nbob\n")
    (files / "newpairs.csv").write_text("ann,zoe\nzoe,yan\n")
    (files / "zoe.csv").write_text("source,target\nzoe,ann\nyan,zoe\n")
    (files / "zoex.csv").write_text("id,height,age,size\nzoe,0.1,0.2,0.3\nyan,-1,0,2\n")
    (toml,) = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    (files / "my.toml").write_text(toml)
    return files


def test_commands(run, folder):
    commands = re.findall(r"^    (h2hgcn [^#\n]+)", TEXT, re.MULTILINE)
    assert len(commands) > 12
    for command in commands:
        arguments = shlex.split(command)[1:]
        if "--dataset" in arguments:  # has to be downloaded
            continue
        if arguments[0] == "train" and not {"--config", "--epochs"} & set(arguments):
            arguments += ["--epochs", "2"]
        result = run(*arguments)
        assert result.returncode == 0, f"{command}: {result.stderr}"


@pytest.mark.filterwarnings("ignore::h2hgcn.errors.DataWarning")
def test_python(folder, monkeypatch):
    monkeypatch.chdir(folder)
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert len(blocks) == 5
    for code in blocks:
        exec(compile(code, "docs/training.md", "exec"), {})
