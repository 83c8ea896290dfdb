"""Signals to stop: the first lets the epoch end, the second ends the program."""

import signal
from types import FrameType
from typing import Any, Self

from h2hgcn.cli.output import say

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def command_to_resume(force: bool) -> str:
    """What to run again; --force would start from the beginning."""
    return "the same command without --force" if force else "the same command"


class StopAfterEpoch:
    """Within, SIGINT and SIGTERM only ask to stop."""

    def __init__(self) -> None:
        self._asked = 0
        self._before: dict[int, Any] = {}

    def wanted(self) -> bool:
        return self._asked > 0

    def __enter__(self) -> Self:
        for number in _SIGNALS:
            self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self._asked += 1
        if self._asked == 2:
            raise KeyboardInterrupt
        if self._asked == 1:  # after the second one everything is about to end, and must not be disturbed
            say("stopping", "bold yellow", "when this epoch is over; once more to stop at once")
