"""The page's modules by themselves: their own tests under Node.js, which needs no packages for it."""

import shutil
import subprocess
from pathlib import Path

import pytest

from h2hgcn.embeddings.pages import bundle
from h2hgcn.explorer.export import assets

HERE = Path(__file__).parent / "js"
NODE = shutil.which("node")


@pytest.fixture(scope="module")
def node():
    if NODE is None:
        pytest.skip("there is no Node.js, whose test runner the modules' tests need")
    return NODE


@pytest.mark.parametrize("path", sorted(HERE.glob("*.test.mjs")), ids=lambda path: path.name)
def test_modules(node, path):
    result = subprocess.run([node, "--test", str(path)], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stdout
    assert "# pass 0" not in result.stdout


def test_the_bundle_is_one_good_script(node, tmp_path):
    modules = {name: text for name, text in assets().items() if name.endswith(".mjs")}
    script = bundle(modules, "main.mjs")
    (tmp_path / "page.js").write_text(script)
    subprocess.run([node, "--check", tmp_path / "page.js"], check=True, capture_output=True)
    for name, text in modules.items():  # every module is used
        first = text.splitlines()[0]
        assert first.startswith("//"), f"{name} does not begin with what it is for"
        assert first in script


def test_modules_may_use_the_same_names(node, tmp_path):
    two = "const own = 2;\nexport const TWO = own;\n"
    main = 'import { TWO } from "./two.mjs";\nconst own = 3;\nconsole.log(own * TWO);\n'
    (tmp_path / "page.js").write_text(bundle({"two.mjs": two, "main.mjs": main}, "main.mjs"))
    assert subprocess.run([node, tmp_path / "page.js"], check=True, capture_output=True, text=True).stdout == "6\n"


def test_modules_ask_for_nothing_from_outside():
    for name, text in assets().items():
        text = text.replace("http://www.w3.org/", "")
        assert "http:" not in text, name
        assert "https:" not in text, name
        assert "innerHTML" not in text, name
