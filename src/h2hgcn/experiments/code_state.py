"""Which code made a number."""

import hashlib
from functools import cache
from pathlib import Path


@cache
def code_fingerprint() -> str:
    """Of the modules of this package: the version stays the same between two releases, the code does not."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for module in sorted(package.rglob("*.py")):
        digest.update(f"{module.relative_to(package).as_posix()}\0".encode())
        digest.update(module.read_bytes())
    return digest.hexdigest()[:16]
