"""What is seen on the page, from its pixels, and where the formula says that it should be."""

import io

import numpy as np
from PIL import Image

COLOURS = {"blue": (0x2F, 0x78, 0xD0), "orange": (0xD9, 0x58, 0x1C), "green": (0x2A, 0x91, 0x55)}
MARGIN = 20


def stage_box(page):
    return page.locator("#stage").bounding_box()


def picture(page):
    """The stage as an array of colours."""
    return np.asarray(Image.open(io.BytesIO(page.locator("#stage").screenshot())).convert("RGB")).astype(int)


def spot(page, colour):
    """The middle of all pixels of a colour, in pixels of the stage."""
    away = np.abs(picture(page) - COLOURS[colour]).max(2)
    rows, columns = (away < 25).nonzero()
    assert len(rows), f"nothing is {colour}"
    return complex(columns.mean() + 0.5, rows.mean() + 0.5)


def to_screen(page, point, zoom=1.0):
    """Where a point of the disk is, in pixels of the stage."""
    box = stage_box(page)
    radius = (min(box["width"], box["height"]) / 2 - MARGIN) * zoom
    return complex(box["width"] / 2 + radius * point.real, box["height"] / 2 - radius * point.imag)


def to_disk(page, place, zoom=1.0):
    box = stage_box(page)
    radius = (min(box["width"], box["height"]) / 2 - MARGIN) * zoom
    return complex(place.real - box["width"] / 2, box["height"] / 2 - place.imag) / radius


def drag_mouse(page, begin, end, steps=6):
    """By places of the stage."""
    box = stage_box(page)
    page.mouse.move(box["x"] + begin.real, box["y"] + begin.imag)
    page.mouse.down()
    page.mouse.move(box["x"] + end.real, box["y"] + end.imag, steps=steps)
    page.mouse.up()
    page.mouse.move(box["x"] + 2, box["y"] + 2)
    settle(page)


def settle(page):
    """Until what was asked for is drawn."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def translation(start, end):
    """The Möbius translation z → (z + c)/(1 + c̄z) with start → end, written out with complex numbers."""
    product, difference = start * end, end - start
    c = (difference + product * difference.conjugate()) / (1 - abs(product) ** 2)
    return lambda z: (z + c) / (1 + c.conjugate() * z)
