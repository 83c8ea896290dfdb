"""The explorer on a port of this machine."""

import errno
import logging
import re
import socket
import threading
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from pathlib import PurePath
from typing import Annotated, Any, Literal

import uvicorn
from fastapi import FastAPI, HTTPException, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from h2hgcn.embeddings.pages import render
from h2hgcn.errors import DataError
from h2hgcn.explorer.export import MEDIA_TYPES, assets, make_payload
from h2hgcn.explorer.scene import Scene

HOST, USUAL_PORT = "127.0.0.1", 8710

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

_log = logging.getLogger(__name__)


def guarded(app: ASGIApp) -> ASGIApp:
    """Refuses foreign requests, answers a failure with one sentence, and adds headers to everything."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def send_guarded(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        refused = _refusal(Headers(scope=scope))
        if refused is not None:
            await JSONResponse({"detail": refused}, 403)(scope, receive, send_guarded)
            return
        try:
            await app(scope, receive, send_guarded)
        except Exception as error:
            _log.error("%s: %s", type(error).__name__, error)
            if not begun:
                await JSONResponse({"detail": "the server failed to answer"}, 500)(scope, receive, send_guarded)

    return answer


_OWN = re.compile(r"(?i:127\.0\.0\.1|localhost|\[::1\])(?::([0-9]{1,5}))?", re.ASCII)


def _refusal(headers: Headers) -> str | None:
    """Why a request is not answered, if it is not."""
    host, origin = headers.get("host", ""), headers.get("origin")
    known = _OWN.fullmatch(host)
    if known is None or not 0 < int(known[1] or 80) < 1 << 16:
        return "the explorer answers to 127.0.0.1 and localhost only"
    embedded = headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-mode") != "navigate"
    if embedded or origin not in (None, f"http://{host}"):
        return "the explorer answers to its own page only"
    return None


MAX_ITEMS = 1 << 20  # numbers of one answer: a page asks for long buffers part by part
MAX_LIST = 100

_BINARY: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
}


class Problem(BaseModel):
    """What was wrong with a request."""

    detail: str


class Entry(BaseModel):
    """A node near another; the probability is null where nothing was trained to tell it."""

    node: int
    distance: float
    probability: float | None
    linked: bool


_REFUSED: dict[int | str, dict[str, Any]] = {404: {"model": Problem}, 422: {"model": Problem}}


def create_app(scene: Scene) -> FastAPI:
    """An application that shows one scene and knows nothing else."""
    app = FastAPI(
        title="h2hgcn explorer",
        version="1",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/schema.json",
        redirect_slashes=False,
        exception_handlers={StarletteHTTPException: _tell, RequestValidationError: _tell},
    )
    texts, shown = assets(), render("h2hgcn.explorer", "index.html", inside=None)

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return Response(shown, media_type="text/html")

    @app.get("/static/{name}", include_in_schema=False)
    async def static(name: str) -> Response:
        if name not in texts:
            raise HTTPException(404, "there is no such file")
        return Response(texts[name], media_type=MEDIA_TYPES[PurePath(name).suffix])

    _add_data(app, scene)
    app.add_middleware(guarded)
    return app


def _add_data(app: FastAPI, scene: Scene) -> None:
    payload = make_payload(scene)

    @app.get("/api/about", summary="What there is to see, and which buffers hold it")
    async def about() -> dict[str, Any]:
        return payload.about

    @app.get(
        "/api/buffers/{name}",
        summary="Numbers of a buffer, little-endian",
        response_class=Response,
        responses=_REFUSED | _BINARY,
    )
    async def buffer(
        name: Annotated[str, Path(max_length=40, examples=["points", "id_text"])],
        start: Annotated[int, Query(ge=0, le=2**40)] = 0,
        count: Annotated[int, Query(ge=1, le=MAX_ITEMS)] = MAX_ITEMS,
    ) -> Response:
        if name not in payload.buffers:
            raise HTTPException(404, "there is no such buffer")
        part = payload.buffers[name][start : start + count]
        return Response(part.tobytes(), media_type="application/octet-stream")

    # not a coroutine: distances take a while, and the others need not wait
    @app.get(
        "/api/nodes/{node}/{kind}",
        summary="The nodes nearest to one, or its likeliest missing links",
        responses=_REFUSED,
    )
    def near(
        node: Annotated[int, Path(ge=0, le=2**40)],
        kind: Literal["neighbors", "links"],
        k: Annotated[int, Query(ge=1, le=MAX_LIST)] = 10,
    ) -> list[Entry]:
        if node >= len(scene.points):
            raise HTTPException(404, f"there is no node {node}; there are {len(scene.points)}, counted from 0")
        if kind == "links" and not scene.nearest.knows_links:
            raise HTTPException(404, "there are no edges, so nobody can tell which are missing")
        return [Entry(**entry) for entry in scene.nearest.near(kind, node, k)]


async def _tell(request: Request, error: Exception) -> Response:
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        return JSONResponse({"detail": f"{first['loc'][-1]}: {first['msg']}"}, 422)
    assert isinstance(error, StarletteHTTPException)
    return JSONResponse({"detail": str(error.detail)}, error.status_code, error.headers)


def open_port(port: int | None = None) -> socket.socket:
    """A socket of the loopback; without a port the usual one, or any if that is taken."""
    if port is None:
        with suppress(DataError):
            return open_port(USUAL_PORT)
    opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((HOST, port or 0))
        opened.listen(512)
    except OSError as error:
        opened.close()
        why = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be opened ({error.strerror})"
        raise DataError(f"port {port} {why}; choose another with --port, or leave it out") from None
    return opened


def address_of(opened: socket.socket) -> str:
    return f"http://{HOST}:{opened.getsockname()[1]}/"


def make_server(scene: Scene, ready: Callable[[], None] = lambda: None) -> uvicorn.Server:
    """A server for one scene; ``ready`` is called when it answers."""

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            ready()

    return Server(uvicorn.Config(create_app(scene), log_level="error", access_log=False, lifespan="off", ws="none"))


def serve(scene: Scene, opened: socket.socket, *, browser: bool) -> None:
    """Answers until somebody interrupts it."""

    def show() -> None:
        if browser:  # in a thread: a browser of the terminal would not come back before it ends
            threading.Thread(target=webbrowser.open, args=(address_of(opened),), daemon=True).start()

    server = make_server(scene, show)
    with opened, suppress(KeyboardInterrupt):  # which is how people end it
        server.run(sockets=[opened])
