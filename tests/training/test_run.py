import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from runs import SMALL, TASKS, Flat, curve, same_weights, shapes, small_data, small_fit
from torch_geometric.data import Data

from h2hgcn.datasets import load_graph
from h2hgcn.datasets.disease import generate_disease
from h2hgcn.errors import DataError, DataWarning
from h2hgcn.geometry import lorentz
from h2hgcn.models import H2HGCN
from h2hgcn.models.hgcn import HGCN
from h2hgcn.tasks import LinkPrediction, NodeClassification
from h2hgcn.training import load_run

SPACES = ["lorentz", "ball", "euclidean"]


def named_tree(num_nodes=60):
    """A tree whose nodes have texts for ids, in an order of their own."""
    tree = generate_disease(num_nodes)
    edges = [(f"n{a}", f"n{b}") for a, b in tree.edge_index.T.tolist() if a < b]
    ids = [f"n{k}" for k in range(num_nodes)]
    graph = load_graph(edges, dict(zip(ids, tree.x.numpy(), strict=True)), dict(zip(ids, "xy" * 30, strict=False)))
    assert set(graph.node_ids) == set(ids)
    return graph


@pytest.fixture(scope="module")
def links():
    return small_fit(data=named_tree(), task=LinkPrediction(val=0.1, test=0.1))


@pytest.fixture(scope="module")
def classes():
    return small_fit("nc")


@pytest.fixture(scope="module")
def graphs():
    return small_fit("gc")


def test_embeddings_are_points_of_the_encoders_space(links, classes, graphs):
    for run, count in ((links, 60), (classes, 200), (graphs, 24)):
        assert run.embeddings.shape == (count, 5)
        assert not run.embeddings.requires_grad
        assert lorentz.violation(run.embeddings).max() < 1e-5


def test_links_are_embedded_along_training_edges_alone(links):
    seen = links.data.clone()
    seen.edge_index = links.problem.split.train_edge_index()
    assert torch.equal(links.encode(seen), links.embeddings)
    assert not torch.equal(links.encode(links.data), links.embeddings)


def test_probabilities_of_links_by_id(links):
    pairs = [["n3", "n7"], ["n7", "n3"], ["n0", "n59"]]
    place = {name: number for number, name in enumerate(links.data.node_ids)}
    ends = links.embeddings[torch.tensor([[place[name] for name in pair] for pair in pairs])]
    decoder = links.model.head.decoder
    expected = decoder.probability(ends[:, 0], ends[:, 1])
    torch.testing.assert_close(links.predict(pairs), expected.detach())
    assert links.predict(np.array(pairs)).tolist() == links.predict(pairs).tolist()


def test_probabilities_of_classes(classes):
    everything = classes.predict()
    torch.testing.assert_close(everything.sum(1), torch.ones(200))
    for what in ([5, 0, 199], ["5", "0", "199"], torch.tensor([5, 0, 199]), np.array([5, 0, 199], dtype=np.uint8)):
        torch.testing.assert_close(classes.predict(what), everything[[5, 0, 199]])
    test = classes.problem.split.test
    right = everything.argmax(1)[test] == classes.data.y[test]
    assert float(right.double().mean()) == pytest.approx(classes.metrics["test"]["accuracy"])
    assert classes.classes == ["0", "1"]


def test_probabilities_of_graphs(graphs):
    everything = graphs.predict()
    assert everything.shape == (24, 2)
    collection = shapes()
    for some in (collection[3], [collection[3]], collection[3:4]):
        torch.testing.assert_close(graphs.predict(some), everything[3:4])
    torch.testing.assert_close(graphs.predict(data=collection), everything)
    torch.testing.assert_close(graphs.predict([3, 0]), everything[[3, 0]])
    torch.testing.assert_close(graphs.predict([1], data=list(collection)[:2]), everything[[1]])


