"""The page as one file."""

import base64
import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest
from looking import drag_mouse, spot, to_disk, to_screen, translation
from scenes import tree_scene

from h2hgcn.errors import DataError
from h2hgcn.explorer import export, make_scene, write_page

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<!--",
    "&quot;\"'",
    "\u2028\U0001f600\x00",
]


def held(path):
    (text,) = re.findall(r'<script type="application/json" id="explorer-data">(.*?)</script>', path.read_text())
    return json.loads(text)


def test_the_file_holds_the_data(tmp_path, scene):
    path = write_page(tmp_path / "page.html", scene)
    data = held(path)
    points = np.frombuffer(base64.b64decode(data["buffers"]["points"]), "<f8").reshape(-1, 2)
    np.testing.assert_array_equal(points, scene.points)
    nodes = np.frombuffer(base64.b64decode(data["buffers"]["links_node"]), "<u4").reshape(-1, export.LISTED)
    assert nodes[7].tolist() == [entry["node"] for entry in scene.nearest.near("links", 7, export.LISTED)]


def test_the_policy_allows_this_very_script_and_style(tmp_path, scene):
    page = write_page(tmp_path / "page.html", scene).read_text()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', page)
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    for text in (script, style):
        assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy
    assert "default-src &#39;none&#39;" in policy
    assert "unsafe" not in policy
    assert not re.findall(r'(?:src|href)="(?!data:|#)', page)


def test_it_works_from_disk(open_page, tmp_path, scene):
    path = write_page(tmp_path / "page.html", scene)
    page = open_page(path.as_uri())
    page.fill("#search", "n4")
    page.press("#search", "Enter")
    page.wait_for_selector("#neighbors ol button")
    rows = page.locator("#neighbors ol button .name").all_inner_texts()
    assert rows == [f"n{entry['node']}" for entry in scene.nearest.near("neighbors", 4, 10)]
    with page.expect_download() as saved:
        page.click("#save-png")
    assert saved.value.path().read_bytes().startswith(b"\x89PNG")


def test_a_drag_in_the_file_is_the_mobius_translation(open_page, tmp_path):
    point = 0.5 + 0.4j
    scene = make_scene([[0.5, 0.4]], ["a"], space="poincare", labels=["x"])
    page = open_page(write_page(tmp_path / "one.html", scene).as_uri())
    begin, end = to_screen(page, 0.1 - 0.1j), to_screen(page, -0.3 + 0.4j)
    drag_mouse(page, begin, end)
    moved = translation(to_disk(page, begin), to_disk(page, end))
    assert abs(spot(page, "blue") - to_screen(page, moved(point))) <= 1
    assert page.locator("#neighbors").is_hidden()


def test_hostile_texts_stay_texts(open_page, tmp_path):
    points = np.random.default_rng(0).uniform(-0.5, 0.5, (5, 2))
    scene = make_scene(
        points,
        HOSTILE,
        labels=HOSTILE,
        space="poincare",
        edges=[[0, 1], [1, 2]],
        extra={HOSTILE[1]: HOSTILE},
        title=HOSTILE[0],
    )
    page = open_page(write_page(tmp_path / "page.html", scene).as_uri())
    assert page.inner_text("#title") == HOSTILE[0]
    page.fill("#search", "onerror")
    page.press("#search", "Enter")
    assert page.inner_text("#node h2") == HOSTILE[1]
    assert page.locator("img").count() == 0
    with page.expect_download() as saved:
        page.click("#save-svg")
    assert "&lt;img src=x" in saved.value.path().read_text()


def test_large_graphs_go_without_lists(open_page, tmp_path, monkeypatch):
    monkeypatch.setattr(export, "MAX_LISTED", 100)
    page = open_page(write_page(tmp_path / "page.html", tree_scene()).as_uri() + "#node=n5")
    assert "h2hgcn explore finds them" in page.inner_text("#neighbors")


def test_other_endings_are_refused(tmp_path, scene):
    with pytest.raises(DataError, match=r"end the name with \.html"):
        write_page(tmp_path / "page.txt", scene)


def test_the_documentation_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[2] / "docs" / "explorer.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    exec(compile(code, str(page), "exec"), {})
    assert held(tmp_path / "ring.html")["about"]["links"] == 11


def test_lists_of_the_file_say_what_is_linked(open_page, tmp_path, scene):
    page = open_page(write_page(tmp_path / "page.html", scene).as_uri() + "#node=n4")
    page.wait_for_selector("#neighbors ol button")
    marked = [
        title == "linked" for title in page.locator("#neighbors ol button").evaluate_all("all => all.map(b => b.title)")
    ]
    wanted = [entry["linked"] for entry in scene.nearest.near("neighbors", 4, 10)]
    assert marked == wanted
    assert any(wanted)
