"""A headless Chromium for measurements and screenshots."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import sync_playwright

# software WebGL where there is no card, and none of the requests that a browser makes of its own accord
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --use-angle=swiftshader --enable-unsafe-swiftshader"
).split()


def find_chromium() -> str | None:
    """The program's path: ``$H2HGCN_CHROMIUM``, or what Debian calls it."""
    return os.environ.get("H2HGCN_CHROMIUM") or shutil.which("chromium")


@contextmanager
def open_browser() -> Iterator[Any]:
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()
