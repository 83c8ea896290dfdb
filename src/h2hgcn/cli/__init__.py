"""The command line: parses, calls, prints."""

from h2hgcn.cli.app import main

__all__ = ["main"]
