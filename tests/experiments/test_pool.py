import multiprocessing
import subprocess
import sys
import time

from h2hgcn.errors import DataError
from h2hgcn.experiments.runner import Cell, CellPool


def test_a_pool_ends_its_own_processes_alone():
    other = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(600,))  # a pool may start slowly
    other.start()
    pool = CellPool(1)
    submitted = pool._executor.submit(time.sleep, 60)
    while pool._numbers.empty():
        time.sleep(0.05)
    pool.__exit__(KeyboardInterrupt, None, None)
    assert submitted.exception(timeout=30) is not None
    assert other.is_alive()
    other.kill()
    other.join()


_INTERRUPTED = """
import os, signal
from pathlib import Path

from h2hgcn.experiments.runner import Cell, CellPool

asked = []


def should_stop():
    if not asked:
        os.killpg(0, signal.SIGINT)  # as a terminal does, while the process of the pool still starts
    return bool(asked)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, lambda *_: asked.append(True))
    with CellPool(1) as pool:
        print([outcome.status for _, outcome in pool.outcomes([Cell({}, Path("run"))], should_stop)])
"""


def test_an_interrupt_while_processes_start_leaves_them_alone(tmp_path):
    script = tmp_path / "interrupted.py"
    script.write_text(_INTERRUPTED, encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, start_new_session=True, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "['stopped']\n", "")


def test_a_cell_that_cannot_be_run_is_an_outcome_and_the_next_is_run(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").touch()
    short = {"model": {"dim": 2}, "training": {"epochs": 1}}
    with CellPool(1) as pool:
        cells = [Cell(short, tmp_path / "full", key=0), Cell(short, tmp_path / "run", key=1)]
        outcomes = {cell.key: outcome for cell, outcome in pool.outcomes(cells)}
    assert isinstance(outcomes[0].error, DataError)
    assert "letter.txt" in outcomes[0].message
    assert outcomes[1].status == "finished"
