"""Commands that are killed at any change of the file system, and run again: the same output, nothing half-written."""

import hashlib
import multiprocessing
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.truncate", "os.link", "os.symlink", "shutil.move"}


def change_until_killed(folder, arguments, changes):
    """Runs a command in a folder, and kills this process just before its change number ``changes`` of files there."""
    from h2hgcn.cli import main

    left = [changes]

    def watch(event, given):
        wanted = event in CHANGES or (event == "open" and given[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        path = given[0] if given and isinstance(given[0], str | os.PathLike) else ""
        if wanted and str(folder) in str(Path.cwd() / path):
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    os.chdir(folder)
    os.environ["H2HGCN_CACHE"] = str(folder / "cache")
    os.environ.pop("H2HGCN_DATA", None)
    sys.argv = ["h2hgcn", *map(str, arguments)]
    sys.stdout = sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115  # the process ends with it
    sys.addaudithook(watch)
    main()


def whole_files(folder):
    """What a person sees: files without a dot, by content."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    }


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (("recommend", "lp", "--top", 30, "--out", "links.csv"), "links.csv"),
        (("finalize", "lp"), "lp/final/model.safetensors"),
    ],
    ids=("recommend", "finalize"),
)
def test_killed_at_every_change_and_the_same_in_the_end(trained, tmp_path, monkeypatch, arguments, output):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    children = multiprocessing.get_context("forkserver")  # they begin with everything imported, which takes seconds
    children.set_forkserver_preload(
        ["h2hgcn.cli.predict", "h2hgcn.training", "pandas", "pyarrow.csv", "sklearn.metrics"]
    )
    folder = tmp_path / "folder"

    def ends(changes):
        child = children.Process(target=change_until_killed, args=(folder, arguments, changes))
        child.start()
        child.join(120)
        assert child.exitcode in (0, -signal.SIGKILL)
        return child.exitcode == 0

    shutil.copytree(trained, folder)
    before = whole_files(folder)
    assert ends(changes=10**9)
    wanted = whole_files(folder)
    shutil.rmtree(folder)  # a final fit names the folder of its run, so that it is the same one
    shutil.copytree(trained, folder)
    kills = 0
    while not ends(changes=kills):  # each begins with what the last one left
        kills += 1
        found = whole_files(folder)
        assert set(before) <= set(found)
        if output == "links.csv":  # a run grows with its epochs
            assert all(digest in (before.get(name), wanted.get(name)) for name, digest in found.items())
        assert kills < 200
    assert kills >= 2
    found = whole_files(folder)
    assert found[output] == wanted[output]
    assert set(found) == set(wanted)
    assert not list(folder.rglob(".*.part"))
