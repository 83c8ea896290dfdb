"""Who may ask, and what a browser may do with the answers.

A page on another site can make a browser ask this server. So only names of this machine are answered to, which ends
tricks with a foreign name that leads here, and no script of another origin gets anything.
"""

import logging
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
