"""The distributions build, hold what they should, and install."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def test_wheel_installs_and_imports(distributions, tmp_path):
    (wheel,) = distributions.glob("*.whl")
    assert {
        "h2hgcn/py.typed",
        "h2hgcn/embeddings/assets/report.css",
        "h2hgcn/explorer/static/main.mjs",
        "h2hgcn/experiments/defaults/lp.toml",
        "h2hgcn/experiments/dai2021/cora.toml",
    } <= set(zipfile.ZipFile(wheel).namelist())
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        tmp_path,
        wheel,
    ]
    subprocess.run(install, check=True, capture_output=True)
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import h2hgcn, h2hgcn.models; "
        "print(h2hgcn.__file__, h2hgcn.__version__)"
    )
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=tmp_path)
    assert result.stdout.startswith(str(tmp_path))


def test_sdist_holds_the_sources(distributions):
    (sdist,) = distributions.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[-1] for name in archive.getnames()}
    for needed in ("src/h2hgcn/py.typed", "LICENSE", "README.md", "tests/test_packaging.py", "benchmarks/literal.py"):
        assert needed in names
