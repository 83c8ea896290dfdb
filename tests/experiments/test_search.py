"""Settings that choose themselves."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from runs import same_weights
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from h2hgcn.datasets import load_graph
from h2hgcn.errors import DataError
from h2hgcn.experiments import search as search_module
from h2hgcn.experiments.config import read_experiment
from h2hgcn.experiments.presets import candidates_for
from h2hgcn.experiments.search import SearchStopped, choose_settings, connected_part
from h2hgcn.experiments.train import run_experiment
from h2hgcn.models import ENCODERS
from h2hgcn.training import load_run

pytestmark = pytest.mark.filterwarnings("ignore::h2hgcn.errors.DataWarning")
FEW = {"training": {"epochs": 3, "device": "cpu"}, "model": {"dim": 4}, "search": "fast"}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("graph")
    random = np.random.RandomState(0)
    edges = {tuple(sorted(random.choice(60, 2, replace=False))) for _ in range(240)}
    path = folder / "my.csv"
    path.write_text("source,target\n" + "".join(f"n{a},n{b}\n" for a, b in sorted(edges)))
    return {"edges": str(path)}


def experiment_of(files, **more):
    return read_experiment({"data": files, **FEW, **more})


@pytest.mark.parametrize("task", ["lp", "nc", "gc"])
@pytest.mark.parametrize("model", ENCODERS)
def test_every_model_has_candidates_of_its_own_options(task, model):
    if task not in ENCODERS[model].tasks:
        pytest.skip("not its task")
    assert len(candidates_for(task, model)) <= 12
    data = {"dataset": "enzymes"} if task == "gc" else {"edges": "my.csv"}
    flags = {"data": data, "task": {"name": task}, "model": {"name": model}, "search": "fast"}
    experiment = read_experiment(flags)
    digests = [one.digest for one in experiment.candidates.values()]
    assert len(set(digests)) == len(digests)


def test_flags_hold_for_every_candidate(files):
    experiment = experiment_of(files, model={"dim": 5, "num_layers": 2, "node_vectors": True})
    assert len(experiment.candidates) > 1
    assert {one.model_options["num_layers"] for one in experiment.candidates.values()} == {2}
    assert {one.settings.epochs for one in experiment.candidates.values()} == {3}


@pytest.mark.parametrize(
    ("flags", "mode"),
    [
        ({"data": {"edges": "my.csv"}}, "fast"),
        ({"data": {"dataset": "airport"}, "task": {"name": "lp"}}, "none"),  # published settings
        ({"data": {"dataset": "airport"}, "task": {"name": "lp", "protocol": "clean"}}, "fast"),
        ({"data": {"dataset": "airport"}, "task": {"name": "nc"}}, "fast"),  # its usual split is the clean one
        ({"data": {"dataset": "disease"}}, "none"),
        ({"data": {"dataset": "hyperbolic-10k"}}, "fast"),
    ],
)
def test_when_there_is_a_search(flags, mode):
    experiment = read_experiment({**flags, "search": "auto"})
    assert experiment.search == mode
    assert (len(experiment.candidates) > 1) == (mode == "fast")


def test_no_search_where_a_file_gives_settings(files, tmp_path):
    path = tmp_path / "best.toml"
    path.write_text("[model]\ndropout = 0.5\n")
    assert read_experiment({"data": files, "search": "auto"}, path).search == "none"


def test_a_mode_that_is_not_known(files):
    with pytest.raises(DataError, match="search='quick' is not known; use auto, none, fast, thorough"):
        experiment_of(files, search="quick")


def test_a_run_with_a_search_is_repeated_and_resumed(files, tmp_path):
    experiment = experiment_of(files)
    graph = load_graph(files["edges"])
    first = run_experiment(experiment, graph, tmp_path / "first")
    assert first.config["search"]["chosen"] == first.config["search"]["candidates"][0]["name"]
    chosen = experiment.candidates[first.config["search"]["chosen"]]
    assert first.config["model"]["num_layers"] == chosen.encoder(8, num_nodes=60).config["num_layers"]
    assert not (tmp_path / "first" / ".search").exists()
    assert load_run(tmp_path / "first").config["search"] == first.config["search"]

    epochs = []
    with pytest.raises(SearchStopped):
        run_experiment(
            experiment, graph, tmp_path / "second", on_search=lambda *done: epochs.append(done),
            should_stop=lambda: len(epochs) >= 4,
        )  # fmt: skip
    assert (tmp_path / "second" / ".search").exists()
    again = []
    second = run_experiment(experiment, graph, tmp_path / "second", on_search=lambda *done: again.append(done))
    assert again
    assert second.config["search"] == first.config["search"]
    assert same_weights(first, second)


def test_the_choice_of_a_run_that_has_begun_stands(files, tmp_path):
    experiment, graph = experiment_of(files), load_graph(files["edges"])
    stopped = run_experiment(experiment, graph, tmp_path / "run", should_stop=_after(1))
    assert not stopped.finished
    searched = []
    run = run_experiment(experiment, graph, tmp_path / "run", on_search=lambda *done: searched.append(done))
    assert run.finished
    assert not searched


@pytest.mark.parametrize("old", [{"search": "none"}, {}])  # other settings, or the very same command
def test_a_forced_search_that_was_stopped_resumes_without_force(files, tmp_path, old):
    graph, folder = load_graph(files["edges"]), tmp_path / "run"
    run_experiment(experiment_of(files, **old), graph, folder)
    experiment, epochs = experiment_of(files), []
    with pytest.raises(SearchStopped):
        run_experiment(
            experiment, graph, folder, force=True, on_search=lambda *done: epochs.append(done),
            should_stop=lambda: len(epochs) >= 4,
        )  # fmt: skip
    assert load_run(folder).finished  # the old run is there until the search is over
    again, trained = [], []
    run = run_experiment(
        experiment, graph, folder, on_search=lambda *done: again.append(done), on_epoch=lambda *_: trained.append(1)
    )
    assert again
    assert trained
    assert not (folder / ".search").exists()
    assert same_weights(run, run_experiment(experiment, graph))
    assert load_run(folder).config["search"] == run.config["search"]


def test_a_forced_run_that_was_stopped_after_its_search_resumes_its_training(files, tmp_path):
    experiment, graph, folder = experiment_of(files), load_graph(files["edges"]), tmp_path / "run"
    run_experiment(experiment_of(files, search="none"), graph, folder)
    stopped = run_experiment(experiment, graph, folder, force=True, should_stop=_after(1))
    assert not stopped.finished
    epochs = []
    run = run_experiment(experiment, graph, folder, on_epoch=lambda report, state: epochs.append(report.epoch))
    assert epochs[0] > 1
    assert run.finished


def test_all_candidates_fail(files, tmp_path):
    experiment = experiment_of(files, model={"dim": 4, "stem": False, "node_vectors": False})
    assert len(experiment.candidates) > 1
    for _ in range(2):  # they are tried again
        with pytest.raises(DataError, match=r"all .* candidate settings failed:") as error:
            run_experiment(experiment, load_graph(files["edges"]), tmp_path / "run")
        text = str(error.value)
        assert all(name in text for name in experiment.candidates)
        assert "orthonormal columns cannot map" in text
        assert not list((tmp_path / "run").rglob("*.json"))
    with pytest.raises(DataError, match="candidate settings failed:"):
        choose_settings(experiment, load_graph(files["edges"]))


def _after(count):
    """Stops training, but not the search before it."""
    state = {"training": 0}

    def should_stop():
        import traceback

        if any("fit.py" in frame.filename for frame in traceback.extract_stack()):
            state["training"] += 1
        return state["training"] > count

    return should_stop


def test_a_candidate_that_fails_is_noted(files, monkeypatch):
    experiment, graph = experiment_of(files), load_graph(files["edges"])
    name, *_ = experiment.candidates
    bad = {name: replace(experiment.candidates[name], model_options={"dim": 4, "stem": False})}
    experiment = replace(experiment, candidates=experiment.candidates | bad)
    _, search = choose_settings(experiment, graph)
    assert any(
        note.startswith(f"the settings {name!r} were skipped: the model cannot be made") for note in search.notes
    )
    assert search.chosen != name
    assert json.dumps(search.to_dict())


def test_thorough_trains_every_candidate_in_full(files):
    experiment, graph = experiment_of(files, search="thorough"), load_graph(files["edges"])
    _, search = choose_settings(experiment, graph)
    assert {standing.epochs for standing in search.standings} == {3}


def test_a_large_graph_is_raced_on_a_connected_part(monkeypatch):
    random = np.random.RandomState(0)
    edges = np.unique(np.sort(random.randint(0, 3000, (9000, 2)), axis=1), axis=0)
    graph = load_graph(edges[edges[:, 0] != edges[:, 1]])
    graph.y = torch.arange(graph.num_nodes) % 3
    part = connected_part(graph, 1000, seed=0)
    assert 900 <= part.edge_index.shape[1] // 2 <= 1000
    assert part.x.shape[0] == part.y.shape[0] == part.num_nodes == len(part.node_ids)
    assert int(part.edge_index.max()) < part.num_nodes
    linked = {tuple(graph.node_ids[pair].tolist()) for pair in graph.edge_index.T.numpy()}
    assert {tuple(part.node_ids[pair].tolist()) for pair in part.edge_index.T.numpy()} <= linked

    monkeypatch.setattr(search_module, "LARGE", 1000)
    monkeypatch.setattr(search_module, "_RUNGS", {1000: (1, 2)})
    flags = {"data": {"edges": "my.csv"}, **FEW}
    _, search = choose_settings(read_experiment(flags), graph)
    assert search.sampled


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
def test_a_part_of_sparse_features(monkeypatch, layout):
    graph = ring_of(3000)
    dense = (torch.rand(3000, 20, generator=torch.Generator().manual_seed(0)) < 0.1).float()
    graph.x = dense.to_sparse(layout=layout)
    part = connected_part(graph, 100, seed=0)
    torch.testing.assert_close(part.x.to_dense(), dense[part.node_ids])

    monkeypatch.setattr(search_module, "LARGE", 300)
    monkeypatch.setattr(search_module, "_RUNGS", {300: (1, 2)})
    _, search = choose_settings(read_experiment({"data": {"edges": "my.csv"}, **FEW}), graph)
    assert search.sampled
    assert not search.notes


def ring_of(count, **more):
    ends = torch.stack([torch.arange(count), (torch.arange(count) + 1) % count])
    return Data(edge_index=to_undirected(ends), num_nodes=count, node_ids=np.arange(count), **more)


def test_a_part_of_many_components():
    """Ten thousand pairs, of which a hundred components have far too few edges."""
    first = torch.arange(0, 20_000, 2)
    graph = Data(edge_index=to_undirected(torch.stack([first, first + 1])), num_nodes=20_000)
    part = connected_part(graph, 1000, seed=0)
    assert part.edge_index.shape[1] == 2 * 1000
    assert part.num_nodes == 2 * 1000


def test_directed_edges_are_counted_once(monkeypatch):
    ends = torch.stack([torch.arange(1000), (torch.arange(1000) + 1) % 1000])
    directed = Data(edge_index=ends, num_nodes=1000, directed=True, x=torch.eye(1000, 5))
    assert connected_part(directed, 300, seed=0).edge_index.shape[1] == 300
    monkeypatch.setattr(search_module, "LARGE", 900)
    monkeypatch.setattr(search_module, "_RUNGS", {900: (1, 2)})
    _, search = choose_settings(read_experiment({"data": {"edges": "my.csv"}, **FEW}), directed)
    assert search.sampled  # 1,000 edges, not 500
