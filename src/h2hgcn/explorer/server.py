"""The explorer on a port of this machine."""

import errno
import socket
import threading
import webbrowser
from collections.abc import Callable

import uvicorn

from h2hgcn.errors import DataError
from h2hgcn.explorer.app import create_app
from h2hgcn.explorer.scene import Scene

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
