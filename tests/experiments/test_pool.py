import multiprocessing
import time

from h2hgcn.errors import DataError
from h2hgcn.experiments.cells import Cell
from h2hgcn.experiments.pool import CellPool, cell_pool


def test_a_pool_ends_its_own_processes_alone():
    other = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))
    other.start()
    pool = CellPool(1)
    submitted = pool._executor.submit(time.sleep, 60)
    while pool._numbers.empty():
        time.sleep(0.05)
    pool.kill()
    assert submitted.exception(timeout=30) is not None
    assert other.is_alive()
    other.kill()
    other.join()


def test_a_cell_that_cannot_be_run_is_an_outcome_and_the_next_is_run(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").touch()
    short = {"model": {"dim": 2}, "training": {"epochs": 1}}
    with cell_pool(1) as pool:
        cells = [Cell(short, tmp_path / "full"), Cell(short, tmp_path / "run")]
        outcomes = dict(pool.outcomes(cells))
    assert isinstance(outcomes[0].error, DataError)
    assert "letter.txt" in outcomes[0].message
    assert outcomes[1].status == "finished"
