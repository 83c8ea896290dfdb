"""The commands of the README and of docs/ run as they stand, and so does the Python of docs/training.md."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TRAINING = (ROOT / "docs" / "training.md").read_text()
PAGES = ["README", *(f"docs/{name}" for name in ("quickstart", "training", "data", "comparing"))]
PAGES += [f"docs/tasks/{name}" for name in ("links", "nodes", "graphs", "embedding")]
NAMES = {"n01": "ann", "n02": "bob", "n03": "eve", "new1": "zoe", "new2": "yan"}

# Commands that take minutes or data that have to be downloaded; tests of their own run the like of them.
SKIPPED = {"tune", "reproduce"}
SKIPPED_WORDS = ("--dataset", "runs/tune-", "h2hgcn convert", "--edges big", "runs/RUN", "inspect cora")


def write_tu(folder):
    """Rings and paths of four nodes in TU format."""
    folder.mkdir()
    graphs = [[(4 * g + k + 1, 4 * g + (k + 1) % 4 + 1) for k in range(4 - g % 2)] for g in range(30)]
    lines = {
        "A": [f"{a}, {b}\n{b}, {a}" for edges in graphs for a, b in edges],
        "graph_indicator": [str(g + 1) for g in range(30) for _ in range(4)],
        "graph_labels": [str(g % 2) for g in range(30)],
    }
    for name, text in lines.items():
        (folder / f"MUTAG_{name}.txt").write_text("\n".join(text) + "\n")


@pytest.fixture
def folder(files, train_graphs, learned):
    """The files that the pages name."""
    for path in files.glob("*.csv"):
        path.write_text(re.sub("|".join(NAMES), lambda match: NAMES[match[0]], path.read_text()))
    words = "".join(f"{name},w{len(name) % 3},1\n" for name in NAMES.values() if not name.startswith(("z", "y")))
    (files / "words.csv").write_text(f"id,feature,value\n{words}")
    (files / "nodes.csv").write_text("ann\nbob\n")
    (files / "newpairs.csv").write_text("ann,zoe\nzoe,yan\n")
    (files / "zoe.csv").write_text("source,target\nzoe,ann\nyan,zoe\n")
    (files / "zoex.csv").write_text("id,height,age,size\nzoe,0.1,0.2,0.3\nyan,-1,0,2\n")
    (files / "taxonomy.csv").write_text("parent,child\n" + "".join(f"t{(k - 1) // 3},t{k}\n" for k in range(1, 40)))
    for name in ("folder", "molecules", "moved/molecules"):
        shutil.copytree(learned / "shapes", files / name)
    shutil.copytree(learned / "new", files / "new-molecules")
    shutil.copy(learned / "shapes-y.csv", files / "classes.csv")
    shutil.copy(files / "y.csv", files / "labels.csv")
    write_tu(files / "MUTAG")
    (toml,) = re.findall(r"```toml\n(.*?)```", TRAINING, re.DOTALL)
    (files / "my.toml").write_text(toml)
    return files


@pytest.mark.parametrize("page", PAGES)
def test_commands(page, run, folder, inline):
    text = (ROOT / f"{page}.md").read_text()
    commands = re.findall(r"^    (h2hgcn [^#\n]+)", text, re.MULTILINE)
    assert commands or page == "docs/data"
    for command in commands:
        name, *arguments = shlex.split(command)[1:]
        if name in SKIPPED or any(word in command for word in SKIPPED_WORDS):
            continue
        if name == "explore" and "--export" not in arguments:  # serves until it is stopped
            continue
        if name == "train" and not {"--config", "--epochs"} & set(arguments):
            arguments += ["--epochs", "2", "--force"]
        if name == "compare":
            arguments += ["--epochs", "1", "--seeds", "1"]
        if name in ("train", "compare") and page != "docs/training" and "--search" not in arguments:
            arguments += ["--search", "none"]
        result = run(name, *arguments)
        assert result.returncode == 0, f"{command}: {result.stderr}"


@pytest.mark.filterwarnings("ignore::h2hgcn.errors.DataWarning")
def test_python(folder, monkeypatch):
    monkeypatch.chdir(folder)
    blocks = re.findall(r"```python\n(.*?)```", TRAINING, re.DOTALL)
    assert len(blocks) == 5
    for code in blocks:
        exec(compile(code, "docs/training.md", "exec"), {})
