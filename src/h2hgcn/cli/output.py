"""Where output goes: results to stdout, everything said beside them to stderr."""

import json
from typing import Any

from rich.console import Console

stdout = Console()
stderr = Console(stderr=True)


def print_json(value: Any) -> None:
    """One JSON document and nothing else, so that it can be piped."""
    print(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))
