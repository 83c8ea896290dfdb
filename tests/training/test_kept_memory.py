"""What the C library does with memory that is freed."""

import os
import platform
from pathlib import Path

import pytest

from h2hgcn.training import kept_memory as module
from h2hgcn.training.kept_memory import give_back, kept_memory

SIZE = 256  # megabytes

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is another one")


def megabytes():
    """That the process has in memory."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def use_and_free():
    block = bytearray(SIZE << 20)
    block[:: 1 << 12] = bytes([1]) * len(block[:: 1 << 12])


@pytest.fixture(autouse=True)
def usual(monkeypatch):
    for name in ("MALLOC_ARENA_MAX", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES"):
        monkeypatch.delenv(name, raising=False)


def test_what_is_freed_is_kept_until_the_end():
    before = megabytes()
    with kept_memory():
        use_and_free()
        assert megabytes() > before + SIZE * 0.9
    assert megabytes() < before + SIZE * 0.5
    use_and_free()
    assert megabytes() < before + SIZE * 0.5


def test_what_is_free_is_given_back_now_and_then(monkeypatch):
    before = megabytes()
    with kept_memory():
        monkeypatch.setattr(module, "_given_back", float("-inf"))
        use_and_free()
        give_back()
        assert megabytes() < before + SIZE * 0.5
        use_and_free()
        give_back()  # not so soon
        assert megabytes() > before + SIZE * 0.9


def test_an_allocator_that_somebody_has_set_up_is_left_alone(monkeypatch):
    monkeypatch.setenv("MALLOC_ARENA_MAX", "2")
    before = megabytes()
    with kept_memory():
        use_and_free()
        assert megabytes() < before + SIZE * 0.5
        give_back()


def test_one_within_another_ends_with_the_outer():
    before = megabytes()
    with kept_memory():
        with kept_memory():
            pass
        use_and_free()
        assert megabytes() > before + SIZE * 0.9


def test_a_child_that_is_forked_within_is_as_usual():
    with kept_memory():
        child = os.fork()
        if not child:
            before = megabytes()
            use_and_free()
            os._exit(0 if megabytes() < before + SIZE * 0.5 else 1)
        assert os.waitpid(child, 0)[1] == 0
