import base64
import hashlib
import json
import math
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from samples import random_points

from h2hgcn.embeddings import project_to_disk, write_report
from h2hgcn.errors import DataError

HOSTILE = ["<script>alert(1)</script>", "</script><b>", "\"'><img src=x onerror=alert(1)>", "<!--", "</title>&amp;"]
HISTORY = [{"epoch": epoch, "loss": 1 / epoch, "val_auc": math.sin(epoch / 7)} for epoch in range(1, 21)]
POINTS = random_points(10, 4, 3.0).numpy()


class Page(HTMLParser):
    """What a browser would make of a file: its elements, its texts, and whether all of them end."""

    def __init__(self, path):
        super().__init__()
        self.open, self.elements, self.texts = [], [], []
        self.feed(path.read_text())
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else "", data))

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    def text(self, tag=None):
        return "\n".join(data for name, data in self.texts if tag in (None, name))


def report(tmp_path, **changes):
    arguments = {"title": "A run", "settings": {"seed": 1, "model": {"dim": 16}}, "metrics": {"test": {"auc": 0.9}}}
    return Page(write_report(tmp_path / "report.html", **arguments | changes))


def test_all_parts_are_there(tmp_path):
    page = report(
        tmp_path,
        metrics={"val": {"auc": 0.91, "ap": math.nan}, "test": {"auc": np.float32(0.875), "ap": math.inf}},
        settings={"seed": 3, "model": {"name": "h2h-gcn", "stem": {"bias": True, "size": None}}},
        history=HISTORY,
        disk=project_to_disk(POINTS),
        labels=list("ab") * 5,
        edges=[[0, 1, 2], [1, 2, 0]],
        trivial={"degree product": 0.61},
        notes=["One node has no edge."],
        ids=range(10),
    )
    cells = page.text("td").split()
    assert cells[:5] == ["0.9100", "0.8750", "–", "–", "0.6100"]
    for wanted in ("ROC AUC", "Validation", "degree product", "stem.bias", "best epoch 11: 1.0000", "One node has no"):
        assert wanted in page.text()
    assert "numpy" in page.text("footer")
    assert {"3 · b", "0 · a"} <= set(page.text("title").split("\n"))
    (edges,) = (path["d"] for path in page.all("path") if path.get("class") == "edges")
    assert edges.count("M") == 3
    assert all(header.get("scope") for header in page.all("th"))
    assert all(svg["role"] == "img" for svg in page.all("svg"))
    assert "hyperbolic distance of each point" in page.text("p")


def test_page_asks_for_nothing_from_outside(tmp_path):
    page = report(tmp_path, history=HISTORY, disk=POINTS[:, :2] / 1e3)
    policy = next(meta["content"] for meta in page.all("meta") if "http-equiv" in meta)
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:")
    assert not page.all("script")
    assert not any({"src", "href"} & set(attributes) for _, attributes in page.elements)
    assert "url(" not in page.text("style")
    assert "prefers-color-scheme: dark" in page.text("style")


@pytest.mark.parametrize("count", [10, 3_010])
def test_hostile_texts_stay_texts(tmp_path, count):
    texts = [HOSTILE[place % 5] for place in range(count)]
    ids = [f"{text}{place}" for place, text in enumerate(texts)]
    disk = np.random.default_rng(0).uniform(-0.5, 0.5, (count, 2))
    page = report(
        tmp_path,
        title=HOSTILE[0],
        settings={text: {text: text} for text in HOSTILE},
        metrics={text: {text: 1.0} for text in HOSTILE},
        trivial=dict.fromkeys(HOSTILE, 1.0),
        history=[{"loss": 1.0, f"val_{HOSTILE[0]}": 0.5}],
        notes=HOSTILE,
        disk=disk,
        labels=texts,
        ids=ids,
    )
    assert page.text("h1") == HOSTILE[0]
    assert page.text("li").count(HOSTILE[2]) == 2
    assert not {"b", "img"} & {tag for tag, _ in page.elements}
    assert len(page.all("script")) == (0 if count == 10 else 2)


def test_many_points_are_drawn_by_one_known_script(tmp_path):
    count = 3_001
    disk = np.random.default_rng(0).uniform(-0.5, 0.5, (count, 2))
    labels = [None, *["</script>"] * (count - 1)]
    page = report(tmp_path, disk=disk, labels=labels, edges=[[0, 1], [1, 2]], ids=np.arange(count) + 2**60)
    data, script = (text for tag, text in page.texts if tag == "script")
    policy = next(meta["content"] for meta in page.all("meta") if "http-equiv" in meta)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy.endswith(f"script-src 'sha256-{digest}'")
    assert "<" not in data
    found = json.loads(data)
    points = np.frombuffer(base64.b64decode(found["pictures"][0]["points"]), "<f4").reshape(-1, 2)
    np.testing.assert_allclose(points, disk, atol=1e-7)
    assert found["names"][:2] == [str(2**60), f"{2**60 + 1} · </script>"]
    assert np.frombuffer(base64.b64decode(found["pictures"][0]["edges"]), "<f8").shape == (8,)
    (canvas,) = page.all("canvas")
    assert "3,001 points" in canvas["aria-label"]


def test_report_of_nearly_nothing(tmp_path):
    page = report(tmp_path, settings={}, metrics={}, notes=[])
    assert not page.all("section")
    assert "No finite" not in page.text()
    page = report(tmp_path, history=[{"loss": math.nan, "val_auc": None}], disk=np.zeros((1, 2)))
    assert "no finite value was recorded" in page.text()