def test_a_graph_with_other_nodes(classes, links):
    """A model that has not seen these nodes says of them what it says of their likes."""
    order = torch.randperm(200, generator=torch.Generator().manual_seed(0))
    place = order.argsort()
    graph = Data(x=classes.data.x[order], edge_index=place[classes.data.edge_index], node_ids=1000 + order.numpy())
    torch.testing.assert_close(classes.predict(data=graph)[place], classes.predict(), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(classes.predict([1003], graph), classes.predict([3]), atol=1e-5, rtol=1e-4)
    larger = generate_disease(90, seed=5)
    assert links.predict([[0, 89]], larger).shape == (1,)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ([["n0", "m1"]], "there is no node 'm1'; ids go from n0 to n9"),
        ([[0, 1]], r"there are no nodes '0' \(did you mean 'n0'\?\), '1'"),
        ([["n0", "n1"], ["n2", "n2"]], "pair 2 is the node n2 with itself; leave it out"),
        (["n0", "n1"], r"shape \(k, 2\), not \(2,\)"),
        ([["n0", "n1", "n2"]], r"not \(1, 3\)"),
        ([["n0", "n1"], ["n2"]], "lists of different lengths"),
        ([], r"not \(0,\)"),
        (None, "say which pairs"),
    ],
)
def test_pairs_that_cannot_be_scored(links, what, message):
    with pytest.raises(DataError, match=message):
        links.predict(what)


@pytest.mark.parametrize("node", [200, -1, 1.5, 1.0, None, True, "one", "1.5", 2**70, "9" * 30])
def test_nodes_that_are_not_there(classes, node):
    with pytest.raises(DataError, match=r"there (is no node|are no nodes)"):
        classes.predict([0, node] if node is not True else [True])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda graph: {"x": graph.x[:, :7], "feature_names": [*"abcdefg"]}, "7 features a node: a, b, c, .*with 16"),
        (lambda graph: {"x": None}, "has no features"),
        (lambda graph: {"x": graph.x * float("nan")}, "NaN or infinity"),
        (lambda graph: {"x": graph.x[:-1]}, "199 rows of features"),
        (lambda graph: {"edge_index": None}, "no tensor edge_index"),
        (lambda graph: {"edge_index": graph.edge_index + 1}, "edge_index names node 200"),
        (lambda graph: {"edge_weight": torch.zeros(graph.edge_index.shape[1])}, "are zero"),
    ],
)
def test_graphs_that_do_not_fit(classes, graphs, change, message):
    graph = Data(**{**small_data().to_dict(), "num_nodes": 200} | change(small_data()))
    with pytest.raises(DataError, match=message):
        classes.predict(data=graph)
    with pytest.raises(DataError, match="graph 0"):
        graphs.predict([graph])


def test_columns_in_another_order():
    graph = small_data()
    graph.feature_names = [f"f{k}" for k in range(16)]
    run = small_fit("nc", graph)
    assert run.predict(data=graph.clone()).shape == (200, 2)
    other = graph.clone()
    other.feature_names = graph.feature_names[::-1]
    with pytest.raises(DataError, match=r"are f15, f14, .*trained with f0, f1, .*the same columns in the same order"):
        run.predict(data=other)


def test_what_is_no_graph(graphs):
    for what in ([], ["3"], [[3]], [0.5], [small_data(), 3], 3, "3"):
        with pytest.raises(DataError, match="pass a graph, a list of graphs"):
            graphs.predict(what)
    with pytest.raises(DataError, match="there is no graph 24; the graphs are numbered from 0 to 23"):
        graphs.predict([0, 24])
    for part in ("train", "all"):
        with pytest.raises(DataError, match="use 'val' or 'test'"):
            graphs.evaluate(part)
    with pytest.raises(DataError, match="within one graph"):
        graphs.recommend(0)
    with pytest.raises(DataError, match="graph 0 has no features"):
        graphs.predict(Data())


@pytest.mark.parametrize("data", [[small_data()], "e.csv", 3])
def test_what_is_not_one_graph(classes, data):
    for use in (classes.encode, lambda data: classes.predict(data=data)):
        with pytest.raises(DataError, match=f"data is a {type(data).__name__}; pass one graph"):
            use(data)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": "3"}, "k='3' must be a whole number"),
        ({"k": 1.5}, "k=1.5 must be a whole number"),
        ({"k": None}, "k=None must be a whole number"),
        ({"node": [[3, 4]]}, r"node=\[\[3, 4\]\]: give the id of one node, or a list of ids"),
        ({"node": []}, r"node=\[\]: give the id of one node, or a list of ids"),
        ({"node": [3, -1]}, "there is no node -1"),
        ({"node": [3], "k": 1.5}, "k=1.5 must be a whole number"),
        *(({"node": text}, r"did you mean 3\?") for text in ("03", "3.0", "٣", " 3", "+3")),
        ({"node": "1_x"}, "there is no node '1_x'; ids go from 0 to"),
    ],
)
def test_recommendations_that_cannot_be_given(classes, options, message):
    with pytest.raises(DataError, match=message):
        classes.recommend(**{"node": 3} | options)


