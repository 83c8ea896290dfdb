"""The server: what it answers, whom it refuses, and that nothing makes it fail."""

import socket
import threading
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import httpx
import numpy as np
import pytest
from scenes import tree_scene

from h2hgcn.errors import DataError
from h2hgcn.explorer import server as server_module
from h2hgcn.explorer.server import HOST, MAX_ITEMS, USUAL_PORT, open_port


@pytest.fixture(scope="module")
def client(address):
    with httpx.Client(base_url=address) as opened:
        yield opened


def raw(address, request):
    """What comes back for bytes that no client would send."""
    with socket.create_connection((HOST, urllib.parse.urlsplit(address).port), timeout=5) as connection:
        answer = b""
        with suppress(OSError):  # one may hang up on such clients
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(65536):
                answer += part
    return answer


def test_the_page_and_its_files(client):
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'; script-src 'self'" in page.headers["content-security-policy"]
    assert "unsafe" not in page.headers["content-security-policy"]
    assert page.headers["x-content-type-options"] == "nosniff"
    module = client.get("/static/view.mjs")
    assert module.headers["content-type"].startswith("text/javascript")
    assert "SU(1,1)" in module.text


def test_buffers_come_in_parts(client, scene):
    about = client.get("/api/about").json()
    assert about["count"] == 121
    whole = client.get("/api/buffers/points").content
    np.testing.assert_array_equal(np.frombuffer(whole, "<f8").reshape(-1, 2), scene.points)
    parts = [client.get("/api/buffers/points", params={"start": k, "count": 100}).content for k in (0, 100, 200)]
    assert b"".join(parts) == whole
    assert client.get("/api/buffers/points", params={"start": 10**9}).content == b""


def test_lists(client, scene):
    for kind in ("neighbors", "links"):
        assert client.get(f"/api/nodes/9/{kind}?k=5").json() == scene.nearest.near(kind, 9, 5)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/nodes/121/neighbors", 404),
        ("/api/nodes/-1/neighbors", 422),
        ("/api/nodes/9/friends", 422),
        ("/api/nodes/9/neighbors?k=0", 422),
        ("/api/nodes/9/neighbors?k=1e9", 422),
        (f"/api/nodes/{'9' * 4000}/neighbors", 422),
        (f"/api/nodes/{'9' * 5000}/neighbors", 422),
        ("/api/nodes/9/neighbors?k=" + "1" * 30_000, 422),
        (f"/api/buffers/points?count={MAX_ITEMS + 1}", 422),
        ("/api/buffers/points?start=-1", 422),
        ("/api/buffers/points?start=NaN", 422),
        ("/api/buffers/passwd", 404),
        (f"/api/buffers/{'x' * 1000}", 422),
        ("/api/buffers/%00", 404),
        ("/static/nothing.mjs", 404),
        ("/static/app.py", 404),
        ("/static/", 404),
        ("/static", 404),
        ("/nothing", 404),
        ("/docs", 404),
    ],
)
def test_bad_requests_get_one_sentence(client, path, status):
    answer = client.get(path)
    assert answer.status_code == status
    assert set(answer.json()) == {"detail"}
    assert isinstance(answer.json()["detail"], str)
    assert "Traceback" not in answer.text


