"""How long the explorer takes to show its first picture, and a frame while somebody drags.

Times are taken in the browser, in headless Chromium with a window of 1280 × 800. The first picture is counted from the
moment the address is asked for. A frame is the time from one that drew a drag to the next, while the mouse takes the
disk to and fro (16.7 ms at least: 60 a second). Of more than 20,000 nodes one of 2, 4, 8, 16 or 31 is drawn while
frames take longer than 45 ms, and all of them as soon as the hand rests. Where the renderer is SwiftShader there is no
graphics card: the processor draws.
"""

import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from chromium import open_browser
from numpy.typing import NDArray
from report import parser, publish

from h2hgcn.explorer import Scene, make_scene
from h2hgcn.explorer.server import address_of, make_server, open_port

SIZES = (1_000, 10_000, 100_000, 1_000_000)
DRAGS = 6

_RECORD = """() => {
  window.frames_ = [];
  let [last, moved, drew] = [0, false, false];
  document.getElementById("stage").addEventListener("pointermove", () => (moved = true));
  const tick = (now) => {
    if (drew) window.frames_.push(now - last);
    [last, drew, moved] = [now, moved, false];
    window.ticking = requestAnimationFrame(tick);
  };
  window.ticking = requestAnimationFrame(tick);
}"""


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of nodes")
    options = arguments.parse_args()
    with open_browser() as browser:
        rows = [measure(browser, size) for size in options.sizes]
    renderer = rows[0].pop("renderer")
    for row in rows[1:]:
        row.pop("renderer")
    publish({f"A tree of so many nodes, drawn by {renderer}": rows}, options)


def measure(browser: Any, size: int) -> dict[str, Any]:
    scene = random_tree(size)
    with served(scene) as (address, prepared):
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(address)
        page.wait_for_selector("html[data-ready]", timeout=120_000)
        picture = page.evaluate("performance.getEntriesByName('first-picture')[0].startTime")
        frames, thin = drag_to_and_fro(page)
        renderer = page.get_attribute("html", "data-renderer")
        page.close()
    return {
        "nodes": f"{size:,}",
        "server ready (s)": prepared,
        "first picture (s)": picture / 1000,
        "nodes drawn in a drag": f"{-(-size // thin):,}",
        "frames": len(frames),
        "median frame (ms)": statistics.median(frames),
        "95 % of frames within (ms)": float(np.quantile(frames, 0.95)),
        "renderer": renderer,
    }


def drag_to_and_fro(page: Any) -> tuple[Sequence[float], int]:
    """Milliseconds of frames while the mouse goes across the disk and back; and one of how many nodes was drawn."""
    page.mouse.move(300, 400)
    page.mouse.down()
    page.evaluate(_RECORD)
    for k in range(DRAGS):
        page.mouse.move(600 if k % 2 == 0 else 300, 250 + 50 * k, steps=40)
    thin = int(page.get_attribute("#stage", "data-thin"))
    frames: list[float] = page.evaluate("() => { cancelAnimationFrame(window.ticking); return window.frames_; }")
    page.mouse.up()
    return frames, thin


@contextmanager
def served(scene: Scene) -> Iterator[tuple[str, float]]:
    """The address of a scene while it is served, and the seconds that the server took to begin."""
    opened, began = open_port(0), time.perf_counter()
    server = make_server(scene)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [opened]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    try:
        yield address_of(opened), time.perf_counter() - began
    finally:
        server.should_exit = True
        thread.join()
        opened.close()


def random_tree(size: int, seed: int = 0) -> Scene:
    """Every node has a parent among those before it and lies a little farther out, near it by angle."""
    random = np.random.default_rng(seed)
    parents = (np.arange(1, size) * random.random(size - 1)).astype(np.int64)
    points = _laid_out(parents, random)
    edges = np.stack([parents, np.arange(1, size)])
    labels = random.integers(0, 8, size).astype(str)
    return make_scene(points, np.arange(size), labels.tolist(), "poincare", edges, title=f"A tree of {size:,} nodes")


def _laid_out(parents: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.float64]:
    radii, angles = np.zeros(len(parents) + 1), np.zeros(len(parents) + 1)
    steps, turns = random.uniform(0.4, 1.2, len(radii)), random.normal(size=len(radii))
    angles[0] = random.uniform(0, 2 * np.pi)
    for node, parent in enumerate(parents.tolist(), start=1):
        radii[node] = min(16.0, radii[parent] + steps[node])
        angles[node] = angles[parent] + turns[node] * (2.0 if parent == 0 else 3.0 / np.sinh(1 + radii[parent]))
    return np.column_stack([np.cos(angles), np.sin(angles)]) * np.tanh(radii / 2)[:, None]


if __name__ == "__main__":
    main()
