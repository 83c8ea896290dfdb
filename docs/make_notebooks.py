"""Executes the notebooks of docs/notebooks in place and writes the page of each: python docs/make_notebooks.py

Needs nbclient and ipykernel (pip install nbclient ipykernel).
"""

from pathlib import Path
from typing import Any

import nbformat

FOLDER = Path(__file__).parent / "notebooks"


def page_of(notebook: Any) -> str:
    """A notebook as Markdown, with what its cells print."""
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```py\n{cell.source}\n```")
        parts += [f"```text\n{text.rstrip()}\n```" for text in map(_text, cell.outputs) if text]
    return "\n\n".join(parts) + "\n"


def _text(output: Any) -> str:
    return output.text if output.output_type == "stream" else output.data["text/plain"]


def main() -> None:
    from nbclient import NotebookClient

    for path in sorted(FOLDER.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(FOLDER)}}).execute()
        for cell in notebook.cells:
            cell.metadata.pop("execution", None)  # times, which differ from run to run
            if cell.cell_type == "code":  # what libraries say of this machine
                cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
        nbformat.write(notebook, path)
        path.with_suffix(".md").write_text(page_of(notebook))
        print(path.name)


if __name__ == "__main__":
    main()