@pytest.mark.parametrize("space", SPACES)
def test_recommendations_against_brute_force(space):
    graph = named_tree()
    run = small_fit(LinkPrediction(val=0.1, test=0.1), graph, model=lambda n: Flat(n, 3, space))
    linked = {tuple(pair) for pair in graph.edge_index.T.tolist()}
    for number in (0, 17, 59):
        others = [k for k in range(60) if k != number and (number, k) not in linked]
        scores = run.predict([[graph.node_ids[number], graph.node_ids[k]] for k in others])
        found = run.recommend(graph.node_ids[number], 5)
        torch.testing.assert_close(
            torch.tensor([row.probability for row in found]), scores.sort(descending=True)[0][:5]
        )
        assert len({row.node for row in found} & {graph.node_ids[k] for k in others}) == 5
        distances = [row.distance for row in found]
        assert distances == sorted(distances)


def test_too_many_recommendations(links, classes):
    free = 60 - 1 - int((links.data.edge_index[0] == list(links.data.node_ids).index("n0")).sum())
    assert len(links.recommend("n0", free)) == free
    with pytest.warns(DataWarning, match=f"node n0 has {free} missing links of the {free + 1} asked for"):
        assert len(links.recommend("n0", free + 1)) == free
    with pytest.raises(DataError, match="k=0 must be at least 1"):
        links.recommend("n0", 0)
    assert classes.recommend("7", 3) == classes.recommend(7, 3)
    assert all(0 < row.probability < 1 for row in classes.recommend(7, 3))
    without = small_fit(NodeClassification(num_centroids=6, link_weight=0))
    assert [row.probability for row in without.recommend(7, 3)] == [None] * 3


def test_recommendations_of_a_model_that_learns_its_curvature():
    """A weight is no number until it is detached, which PyTorch warns of."""
    assert len(small_fit(model=partial(HGCN, dim=3)).recommend(0, 2)) == 2


