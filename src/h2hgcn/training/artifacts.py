"""temporary"""

from typing import Any


def write_embeddings_of(run: Any, path: Any) -> None: ...
def write_report_of(run: Any, path: Any) -> None: ...
