"""The code in the README runs as it stands."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


@pytest.mark.filterwarnings("ignore::h2hgcn.datasets.DataWarning")  # they are part of the show
@pytest.mark.parametrize("code", BLOCKS)
def test_readme_code_runs(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, str(README), "exec"), {})


def test_readme_has_code():
    assert len(BLOCKS) >= 2