def test_distances_are_those_of_the_learnt_curvature():
    run = small_fit(model=lambda n: H2HGCN(n, 4, curvature=4.0))
    (first,) = run.recommend(3, 1)
    plain = lorentz.distance(run.embeddings[3], run.embeddings[first.node])
    assert first.distance == pytest.approx(float(plain) / 2, rel=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("task", TASKS)
def test_saved_and_loaded(task, dtype, tmp_path):
    run = small_fit(task, settings={"dtype": dtype})
    run.save(tmp_path / "run")
    data = shapes() if task == "gc" else None
    loaded = load_run(tmp_path / "run", data)
    assert same_weights(run, loaded)
    assert loaded.config == run.config
    assert loaded.metrics == run.metrics == {part: loaded.evaluate(part) for part in ("val", "test")}
    assert curve(loaded) == curve(run)
    assert torch.equal(loaded.embeddings, run.embeddings)
    if task != "lp":
        assert torch.equal(loaded.predict(), run.predict())
    with pytest.raises(DataError, match="holds a run already"):
        run.save(tmp_path / "run")


def test_ids_and_names_of_classes_come_along(tmp_path):
    run = small_fit(NodeClassification(val=0.2, test=0.2, num_centroids=6), named_tree())
    run.save(tmp_path / "run")
    loaded = load_run(tmp_path / "run")
    assert loaded.classes == ["x", "y"]
    assert torch.equal(loaded.predict(["n5", "n50"]), run.predict(["n5", "n50"]))


def test_a_collection_is_not_part_of_its_run(tmp_path):
    run = small_fit("gc", folder=tmp_path)
    loaded = load_run(tmp_path)
    torch.testing.assert_close(loaded.predict(shapes()), run.predict())
    for use in (lambda: loaded.embeddings, loaded.evaluate, loaded.predict):
        with pytest.raises(DataError, match=r"does not hold its (data|graphs); pass"):
            use()


def test_other_data_than_those_of_the_run(tmp_path):
    small_fit("gc", folder=tmp_path / "gc")
    small_fit("nc", folder=tmp_path / "nc")
    for name, data in (("gc", shapes(26)), ("nc", generate_disease(200, seed=1))):
        with pytest.raises(DataError, match="was trained on other data"):
            load_run(tmp_path / name, data)


def test_an_encoder_of_ones_own(tmp_path):
    run = small_fit(model=Flat, folder=tmp_path)
    with pytest.raises(DataError, match="Flat has something of your own; pass what makes it as model="):
        load_run(tmp_path)
    assert same_weights(load_run(tmp_path, model=Flat), run)
    for model in (SMALL, lambda n: Flat(n, 9)):
        with pytest.raises(DataError, match="does not fit"):
            load_run(tmp_path, model=model)


def test_folders_that_hold_no_run(tmp_path):
    for folder, wrong in {tmp_path: "holds no config.toml", tmp_path / "none": "is not there"}.items():
        with pytest.raises(DataError, match=rf"{wrong}; give the folder of a run"):
            load_run(folder)
    H2HGCN(3, 2).save_pretrained(tmp_path)
    with pytest.raises(DataError, match="not that of a run, or damaged: it has no format"):
        load_run(tmp_path)
    with pytest.raises(DataError, match="is a file; give the folder of a run"):
        load_run(tmp_path / "config.toml")


@pytest.mark.parametrize("device", ["cuda", "tpu"])
@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_run_cannot_go_to_a_device_that_is_not_there(device, tmp_path):
    small_fit(folder=tmp_path, epochs=1)
    with pytest.raises(DataError, match=f"cannot go to the device '{device}' .*; use 'cpu'"):
        load_run(tmp_path, device=device)


def test_results_as_frames(links, classes, graphs):
    pandas = pytest.importorskip("pandas")
    points = links.to_pandas()
    assert points.index.tolist() == links.nodes.tolist() == links.data.node_ids.tolist()
    assert points.columns.tolist() == ["x0", "x1", "x2", "x3", "x4"]
    assert np.array_equal(points.to_numpy(), links.embeddings.numpy())
    assert len(graphs.to_pandas()) == len(graphs.nodes) == 24
    assert small_fit(model=Flat, epochs=1).to_pandas().columns.tolist() == ["x1", "x2", "x3"]

    pairs = pandas.DataFrame([("n3", "n7"), ("n0", "n59")], columns=["source", "target"])
    pairs["probability"] = links.predict(pairs).numpy()
    assert pairs["probability"].tolist() == links.predict([("n3", "n7"), ("n0", "n59")]).tolist()
    assert classes.predict(pandas.Series([5, 0])).tolist() == classes.predict([5, 0]).tolist()


def test_recommendations_as_frames(links):
    pytest.importorskip("pandas")
    one = links.recommend("n3", k=4)
    table = one.to_pandas()
    assert table.columns.tolist() == ["node", "rank", "other", "distance", "probability"]
    assert table["node"].tolist() == ["n3"] * 4
    assert table["rank"].tolist() == [1, 2, 3, 4]
    assert list(zip(table["other"], table["probability"], table["distance"], strict=True)) == one
    several = links.recommend(["n9", "n3"], k=4)
    assert [link.node for link in several[4:]] == [link.node for link in one]
    assert several.to_pandas()["node"].tolist() == ["n9"] * 4 + ["n3"] * 4
    assert several.to_pandas()["rank"].tolist() == [1, 2, 3, 4] * 2
    assert links.recommend(links.nodes, k=1).to_pandas()["node"].tolist() == links.nodes.tolist()


def test_frames_need_pandas(links, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    for results in (links, links.recommend("n3")):
        with pytest.raises(DataError, match="needs pandas; install it with: pip install pandas"):
            results.to_pandas()


def test_generated_files_of_pyg_are_removed(tmp_path):
    """In a process of its own, since PyG generates them once."""
    code = "from runs import small_fit; from functools import partial; from h2hgcn.models import ENCODERS\n"
    code += "for name in ('gcn', 'gat'): small_fit('nc', model=partial(ENCODERS[name], dim=4), epochs=1)"
    paths = os.pathsep.join([str(Path(__file__).parent.parent), *sys.path])
    variables = {"TMPDIR": str(tmp_path), "PYTHONPATH": paths}
    subprocess.run([sys.executable, "-c", code], env=os.environ | variables, check=True)
    assert not list(tmp_path.glob("torch_geometric*"))
