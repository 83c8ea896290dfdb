import os
import signal
import subprocess
import sys

import pytest

from h2hgcn.files import atomic_write

WRITER = """
import sys, time
from pathlib import Path
from h2hgcn.files import atomic_write
with atomic_write(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    print("writing", flush=True)
    time.sleep(600)
"""


def write_and_fail(path):
    with atomic_write(path) as file:
        file.write(b"new")
        raise ArithmeticError


def test_a_file_is_there_whole_or_not_at_all(tmp_path):
    path = tmp_path / "deep" / "file"
    with atomic_write(path) as file:
        file.write(b"old")
        assert not path.exists()
    with pytest.raises(ArithmeticError):
        write_and_fail(path)
    assert path.read_bytes() == b"old"
    assert [file.name for file in path.parent.iterdir()] == ["file"]


def test_what_a_killed_process_left_is_removed_and_never_read(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    command = [sys.executable, "-W", "ignore", "-c", WRITER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "writing\n"
        with atomic_write(path) as file:  # beside one that is still at work
            file.write(b"ours")
        assert len(list(tmp_path.iterdir())) == 2
        os.kill(process.pid, signal.SIGKILL)
    assert path.read_bytes() == b"ours"
    assert len(list(tmp_path.iterdir())) == 2
    with atomic_write(path) as file:
        file.write(b"new")
    assert [file.name for file in tmp_path.iterdir()] == ["file"]
    assert path.read_bytes() == b"new"


def test_a_file_that_cannot_be_written_is_named_as_the_caller_knows_it(tmp_path):
    path = tmp_path / ("x" * 255)  # too long once letters are added
    with pytest.raises(OSError, match="too long") as told, atomic_write(path):
        pass
    assert told.value.filename == str(path)


def test_a_link_stays_one(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    link.symlink_to("real")
    for text in (b"old", b"new"):
        with atomic_write(link) as file:
            file.write(text)
        assert link.is_symlink()
        assert real.read_bytes() == text


def test_a_full_disk_is_named(tmp_path):
    with pytest.raises(OSError, match="no space") as caught, atomic_write(tmp_path / "file"):
        raise OSError(28, "no space")
    assert caught.value.filename == str(tmp_path / "file")
