"""What the C library does with memory that is freed, in processes whose heap nobody else has used."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from h2hgcn.cli import memory

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is another one")

# The module by itself, without PyTorch; ``kept()`` says whether a block of 256 MB that is freed stays.
START = f"""
import importlib.util, os, time
from pathlib import Path

spec = importlib.util.spec_from_file_location("memory", {str(Path(memory.__file__))!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
kept_memory = module.kept_memory
SIZE = 256

def megabytes():
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024

def use_and_free():
    block = bytearray(SIZE << 20)
    block[:: 1 << 12] = bytes([1]) * len(block[:: 1 << 12])

before = megabytes()

def kept():
    more = megabytes() - before
    assert more < SIZE * 0.5 or more > SIZE * 0.9, more
    return more > SIZE * 0.9
"""


def check(script, **variables):
    chosen = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    command = [sys.executable, "-c", START + script]
    run = subprocess.run(command, env=chosen | variables, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr


def test_what_is_freed_is_kept_until_the_end():
    check("""
with kept_memory():
    use_and_free()
    assert kept()
assert not kept()
use_and_free()
assert not kept()
""")


def test_what_is_free_is_given_back_now_and_then():
    check("""
module._INTERVAL = 0.2
with kept_memory():
    use_and_free()
    time.sleep(1)
    assert not kept()
""")


def test_an_error_within_ends_it_too():
    check("""
try:
    with kept_memory():
        use_and_free()
        raise KeyError
except KeyError:
    assert not kept()
use_and_free()
assert not kept()
""")


@pytest.mark.parametrize("variable", ["MALLOC_ARENA_MAX", "GLIBC_TUNABLES"])
def test_an_allocator_that_somebody_has_set_up_is_left_alone(variable):
    value = "2" if variable.startswith("MALLOC") else "glibc.malloc.arena_max=2"
    check("""
with kept_memory():
    use_and_free()
    assert not kept()
""", **{variable: value})  # fmt: skip
