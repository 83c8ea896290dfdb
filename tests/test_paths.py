"""A reader who follows one call crosses few files."""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
from runs import small_data

import h2hgcn
from h2hgcn.datasets.loading import load_graph
from h2hgcn.experiments.reproduce import paper_table, runs_of
from h2hgcn.experiments.results_page import results_page
from h2hgcn.models import H2HGCN
from h2hgcn.tasks import LinkPrediction
from h2hgcn.training import TrainingSettings, build_optimizer
from h2hgcn.training.loop import run_epoch

ROOT = Path(h2hgcn.__file__).parent


def files_crossed(call):
    found = set()

    def note(frame, event, _):
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(ROOT):
            found.add(path.relative_to(ROOT).as_posix())

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return found


def test_a_training_step_of_links():
    problem = LinkPrediction().bind(small_data())
    model = problem.build(H2HGCN(problem.in_features, 4))
    optimizer, settings = build_optimizer(model), TrainingSettings()

    def step():
        run_epoch(problem, model, optimizer, settings, problem.batches(np.random.RandomState(0)))

    step()  # adjacencies and features are prepared, loops are compiled
    crossed = files_crossed(step)
    assert len(crossed) <= 15, " ".join(sorted(crossed))


def test_a_csv_file_becomes_a_graph(tmp_path):
    (tmp_path / "edges.csv").write_text("source,target,weight\nann,bob,1\nbob,eve,2\n")
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        crossed = files_crossed(lambda: found.append(load_graph(tmp_path / "edges.csv")))
    assert found[0].num_edges == 4
    assert len(crossed) <= 5, " ".join(sorted(crossed))


def test_a_cell_of_a_table_from_toml_to_the_page(tmp_path):
    run = runs_of(paper_table("table1"), "legacy", 1, ["disease-lp"], ["h2h-gcn"])[0]
    metrics = {part: {"auc": 0.875} for part in ("val", "test")}
    record = {
        "hash": run.digest, "seed": 0, "column": "disease-lp", "protocol": "legacy", "fold": None,
        "status": "finished", "selection": "auc", "metrics": metrics, "seconds": 1.0,
    }  # fmt: skip
    (tmp_path / "table1.jsonl").write_text(json.dumps(record))
    pages = []
    crossed = files_crossed(lambda: pages.append(results_page(tmp_path)))
    assert "| 87.5 (1) /" in pages[0]
    ours = {path for path in crossed if path.startswith("experiments/")}
    assert len(ours) <= 6, " ".join(sorted(ours))
    # settings are checked where they are used: by the task, the training and the options
    assert len(crossed) <= 10, " ".join(sorted(crossed))


def test_the_package_stays_readable():
    files = [path for path in ROOT.rglob("*.py") if path.name != "__init__.py"]
    assert len(files) <= 125
