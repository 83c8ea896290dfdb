"""The code in the README runs as it stands, and its table of results is that of docs/results.md."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
EUCLIDEAN = {
    name: name.upper() for name in ("euc", "euc-mixed", "mlp", "gcn", "gat", "sgc", "gin", "ecc", "dgcnn", "diffpool")
}
EUCLIDEAN |= {"sage": "GraphSAGE", "diffpool": "DiffPool", "fingerprint": "no edges"}
COLUMNS = {
    "table 1": ("disease-lp", "disease-nc", "airport-lp", "airport-nc", "pubmed-lp", "pubmed-nc", "cora-lp", "cora-nc"),
    "table 3": ("dd", "proteins", "enzymes"),
}


@pytest.mark.filterwarnings("ignore::h2hgcn.datasets.DataWarning")  # they are part of the show
@pytest.mark.parametrize("code", BLOCKS)
def test_readme_code_runs(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})


def test_readme_has_code():
    assert len(BLOCKS) >= 2


def table_of_results(title, protocol):
    """Our mean and the paper's number (or None) of each model in each column of docs/results.md."""
    page = (ROOT / "docs" / "results.md").read_text()
    (section,) = re.findall(rf"^## {title}, {protocol}.*?(?=^## |\Z)", page, re.DOTALL | re.MULTILINE | re.IGNORECASE)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    names = next(row[1:] for row in rows if "`COLUMN`" in row[0])
    cells = {}
    for row in rows:
        model = re.search(r"`([\w-]+)`$", row[0])
        for column, cell in zip(names, row[1:], strict=False):
            ours, _, paper = cell.partition(" / ")
            if model and re.match(r"\d", ours):
                cells[model[1], column.strip("`")] = float(ours.split()[0]), float(paper) if paper else None
    return cells


def best_euclidean(cells, column):
    score, model = max((cells[model, column][0], model) for model in EUCLIDEAN if (model, column) in cells)
    return f"{score} ({EUCLIDEAN[model]})"


def row_of_readme(title, column):
    cells, clean = table_of_results(title, "legacy"), {}
    if title == "table 1":
        clean = table_of_results(title, "clean")
    ours, paper = cells["h2h-gcn", column]
    row = [str(paper), str(ours), best_euclidean(cells, column)]
    return row + ([str(clean["h2h-gcn", column][0]), best_euclidean(clean, column)] if clean else ["", ""])


@pytest.mark.parametrize(("title", "column"), [(title, name) for title in COLUMNS for name in COLUMNS[title]])
def test_results_are_those_of_the_results_page(title, column):
    (line,) = re.findall(rf"^\| [^|]*`{column}`[^|]*\|(.*)\|$", README, re.MULTILINE)
    assert [cell.strip() for cell in line.split("|")] == row_of_readme(title, column)
