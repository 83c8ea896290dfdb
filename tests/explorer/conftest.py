"""A server in a thread, and a browser to look at it."""

import threading
import time

import pytest
from chromium import find_chromium, open_browser
from scenes import tree_scene

from h2hgcn.explorer.server import address_of, make_server, open_port


@pytest.fixture(scope="session")
def scene():
    return tree_scene()


@pytest.fixture(scope="session")
def serve():
    """Serves scenes until the tests are over; gives their addresses."""
    running = []

    def start(scene):
        opened = open_port(0)
        server = make_server(scene)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [opened]}, daemon=True)
        thread.start()
        running.append((server, thread, opened))
        while not server.started:
            time.sleep(0.01)
        return address_of(opened)

    yield start
    for server, thread, opened in running:
        server.should_exit = True
        thread.join(10)
        opened.close()


@pytest.fixture(scope="session")
def address(scene, serve):
    return serve(scene)


@pytest.fixture(scope="session")
def browser():
    if find_chromium() is None:
        pytest.skip("there is no Chromium: apt-get install chromium, or set H2HGCN_CHROMIUM to one")
    pytest.importorskip("playwright.sync_api")
    with open_browser() as opened:
        yield opened


@pytest.fixture
def open_page(browser):
    """Opens an address; afterwards no page may have had an error, or asked for something elsewhere."""
    contexts, problems = [], []

    def start(address, *, script=None, **options):
        given = {"viewport": {"width": 1100, "height": 760}, "reduced_motion": "reduce", "color_scheme": "light"}
        context = browser.new_context(**given | options)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(f"error: {error}"))
        page.on("console", lambda told: problems.append(told.text) if told.type == "error" else None)
        home = address.split("#")[0] if address.startswith("file:") else address.split("#")[0].rstrip("/")
        allowed = (home, "blob:", "data:")
        page.on("request", lambda asked: None if asked.url.startswith(allowed) else problems.append(asked.url))
        if script:
            page.add_init_script(script)
        page.goto(address)
        page.wait_for_selector("html[data-ready]", timeout=20_000)
        return page

    yield start
    for context in contexts:
        context.close()
    assert problems == []
