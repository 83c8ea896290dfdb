"""Commands that are killed at any change of the file system, and run again: the same output, nothing half-written."""

import multiprocessing
import os
import shutil
import signal

import pytest
from faults_processes import change_until_killed, whole_files


def kill(folder, arguments, changes):
    os.environ["H2HGCN_CACHE"] = str(folder / "cache")
    os.environ.pop("H2HGCN_DATA", None)
    change_until_killed(folder, arguments, changes)


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
        child = children.Process(target=kill, args=(folder, arguments, changes))
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
