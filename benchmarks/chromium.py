"""A headless Chromium, for measurements, screenshots and tests."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# Software WebGL, on a processor that draws the rest of the page, too; and none of the requests that a browser makes of
# its own accord.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def find_chromium() -> str | None:
    """The program's path: ``$H2HGCN_CHROMIUM``, or what Debian calls it."""
    return os.environ.get("H2HGCN_CHROMIUM") or shutil.which("chromium")


@contextmanager
def open_browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()
