"""The server's answers. Everything that can be asked for is in memory before the first question."""

from typing import Annotated, Any, Literal

from fastapi import FastAPI, HTTPException, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException as StarletteHTTPException

from h2hgcn.explorer.assets import assets
from h2hgcn.explorer.guard import Guard
from h2hgcn.explorer.payload import make_payload
from h2hgcn.explorer.scene import Scene

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
    found = assets()

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return _typed(*found["index.html"])

    @app.get("/static/{name}", include_in_schema=False)
    async def static(name: str) -> Response:
        if name not in found:
            raise HTTPException(404, "there is no such file")
        return _typed(*found[name])


def _typed(content: bytes, media_type: str) -> Response:
    return Response(content, media_type=media_type)


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
