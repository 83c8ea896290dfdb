"""What the pages show runs: their Python as it stands, their commands as far as names and options go."""

import re
import shlex
from pathlib import Path

import pytest
import typer

from h2hgcn.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# the code of these is run by tests of their own
ELSEWHERE = {"README.md", "training.md", "explorer.md"}
BLOCKS = [
    pytest.param(code, id=f"{page.stem}-{number}")
    for page in PAGES
    if page.name not in ELSEWHERE
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))
]
COMMANDS = {
    (page.name, line)
    for page in PAGES
    for line in re.findall(r"^ {4,}(?:torchrun .* -m )?(h2hgcn [a-z][^#\n;]*)", page.read_text(), re.MULTILINE)
}


@pytest.mark.filterwarnings("ignore::h2hgcn.datasets.DataWarning")  # they are part of the show
@pytest.mark.parametrize("code", BLOCKS)
def test_python_runs(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "docs", "exec"), {})


def test_commands_and_their_options_are_there():
    assert len(COMMANDS) > 40
    group = typer.main.get_command(app)
    for page, line in sorted(COMMANDS):
        name, *arguments = shlex.split(line)[1:]
        command = group.commands[name]
        with command.make_context(name, arguments):  # reads the arguments, and does nothing
            assert page


def test_links_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#\s]+?)(?:#[^)]*)?\)", page.read_text()):
            if not target.startswith(("http:", "https:", "mailto:")):
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_pages_name_examples_that_are_there():
    for page in PAGES:
        for name in re.findall(r"examples/\w+\.py", page.read_text()):
            assert (ROOT / name).exists(), f"{page.name}: {name}"


@pytest.mark.parametrize(
    ("page", "least"), [("docs/how_it_works.md", 15), ("docs/decisions.md", 10), ("CONTRIBUTING.md", 5)]
)
def test_files_that_a_page_names_are_there(page, least):
    names = re.findall(r"`((?:\w+/)+\w+\.(?:py|mjs|cpp|md|toml))`", (ROOT / page).read_text())
    assert len(names) > least
    for name in names:
        assert (ROOT / name).exists() or (ROOT / "src" / "h2hgcn" / name).exists(), name


def test_settings_of_the_migration_page_are_there():
    settings = (ROOT / "docs" / "settings.md").read_text()
    names = re.findall(r"`(?:task|model|training)\.(\w+)[`=]", (ROOT / "docs" / "migration.md").read_text())
    assert len(names) > 25
    assert [name for name in names if f"| `{name}` |" not in settings] == []
