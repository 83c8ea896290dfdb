"""Messages of errors inside other messages."""

import pytest

from h2hgcn.errors import first_line


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("no such host.\nmore"), "no such host"),
        (OSError("  \n"), "OSError"),
        (AssertionError(), "AssertionError"),
    ],
)
def test_first_line(error, line):
    assert first_line(error) == line
