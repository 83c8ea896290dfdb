"""How much memory a piece of work took at its peak, where the system tells."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_RESET = Path("/proc/self/clear_refs")
_STATUS = Path("/proc/self/status")


class Peak:
    """``megabytes`` is that of the whole process, None where the system does not tell."""

    megabytes: float | None = None


@contextmanager
def peak_memory() -> Iterator[Peak]:
    """Measures what is done within."""
    peak = Peak()
    with suppress(OSError):
        _RESET.write_text("5")  # Linux: forget the peak so far
    yield peak
    with suppress(OSError, ValueError, IndexError):
        line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM"))
        peak.megabytes = int(line.split()[1]) / 1024
