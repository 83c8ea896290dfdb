"""The notebooks were executed as they stand, and their pages show them; python docs/make_notebooks.py."""

import runpy
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="notebooks need nbformat: pip install nbclient")
DOCS = Path(__file__).parents[2] / "docs"
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))


def test_there_is_one_for_each_kind_of_person():
    assert [path.stem for path in NOTEBOOKS] == ["engineer", "practitioner", "researcher"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_was_executed_from_top_to_bottom(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert all(output.output_type != "error" for cell in cells for output in cell.outputs)
    assert sum(bool(cell.outputs) for cell in cells) >= len(cells) - 1
    page_of = runpy.run_path(str(DOCS / "make_notebooks.py"))["page_of"]
    assert path.with_suffix(".md").read_text() == page_of(notebook)


@pytest.mark.filterwarnings("ignore")  # notes on data; the compiler's own deprecations
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_code_of_a_notebook_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            exec(compile(cell.source, path.name, "exec"), names)
