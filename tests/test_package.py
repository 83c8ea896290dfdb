"""The names of ``h2hgcn`` itself."""

import subprocess
import sys

import pytest

import h2hgcn


def test_importing_is_light():
    code = "import sys, h2hgcn; dir(h2hgcn); print({'torch', 'numpy', 'pyarrow'} & sys.modules.keys() or 'light')"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout == "light\n"


def test_public_names_are_found_when_asked_for():
    from h2hgcn.datasets import load_graph
    from h2hgcn.experiments.train import train

    assert set(dir(h2hgcn)) == set(h2hgcn.__all__)
    assert all(getattr(h2hgcn, name) is not None for name in h2hgcn.__all__)
    assert h2hgcn.train is train
    assert h2hgcn.load_graph is load_graph
    with pytest.raises(AttributeError, match="module 'h2hgcn' has no attribute 'trian'"):
        h2hgcn.trian  # noqa: B018
