import importlib.util
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def test_the_page_of_settings_is_current():
    """Made anew by: python docs/make_settings.py > docs/settings.md"""
    spec = importlib.util.spec_from_file_location("make_settings", DOCS / "make_settings.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = module.settings_page()
    assert page == (DOCS / "settings.md").read_text(encoding="utf-8")
    for line in page.splitlines():
        if line.startswith("| `"):
            assert not line.endswith("|  |"), f"no meaning is given: {line}"