def test_euclidean_embedding_has_no_disk(tmp_path):
    page = report(tmp_path, disk=project_to_disk(np.eye(4), "euclidean"), edges=[[0], [1]])
    assert "The embedding" in page.text("h2")
    assert not any(circle.get("class") == "boundary" for circle in page.all("circle"))


def test_flat_metrics_and_chosen_curve(tmp_path):
    page = report(
        tmp_path, metrics={"test_auc": 0.5, "val_auc": 0.25}, history=HISTORY, selected_by="loss", best_epoch=4
    )
    assert page.text("td").split()[:2] == ["0.5000", "0.2500"]
    assert "best epoch 4: 0.2500" in page.text()
    assert len(page.all("svg")) == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"history": HISTORY, "selected_by": "val_f1"}, "no 'val_f1'; it has loss, val_auc"),
        ({"disk": np.ones((2, 2))}, "unit ball"),
        ({"disk": np.zeros((2, 2)), "ids": [1]}, "1 ids for 2 points"),
    ],
)
def test_bad_input_is_refused(tmp_path, changes, message):
    with pytest.raises(DataError, match=message):
        report(tmp_path, **changes)
    assert not list(tmp_path.iterdir())


def test_other_endings_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"\.html"):
        write_report(tmp_path / "report.pdf", "A run", {}, {})


def test_arcs_end_where_the_points_are(tmp_path):
    page = report(tmp_path, disk=project_to_disk(POINTS), edges=[[0], [1]])
    (edges,) = (path["d"] for path in page.all("path") if path.get("class") == "edges")
    numbers = [float(number) for number in re.findall(r"[\d.]+", edges)]
    dots = {(float(dot["cx"]), float(dot["cy"])) for dot in page.all("circle") if not dot.get("class")}
    assert {tuple(numbers[:2]), tuple(numbers[-2:])} <= dots


CLASSES = [
    {"name": name, "precision": 0.5, "recall": 0.25, "f1": 1 / 3, "support": 4} for name in ("b", "a", HOSTILE[0])
]
BINS = [{"count": 90.0, "predicted": 1e-4, "actual": 0.0}, {"count": 10.0, "predicted": 0.2, "actual": 0.3}]


def test_classes_have_the_colors_of_the_disk(tmp_path):
    labels = ["a", "b", HOSTILE[0], "a", "b", "a", "a", "a", "b", "b"]
    details = {"classes": CLASSES, "confusion": [[4, 0, 0], [1, 2, 1], [0, 0, 0]], "reliability": BINS}
    page = report(tmp_path, disk=project_to_disk(POINTS, "lorentz"), labels=labels, details=details)
    colors = [one["style"].removeprefix("background:") for one in page.all("span") if one.get("class") == "dot"]
    legend = [color["fill"] for color in page.all("g") if "fill" in color]  # in natural order: HOSTILE, a, b
    assert legend == colors[-3:]
    in_tables = [legend[place] for place in (2, 1, 0)]
    assert colors[:-3] == [color for head in (in_tables, in_tables) for color in head] + in_tables
    cells = [one["style"] for one in page.all("td") if "style" in one]
    assert len(cells) == 9
    assert f"{in_tables[0]} 60%" in cells[0]
    assert f"{in_tables[1]} 30%" in cells[4]
    assert HOSTILE[0] in page.text("th")
    assert "Probabilities" in page.text("h2")
    assert "fraction of right predictions" in page.text("th")


def test_many_classes_have_no_matrix_and_pages_without_details_no_sections(tmp_path):
    classes = [CLASSES[0] | {"name": str(k)} for k in range(21)]
    page = report(tmp_path, details={"classes": classes, "confusion": np.eye(21, dtype=int).tolist()})
    assert "Confusion matrix" not in page.text("caption")
    assert "Classes" in page.text("h2")
    plain = report(tmp_path)
    assert "Classes" not in plain.text("h2")
    assert "Probabilities" not in plain.text("h2")


def test_reliability_of_links(tmp_path):
    page = report(tmp_path, details={"reliability": BINS})
    assert "among all pairs that are not training edges" in page.text("caption")
    circles = [(float(one["cx"]), float(one["cy"])) for one in page.all("circle")]
    right, bottom = 420 - 12, 320 - 34
    places = [52 + (1 + np.log10(p) / 6) * (right - 52) for p in (1e-4, 0.2)]
    assert [x for x, _ in circles] == pytest.approx(places, abs=0.1)
    assert circles[0][1] == bottom  # none of them is a link


@pytest.mark.parametrize("count", [10, 3_001])
def test_a_layout_is_shown_above_the_projection(tmp_path, count):
    disk = np.random.default_rng(0).uniform(-0.5, 0.5, (count, 2))
    page = report(tmp_path, disk=disk, layout=disk[::-1], ids=range(count))
    assert page.text("summary") == "The projection of the embedding"
    if count == 10:
        first = next(dot for dot in page.all("circle") if not dot.get("class"))
        assert float(first["cx"]) == pytest.approx(500 + 490 * disk[-1, 0], abs=0.06)
        return
    data = json.loads(next(text for tag, text in page.texts if tag == "script"))
    assert len(page.all("canvas")) == len(data["pictures"]) == 2
    points = np.frombuffer(base64.b64decode(data["pictures"][0]["points"]), "<f4").reshape(-1, 2)
    np.testing.assert_allclose(points, disk[::-1], atol=1e-7)