def test_links_without_edges(serve):
    with httpx.Client(base_url=serve(tree_scene(3, edges=None))) as client:
        assert client.get("/api/nodes/1/links").status_code == 404
        assert client.get("/api/nodes/1/neighbors").json()[0]["linked"] is False
        assert client.get("/api/about").json()["missing_links"] is False


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
def test_other_methods_are_refused(client, method):
    assert client.request(method, "/api/about").status_code == 405


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e/app.py",
        "/static/....//app.py",
        "/static//etc/passwd",
        "/static/..\\app.py",
        "//etc/passwd",
        "/api/buffers/..%2f..%2fpyproject.toml",
        "/static/%2fetc%2fpasswd",
    ],
)
def test_no_path_leads_to_a_file(address, path):
    answer = raw(address, f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    status, body = answer.split(b"\r\n", 1)[0], answer.split(b"\r\n\r\n", 1)[1]
    assert status.split()[1] in (b"404", b"400"), status
    assert b"root:" not in answer
    assert b"import" not in body


@pytest.mark.parametrize(
    ("headers", "served"),
    [
        ({}, True),
        ({"Host": "localhost:1234"}, True),  # through a tunnel, say
        ({"Host": "[::1]:8710"}, True),
        ({"Host": "evil.example"}, False),
        ({"Host": "127.0.0.1.evil.example"}, False),
        ({"Host": "localhost.evil.example:8710"}, False),
        ({"Host": "localhost@evil.example"}, False),
        ({"Host": "evil.example@localhost"}, False),
        ({"Host": "localhost:99999"}, False),
        ({"Host": "127.0.0.1#.evil.example"}, False),
        ({"Host": "127.0.0.1/.evil.example"}, False),
        ({"Host": "127.0.0.1?.evil.example"}, False),
        ({"Host": "localhost:abc"}, False),
        ({"Host": ""}, False),
        ({"Origin": "http://evil.example"}, False),
        ({"Origin": "null"}, False),
        ({"Origin": "http://localhost:3000"}, False),
        ({"Host": "localhost:8710", "Origin": "http://localhost:8710"}, True),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, False),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, True),
    ],
)
@pytest.mark.parametrize("path", ["/", "/api/about", "/static/view.mjs", "/nothing"])
def test_foreign_hosts_and_origins_are_refused(client, path, headers, served):
    answer = client.get(path, headers=headers)
    assert answer.status_code == ((404 if path == "/nothing" else 200) if served else 403)
    assert "content-security-policy" in answer.headers
    if not served:
        assert set(answer.json()) == {"detail"}


@pytest.mark.parametrize(
    "request_",
    [
        b"GET /api/about HTTP/1.1\r\n\r\n",  # no host
        b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 200_000 + b"\r\n\r\n",
        b"GET /api/buffers/%ff%fe HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    ],
)
def test_malformed_requests_do_no_harm(address, client, request_):
    answer = raw(address, request_)
    assert not answer.startswith(b"HTTP/1.1 2")
    assert b"Traceback" not in answer
    assert client.get("/api/about").status_code == 200


def test_200_clients_at_once(address):
    paths = ["api/nodes/7/links", "api/buffers/points", "", "api/nodes/999/links"]
    together = threading.Barrier(200, timeout=60)

    def ask(number):
        with httpx.Client(base_url=address, timeout=60, verify=False) as client:
            together.wait()
            return client.get(paths[number % 4]).status_code

    with ThreadPoolExecutor(200) as pool:
        statuses = list(pool.map(ask, range(200)))
    assert statuses == [200, 200, 200, 404] * 50


def test_a_failure_is_one_sentence_and_no_traceback(serve, monkeypatch, capfd):
    scene = tree_scene(3)
    monkeypatch.setattr(scene.nearest, "probabilities", lambda pairs: 1 / 0)
    with httpx.Client(base_url=serve(scene)) as client:
        answer = client.get("/api/nodes/1/links")
        assert (answer.status_code, answer.json()) == (500, {"detail": "the server failed to answer"})
        assert client.get("/api/about").status_code == 200
    assert "Traceback" not in capfd.readouterr().err


def test_a_port_in_use_is_said():
    with open_port(0) as taken, pytest.raises(DataError, match="is in use; choose another with --port"):
        open_port(taken.getsockname()[1])
    with open_port() as first, open_port() as second:
        assert {first.getsockname()[0], second.getsockname()[0]} == {HOST}
        assert first.getsockname()[1] != second.getsockname()[1] != USUAL_PORT


def test_the_browser_is_opened_when_the_server_answers(monkeypatch):
    opened, answers, servers = open_port(0), [], []
    make_server = server_module.make_server

    def make(scene, ready):
        servers.append(make_server(scene, ready))
        return servers[-1]

    def look(address):
        def ask():
            answers.append(httpx.get(f"{address}api/about").json()["count"])
            servers[0].should_exit = True

        threading.Thread(target=ask).start()

    monkeypatch.setattr(server_module, "make_server", make)
    monkeypatch.setattr("webbrowser.open", look)
    thread = threading.Thread(target=server_module.serve, args=(tree_scene(3), opened), kwargs={"browser": True})
    thread.start()
    thread.join(20)
    assert answers == [13]
    assert opened.fileno() == -1
