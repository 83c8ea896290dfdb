import itertools
import json

import numpy as np
import pytest
from runs import SMALL, Flat, scale_free, small_fit

from h2hgcn.datasets.disease import generate_disease
from h2hgcn.embeddings import nearest as link_index
from h2hgcn.errors import DataError, DataWarning
from h2hgcn.files import stamped, unstamped
from h2hgcn.tasks import Embedding, LinkPrediction, NodeClassification
from h2hgcn.training import load_run, recommending
from h2hgcn.training.recommending import recommend_links_of, top_links_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "lp"
    small_fit(epochs=2, folder=path)
    return path


def test_links_of_some_nodes_are_those_of_each(folder):
    run = load_run(folder)
    columns = recommend_links_of(run, [3, 77], 5)
    assert columns["node"].tolist() == [3] * 5 + [77] * 5
    assert columns["rank"].tolist() == [1, 2, 3, 4, 5] * 2
    for node in (3, 77):
        chosen = columns["node"] == node
        wanted = run.recommend(node, 5)
        assert columns["other"][chosen].tolist() == [row.node for row in wanted]
        assert columns["distance"][chosen] == pytest.approx([row.distance for row in wanted], rel=1e-6)
        assert columns["probability"][chosen] == pytest.approx([row.probability for row in wanted], rel=1e-5)


def test_all_nodes(folder):
    columns = recommend_links_of(load_run(folder), None, 2)
    assert columns["node"].tolist() == np.repeat(np.arange(200), 2).tolist()


def test_a_classifier_and_flat_points_have_distances():
    run = small_fit(NodeClassification(link_weight=0.0), model=Flat, epochs=1)
    columns = recommend_links_of(run, [5], 3)
    assert "probability" not in columns
    assert columns["other"].tolist() == [row.node for row in run.recommend(5, 3)]
    with_links = small_fit("nc", epochs=1)
    wanted = [row.probability for row in with_links.recommend(5, 3)]
    assert recommend_links_of(with_links, [5], 3)["probability"] == pytest.approx(wanted, rel=1e-5)


def test_an_index_is_kept_beside_the_run_and_belongs_to_it(folder, tmp_path):
    pytest.importorskip("faiss")
    said = []
    first, again = (recommend_links_of(load_run(folder), None, 3, "hnsw", say=said.append) for _ in range(2))
    assert len(said) == 1
    assert said[0].startswith("hnsw index of 200 points: recall@10 ")
    assert first["other"].tolist() == again["other"].tolist()
    exact = recommend_links_of(load_run(folder), None, 3, "exact")
    assert (first["other"] == exact["other"]).mean() > 0.95
    small_fit(epochs=1, seed=1, folder=tmp_path / "other")
    for name in ("index.faiss", "index.json"):
        (tmp_path / "other" / name).write_bytes((folder / name).read_bytes())
    whole, other = (folder / "index.faiss").read_bytes(), tmp_path / "other"
    recommend_links_of(load_run(other), None, 3, "hnsw", say=said.append)  # one of other points is built again
    assert len(said) == 2
    foreign = (other / "index.faiss").read_bytes()
    for damaged in (b"nothing", foreign, whole[:-1] + bytes([whole[-1] ^ 1])):
        (folder / "index.faiss").write_bytes(damaged)
        again = recommend_links_of(load_run(folder), None, 3, "hnsw")
        assert first["other"].tolist() == again["other"].tolist()
        assert (folder / "index.faiss").read_bytes() == whole
    for damaged in (b"", b"[]", b"{"):
        (folder / "index.json").write_bytes(damaged)
        assert recommend_links_of(load_run(folder), None, 3, "hnsw")["other"].tolist() == first["other"].tolist()
    small_fit(epochs=1, folder=tmp_path / "other", force=True)
    assert not (tmp_path / "other" / "index.faiss").exists()


def all_pairs(run, directed=False):
    """Every pair that is not linked, by number."""
    links = {tuple(pair) for pair in run.links.T.tolist()} | (
        set() if directed else {tuple(pair[::-1]) for pair in run.links.T.tolist()}
    )
    pairs = itertools.permutations if directed else itertools.combinations
    return np.array([pair for pair in pairs(range(run.data.num_nodes), 2) if pair not in links])


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("index", ["exact", "hnsw"])
def test_the_likeliest_links_are_those_of_predict(directed, index, monkeypatch):
    monkeypatch.setattr(recommending, "POPULAR", 5)
    monkeypatch.setattr(recommending, "_FIRST", 2)
    if index != "exact":
        pytest.importorskip("faiss")
    task = LinkPrediction(decoder="popularity", neighborhood_terms=True, val=0.2)
    run = small_fit(task, scale_free(directed), epochs=5)
    assert run.link_decoder.sees_neighborhoods
    pairs = all_pairs(run, directed)
    logits = run.link_logits(pairs).numpy()
    wanted = pairs[np.argsort(-logits, kind="stable")[:50]]
    found = run.recommend_top(50, index)
    assert [[link.source, link.target] for link in found] == wanted.tolist()
    assert [link.probability for link in found] == pytest.approx(run.predict(wanted).tolist())
    frame = found.to_pandas()
    assert list(frame.columns) == ["rank", "source", "target", "distance", "probability"]
    assert frame["rank"].tolist() == list(range(1, 51))


