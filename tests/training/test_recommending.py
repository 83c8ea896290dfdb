import numpy as np
import pytest
from runs import Flat, small_fit

from h2hgcn.errors import DataError
from h2hgcn.tasks import NodeClassification
from h2hgcn.training import load_run
from h2hgcn.training.recommending import recommend_links_of


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
    for kind in ("hnsw", "ivf"):
        with pytest.raises(DataError, match="belongs to another run"):
            recommend_links_of(load_run(tmp_path / "other"), None, 3, kind)
    recommend_links_of(load_run(tmp_path / "other"), None, 3, "exact")
    (folder / "index.faiss").write_bytes(b"nothing")
    with pytest.raises(DataError, match="is damaged"):
        recommend_links_of(load_run(folder), None, 3, "hnsw")
    small_fit(epochs=1, folder=tmp_path / "other", force=True)
    assert not (tmp_path / "other" / "index.faiss").exists()
