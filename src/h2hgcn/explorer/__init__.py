"""A page to move through a hyperbolic embedding, served to this machine or written into one file."""

from h2hgcn.explorer.export import write_page
from h2hgcn.explorer.scene import Scene, make_scene

__all__ = ["Scene", "make_scene", "write_page"]
