"""Makes the pictures of docs/images: `python docs/make_screenshots.py`, or with a few epochs, `--epochs 5`, to try it.

Trains the models that they show (some minutes), writes the pages, and opens them in headless Chromium. The citation
graph Cora is looked for in $H2HGCN_DATA, or downloaded.
"""

import argparse
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from chromium import open_browser

from h2hgcn.cli.explored import open_scene
from h2hgcn.datasets import load_dataset
from h2hgcn.explorer import write_page
from h2hgcn.models import H2HGCN
from h2hgcn.tasks import LinkPrediction, NodeClassification
from h2hgcn.training import TrainingSettings, fit

IMAGES = Path(__file__).parent / "images"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--epochs", type=int, default=300)
    arguments.add_argument("--out", type=Path, default=IMAGES)
    options = arguments.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name, open_browser() as browser:
        folder = Path(name)
        train(folder, options.epochs)
        for run in ("cora", "disease"):
            write_page(folder / f"{run}.html", open_scene(folder / run))
        for scheme in ("light", "dark"):
            shoot = partial(take, browser, options.out, scheme)
            shoot(folder / "cora.html", f"explorer-{scheme}", choose="1358")
            shoot(folder / "disease.html", f"depth-{scheme}", choose="2100", column="radius")
            shoot(folder / "disease" / "report.html", f"report-{scheme}")


def train(folder: Path, epochs: int) -> None:
    """Cora's classes and the disease tree's links, of which the pictures are."""
    settings = TrainingSettings(epochs=epochs)
    classes = NodeClassification(scaling="standard")
    fit(classes, load_dataset("cora"), partial(H2HGCN, dim=16, dropout=0.3), settings=settings, folder=folder / "cora")
    links = LinkPrediction(message_share=0.5, scaling="standard")
    fit(links, load_dataset("disease"), partial(H2HGCN, dim=16), settings=settings, folder=folder / "disease")


def take(browser: Any, out: Path, scheme: str, page: Path, name: str, choose: str = "", column: str = "") -> None:
    """A picture of a page, with a node chosen and a colouring, if they are given."""
    opened = browser.new_page(
        viewport={"width": 1280, "height": 840}, color_scheme=scheme, reduced_motion="reduce", device_scale_factor=1
    )
    opened.goto(page.as_uri())
    if choose:
        opened.wait_for_selector("html[data-ready]")
        if column:
            opened.select_option("#colour", label=column)
        opened.fill("#search", choose)
        opened.press("#search", "Enter")
        opened.wait_for_selector("#neighbors ol button")
        opened.focus("#stage")
        opened.mouse.click(4, 4)
    opened.wait_for_timeout(500)
    opened.screenshot(path=out / f"{name}.png")
    opened.close()


if __name__ == "__main__":
    main()