@pytest.mark.parametrize("model", [SMALL, Flat, lambda n: Flat(n, space="ball")])
@pytest.mark.parametrize("task", [Embedding(), NodeClassification(link_weight=0.0), LinkPrediction()])
def test_without_terms_the_nearest_come_first(model, task):
    run = small_fit(task, model=model, epochs=2)
    found = top_links_of(run, 40)
    pairs = all_pairs(run)
    nearest = {
        (min(row), max(row)): distance for row, distance in zip(*_lists(recommend_links_of(run, None, 10)), strict=True)
    }
    assert set(zip(found["source"].tolist(), found["target"].tolist(), strict=True)) <= set(map(tuple, pairs.tolist()))
    assert found["distance"] == pytest.approx(sorted(nearest.values())[:40], rel=1e-5)
    assert ("probability" in found) == (task.name == "lp")
    assert run.recommend_top(1)[0].probability is None or task.name == "lp"


def _lists(columns):
    return zip(columns["node"].tolist(), columns["other"].tolist(), strict=True), columns["distance"].tolist()


def test_all_links_that_are_left_and_none():
    data = generate_disease(30)
    run = small_fit(LinkPrediction(val=0.2, test=0.2), data, epochs=1)
    left = 30 * 29 // 2 - 29
    with pytest.warns(DataWarning, match=f"1,000 links were asked for; {left} are left"):
        assert len(run.recommend_top(1000)) == left
    for k, message in ((0, "at least 1"), (2.5, "whole number")):
        with pytest.raises(DataError, match=message):
            run.recommend_top(k)
    full = run.data.clone()
    full.edge_index = run.data.edge_index.new_tensor(list(itertools.permutations(range(30), 2))).T
    run.data = full
    with pytest.raises(DataError, match="all pairs of nodes are linked"):
        run.recommend_top(3)
    for nodes in (5, [5, 6]):
        with pytest.raises(DataError, match="node 5 is linked to all other nodes"):
            run.recommend(nodes, 3)


def test_nodes_with_different_counts_in_a_frame():
    data = generate_disease(30)
    run = small_fit(LinkPrediction(val=0.2, test=0.2), data, epochs=1)
    with pytest.warns(DataWarning, match="missing links of the 28 asked for"):
        found = run.recommend([0, 29], 28)
    degrees = np.bincount(data.edge_index[0].numpy(), minlength=30)
    frame = found.to_pandas()
    for node in (0, 29):
        ranks = frame["rank"][frame["node"] == node].tolist()
        assert ranks == list(range(1, 30 - degrees[node]))
    with pytest.warns(DataWarning, match=r"node 0 has \d+ missing links of the 29 asked for"):
        assert run.recommend(0, 29).to_pandas()["other"].tolist() == frame["other"][frame["node"] == 0].tolist()


@pytest.mark.parametrize(
    ("helps", "most_exact", "ending"),
    [
        (True, 200_000, " if searched wider"),
        (False, 200_000, "if searched wider; search is exact instead"),
        (False, 100, "; some of the likeliest links are missed, --index exact finds all"),
    ],
)
def test_an_index_that_misses_much_is_not_trusted(folder, tmp_path, monkeypatch, helps, most_exact, ending):
    pytest.importorskip("faiss")
    small_fit(epochs=2, folder=tmp_path / "run")
    search = link_index.FaissSearch.search

    def poor_search(self, nodes, count):
        found = search(self, nodes, count)
        return found if helps and self.width > 1 else np.where(np.arange(found.shape[1]) % 2, found, -1)

    monkeypatch.setattr(link_index.FaissSearch, "search", poor_search)
    monkeypatch.setattr(recommending, "_MOST_EXACT", most_exact)
    run, said = load_run(tmp_path / "run"), []
    exact = recommend_links_of(run, None, 3, "exact")
    for _ in range(2):
        found = recommend_links_of(run, None, 3, "hnsw", say=said.append)
        same = np.isclose(found["distance"], exact["distance"], atol=1e-5).mean()
        assert (same > 0.99) == (most_exact > 100)  # a search of an index finds nearly all
    assert said[0].endswith(ending)
    assert len(said) == (1 if helps else 2)
    about = unstamped(json.loads((tmp_path / "run" / "index.json").read_text()))
    assert about["width"] == 4
    top = top_links_of(run, 30, "exact")
    if most_exact > 100:
        assert top_links_of(run, 30, "hnsw")["target"].tolist() == top["target"].tolist()
    del about["width"]  # as earlier versions wrote it, with the recall of a narrow search
    (tmp_path / "run" / "index.json").write_text(json.dumps(stamped(about | {"recall": 0.5})))
    said.clear()
    recommend_links_of(run, None, 3, "hnsw", say=said.append)
    assert said[0].startswith("hnsw index of 200 points: recall@10 0.5000 against exact search")
    assert said[0].endswith(ending)
