"""Makes the pictures of docs/maths.md: `python docs/make_pictures.py`.

They are drawn with the functions of the package, once for light pages and once for dark ones; the same versions give
the same files. --out names another folder, --png adds pictures to look at.
"""

import argparse
from pathlib import Path

import matplotlib as mpl
from pictures import convolution, midpoints, models, tree
from pictures.look import LOOKS, SETTINGS

PICTURES = {"models": models.draw, "midpoints": midpoints.draw, "tree": tree.draw, "convolution": convolution.draw}
IMAGES = Path(__file__).parent / "images"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--out", type=Path, default=IMAGES)
    arguments.add_argument("--png", action="store_true")
    options = arguments.parse_args()
    for name in PICTURES:
        for kind in LOOKS:
            write(name, kind, options.out, png=options.png)


def write(name: str, kind: str, folder: Path, png: bool = False) -> Path:
    """One of PICTURES in one of LOOKS, as SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{kind}.svg"
    with mpl.rc_context(SETTINGS):
        figure = PICTURES[name](LOOKS[kind])
        figure.savefig(path, metadata={"Date": None, "Creator": None})
        if png:
            figure.savefig(path.with_suffix(".png"), dpi=100)
    return path


if __name__ == "__main__":
    main()
