import shutil
from pathlib import Path

import h2hgcn
from h2hgcn.experiments import runner as code_state
from h2hgcn.experiments.runner import code_fingerprint


def test_the_fingerprint_changes_with_the_code_and_with_nothing_else(tmp_path, monkeypatch):
    copy = tmp_path / "copy"
    shutil.copytree(Path(h2hgcn.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(code_state, "__file__", str(copy / "experiments" / "code_state.py"))

    def now():
        code_fingerprint.cache_clear()
        return code_fingerprint()

    before = now()
    (copy / "notes.txt").write_text("not code")
    assert now() == before
    module = copy / "kernels" / "csr.py"
    module.write_text(module.read_text() + "# a remark\n")
    assert now() != before
    code_fingerprint.cache_clear()
