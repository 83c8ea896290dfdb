"""The explorer on a port of this machine."""

import errno
import logging
import socket
import threading
import webbrowser
from collections.abc import Callable
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import uvicorn
from fastapi import FastAPI, HTTPException, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from h2hgcn.errors import DataError
from h2hgcn.explorer.export import assets, make_payload, served_page
from h2hgcn.explorer.scene import Scene

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

_log = logging.getLogger(__name__)


class Guard:
    """Refuses foreign requests, answers a failure with one sentence, and adds headers to everything."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
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
            await self.app(scope, receive, send_guarded)
        except Exception as error:
            _log.error("%s: %s", type(error).__name__, error)
            if not begun:
                await JSONResponse({"detail": "the server failed to answer"}, 500)(scope, receive, send_guarded)


def _refusal(headers: Headers) -> str | None:
    """Why a request is not answered, if it is not."""
    host = headers.get("host", "")
    if _name_of(f"http://{host}") not in LOOPBACK:
        return "the explorer answers to 127.0.0.1 and localhost only"
    origin = headers.get("origin")
    if origin is not None and origin != f"http://{host}":
        return "the explorer answers to its own page only"
    if headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-mode") != "navigate":
        return "the explorer answers to its own page only"
    return None


def _name_of(address: str) -> str | None:
    try:
        parts = urlsplit(address)
        return parts.hostname if parts.netloc and parts.port != 0 and not parts.username else None
    except ValueError:
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
        exception_handlers={StarletteHTTPException: _tell, RequestValidationError: _tell_invalid},
    )
    _add_page(app)
    _add_data(app, scene)
    app.add_middleware(Guard)
    return app


def _add_page(app: FastAPI) -> None:
    found, shown = assets(), served_page()

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return Response(shown, media_type="text/html")

    @app.get("/static/{name}", include_in_schema=False)
    async def static(name: str) -> Response:
        if name not in found:
            raise HTTPException(404, "there is no such file")
        return Response(found[name].content, media_type=found[name].media_type)


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
        return Response(payload.part(name, start, count), media_type="application/octet-stream")

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
    assert isinstance(error, StarletteHTTPException)
    return JSONResponse({"detail": str(error.detail)}, error.status_code, error.headers)


async def _tell_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    return JSONResponse({"detail": f"{first['loc'][-1]}: {first['msg']}"}, 422)


HOST = "127.0.0.1"
USUAL_PORT = 8710


def open_port(port: int | None = None) -> socket.socket:
    """A socket of the loopback; without a port the usual one, or any if that is taken."""
    if port is not None:
        return _bound(port)
    try:
        return _bound(USUAL_PORT)
    except DataError:
        return _bound(0)


def _bound(port: int) -> socket.socket:
    opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((HOST, port))
        opened.listen(512)
    except OSError as error:
        opened.close()
        if error.errno == errno.EADDRINUSE:
            raise DataError(f"port {port} is in use; choose another with --port, or leave it out") from None
        raise DataError(f"port {port} cannot be opened ({error.strerror}); choose another with --port") from None
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
    try:
        server.run(sockets=[opened])
    except KeyboardInterrupt:  # is how people end it
        pass
    finally:
        opened.close()
