"""Makes the pictures of docs/images: `python docs/make_screenshots.py`.

Trains the models that they show, by `h2hgcn train` and its presets, unless --runs names a folder with them already;
then opens their pages in headless Chromium. The citation graph Cora is looked for in $H2HGCN_DATA, or downloaded.
"""

import argparse
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from chromium import open_browser
from PIL import Image

from h2hgcn.cli.explore import open_scene
from h2hgcn.explorer import write_page

IMAGES = Path(__file__).parent / "images"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--runs", type=Path, help="folder of the runs; those that are there are used")
    options = arguments.parse_args()
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary, open_browser() as browser:
        runs = options.runs or Path(temporary)
        for name, more in (("cora", ["--dataset", "cora", "--task", "nc"]), ("disease", [])):
            if not (runs / name).exists():
                subprocess.run([sys.executable, "-m", "h2hgcn", "train", *more, "--out", runs / name], check=True)
            write_page(Path(temporary) / f"{name}.html", open_scene(runs / name))
        for scheme in ("light", "dark"):
            shoot = partial(take, browser, scheme)
            shoot(Path(temporary) / "cora.html", f"explorer-{scheme}", choose="1358", home=True)
            shoot(Path(temporary) / "disease.html", f"depth-{scheme}", choose="816", show="#depth", home=True)
            shoot(runs / "disease" / "report.html", f"report-{scheme}")


def take(
    browser: Any,
    scheme: str,
    page: Path,
    name: str,
    choose: str = "",
    column: str = "",
    show: str = "",
    home: bool = False,
) -> None:
    """A picture of a page, with a node chosen, a coloring, a part of the panel in view, and the whole disk seen again
    from its middle if ``home`` says so.
    """
    opened = browser.new_page(
        viewport={"width": 1280, "height": 840}, color_scheme=scheme, reduced_motion="reduce", device_scale_factor=1
    )
    opened.goto(page.resolve().as_uri())
    if choose:
        opened.wait_for_selector("html[data-ready]")
        if column:
            opened.select_option("#colour", label=column)
        opened.fill("#search", choose)
        opened.press("#search", "Enter")
        opened.wait_for_selector("#neighbors ol button")
        opened.mouse.click(4, 4)
        if home:
            opened.click("#home")
        if show:
            opened.evaluate("(place) => document.querySelector(place).scrollIntoView()", show)
    opened.wait_for_timeout(500)
    opened.screenshot(path=IMAGES / f"{name}.png")
    picture = Image.open(IMAGES / f"{name}.png").quantize(256, Image.Quantize.MAXCOVERAGE)
    picture.save(IMAGES / f"{name}.png", optimize=True)
    opened.close()


if __name__ == "__main__":
    main()
