"""``h2hgcn explore``: an embedding to walk on, in the browser."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from h2hgcn.cli.console import Force, check_free, starting, stderr, stdout
from h2hgcn.cli.options import Edges, NoFinal
from h2hgcn.errors import DataError


def explore(
    run: Annotated[Path, typer.Argument(help="The folder of a run, or embeddings: .parquet, .npz or .csv.")],
    port: Annotated[
        int | None, typer.Option(help="Port of this machine; 0 for any.", min=0, max=65535, show_default="8710")
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Open no browser; print the address only.")] = False,
    export: Annotated[Path | None, typer.Option(help="Write one HTML file instead, which needs no server.")] = None,
    edges: Edges = None,
    coordinates: Annotated[
        str | None,
        typer.Option(help="What a file does not say: lorentz, poincare, klein or tangent.", show_default=False),
    ] = None,
    force: Force = False,
    no_final: NoFinal = False,
) -> None:
    """Walk through an embedding on the Poincaré disk: drag, zoom, search, neighbours, likely links, depth.

    The page is served to this machine alone, until Ctrl-C; with --export it is one file that works from disk.

    Example: h2hgcn explore runs/disease-lp-h2h-gcn-seed0 --export disease.html
    """
    if export is not None:
        check_free(export, force)
    else:
        _check_server()
    with starting():
        from h2hgcn.cli.scene import open_scene

        scene = open_scene(run, edges, coordinates, final=not no_final)
    if export is not None:
        from h2hgcn.explorer import write_page

        write_page(export, scene)
        count = len(scene.points)
        stderr.print(f"{count:,} point{'' if count == 1 else 's'}: {export}", soft_wrap=True)
        return
    from h2hgcn.explorer.server import address_of, open_port, serve

    opened = open_port(port)
    stdout.print(f"{address_of(opened)}   (Ctrl-C ends it)", soft_wrap=True)
    serve(scene, opened, browser=not no_browser)


def _check_server() -> None:
    missing = [name for name in ("fastapi", "uvicorn") if find_spec(name) is None]
    if missing:
        raise DataError(
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed; "
            "pip install 'h2hgcn[explorer]', or write a file with --export"
        )
