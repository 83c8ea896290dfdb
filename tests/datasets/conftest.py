import pytest


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """No test reads or writes the cache of the person who runs it."""
    monkeypatch.setenv("H2HGCN_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def no_data(monkeypatch):
    monkeypatch.delenv("H2HGCN_DATA", raising=False)
