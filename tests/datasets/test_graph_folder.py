"""``load_graphs``: a folder of graph files, or the files of a TU dataset."""

import gzip
import warnings

import networkx as nx
import numpy as np
import pytest
import scipy.io
import torch
from torch_geometric.data import Data, Dataset
from torch_geometric.io import read_tu_data

from h2hgcn.datasets import DataError, DataWarning, load_graph, load_graphs, split_graphs
from h2hgcn.datasets.on_disk import fingerprint
from h2hgcn.tasks import GraphClassification
from h2hgcn.training import TrainingSettings, fit

pytestmark = pytest.mark.filterwarnings("ignore::h2hgcn.datasets.DataWarning")


def write_rings(folder, count=12):
    """Rings and paths as lists of edges, with a file of labels beside them."""
    folder.mkdir()
    rows = ["graph,class"]
    for k in range(count):
        graph = nx.path_graph(5 + k) if k % 2 else nx.cycle_graph(5 + k)
        nx.write_edgelist(graph, folder / f"g{k}.csv", delimiter=",", data=False)
        rows.append(f"g{k},{'path' if k % 2 else 'ring'}")
    labels = folder.parent / "y.csv"
    labels.write_text("\n".join(rows) + "\n")
    return labels


def test_a_graph_of_a_folder_is_the_graph_of_its_file(tmp_path):
    folder = tmp_path / "many"
    folder.mkdir()
    graph = nx.gnm_random_graph(9, 14, seed=1)
    nx.write_graphml(graph, folder / "xml.graphml")
    nx.write_gexf(graph, folder / "gexf.gexf")
    nx.write_edgelist(graph, folder / "tab.tsv", delimiter="\t", data=False)
    scipy.io.mmwrite(folder / "matrix.mtx", nx.to_scipy_sparse_array(graph))
    with gzip.open(folder / "mol.1.csv.gz", "wt") as file:
        file.write("".join(f"{a},{b}\n" for a, b in graph.edges))
    names = {"gexf": "gexf.gexf", "matrix": "matrix.mtx", "mol.1": "mol.1.csv.gz", "tab": "tab.tsv",
             "xml": "xml.graphml"}  # fmt: skip
    graphs = load_graphs(folder)
    assert graphs.graph_ids.tolist() == list(names)
    assert (graphs.y, graphs.num_classes, graphs.name) == (None, 0, "many")
    for one, file in zip(graphs, names.values(), strict=True):
        alone = load_graph(folder / file, weights=None)
        assert torch.equal(one.x, alone.x)
        assert torch.equal(one.edge_index, alone.edge_index)
        assert one.node_ids.tolist() == alone.node_ids.tolist()


def test_classes_and_names(tmp_path):
    labels = write_rings(tmp_path / "rings")
    graphs = load_graphs(tmp_path / "rings", labels)
    assert graphs.graph_ids.tolist() == [f"g{k}" for k in range(12)]  # g2 before g10
    assert graphs.label_names == ["path", "ring"]
    assert graphs.y.tolist() == [1, 0] * 6
    assert [graph.name for graph in graphs[2:4]] == graphs[2:4].graph_ids.tolist() == ["g2", "g3"]
    assert (graphs[:1].num_classes, graphs[:1].label_names) == (2, ["path", "ring"])
    with pytest.raises(DataError, match="there is no graph"):
        graphs[20:]


@pytest.mark.parametrize(
    "text",
    [
        "{0},a\n{1},b\n",
        "graph,label\n{0},a\n{1},b\n",
        "class,file\na,{0}.csv\nb,{1}.csv\n",
        "name\torigin\tclass\n{1}\tx\tb\n{0}\tx\ta\n",
    ],
)
@pytest.mark.parametrize("names", [("one", "two"), ("0", "1"), ("007", "8")])
def test_forms_of_label_files(tmp_path, text, names):
    folder = tmp_path / "f"
    folder.mkdir()
    for name in names:
        (folder / f"{name}.csv").write_text("1,2\n2,3\n")
    (folder / "labels.tsv").write_text(text.format(*names))
    (folder / "notes.md").write_text("not a graph")
    with pytest.warns(DataWarning, match=r"no graph files: notes\.md"):
        graphs = load_graphs(folder)
    assert graphs.graph_ids.tolist() == list(names)
    assert [graphs.label_names[k] for k in graphs.y] == ["a", "b"]
    assert load_graphs(folder, {names[0]: "x", names[1]: "y"}).label_names == ["x", "y"]
    assert load_graphs(folder, [3, 3]).y.tolist() == [0, 0]
    assert load_graphs(folder, False).y is None


def test_a_split_of_graphs_is_not_used_without_a_word(tmp_path):
    write_rings(tmp_path / "rings")
    parts = "".join(f"g{k},{'ab'[k % 2]},{'train' if k < 8 else 'test'}\n" for k in range(12))
    (tmp_path / "split.csv").write_text(f"graph,label,split\n{parts}")
    with pytest.warns(DataWarning, match="'split' is not used"):
        assert load_graphs(tmp_path / "rings", tmp_path / "split.csv").label_names == ["a", "b"]


def write_attributes(folder, **more):
    folder.mkdir(exist_ok=True)
    for k in range(3):
        graph = nx.path_graph(4)
        for node in graph:
            graph.nodes[node].update(height=node + k / 2, color="red", old=node > 1, **more)
        if k == 1:
            graph.nodes[2]["rare"] = 7
        nx.write_graphml(graph, folder / f"g{k}.graphml")


def test_attributes_that_all_nodes_have_are_features(tmp_path):
    write_attributes(tmp_path / "f", gap=float("nan"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        graphs = load_graphs(tmp_path / "f")
    said = " ".join(str(warning.message) for warning in caught)
    assert "taken as features: height, old" in said
    assert "not a number at every node: color, gap, rare" in said
    assert graphs.feature_names == ["height", "old"]
    assert graphs[1].x.tolist() == [[0.5, 0], [1.5, 0], [2.5, 1], [3.5, 1]]
    assert load_graphs(tmp_path / "f", features="height").feature_names == ["height"]
    structural = load_graphs(tmp_path / "f", features=False)
    assert structural.feature_names[-1] == "constant"
    again = load_graphs(tmp_path / "f", features=structural.feature_names)
    assert torch.equal(again[0].x, structural[0].x)
    for features, message in (
        ("rare", r"g0\.graphml: no node has an attribute 'rare'"),
        ("color", "'color' holds 'red', not a number"),
    ):
        with pytest.raises(DataError, match=message):
            load_graphs(tmp_path / "f", features=features)
    (tmp_path / "f" / "plain.csv").write_text("1,2\n")
    assert load_graphs(tmp_path / "f").feature_names[-1] == "constant"
    with pytest.raises(DataError, match=r"plain\.csv has no node attributes"):
        load_graphs(tmp_path / "f", features=["height"])


def test_features_of_arrays(tmp_path):
    edges = np.array([[0, 1], [1, 2]])
    for k in range(3):
        np.savez(tmp_path / f"g{k}.npz", edges=edges, x=np.full((3, 2), k, dtype=np.float32), y=np.arange(3))
    assert [graph.x[0, 0].item() for graph in load_graphs(tmp_path)] == [0, 1, 2]
    np.savez(tmp_path / "g3.npz", edges=edges, x=np.ones((3, 5)))
    with pytest.raises(DataError, match="the graph g3 has 5 features a node"):
        load_graphs(tmp_path)
    np.savez(tmp_path / "g3.npz", edges=edges)
    with pytest.raises(DataError, match=r"g0\.npz has features \(x\), .*g3\.npz has none"):
        load_graphs(tmp_path)


def test_options_hold_for_all_files(tmp_path):
    for k in range(2):
        (tmp_path / f"g{k}.csv").write_text("who,whom,cost\n1,2,3\n2,3,4\n")
    graphs = load_graphs(tmp_path, weights="cost", directed=True, columns=("whom", "who"))
    assert graphs[1].edge_index.tolist() == [[1, 2], [0, 1]]
    assert graphs[1].edge_weight.tolist() == [3, 4]
    assert graphs.feature_names[0] == "log(1 + in-degree)"


@pytest.mark.parametrize(
    ("files", "labels", "message"),
    [
        ({}, None, "holds no graphs .it is empty"),
        ({"a.json": "{}"}, None, r"holds no graphs .it holds a\.json.; put one file a graph"),
        ({"a.csv": "1,2\n", "a.tsv": "1\t2\n"}, None, r"a\.csv and .*a\.tsv are both called 'a'"),
        ({"a.csv": "1,2\n", "b.csv": ""}, None, r"b\.csv"),
        ({"a.csv": "1,2\n", "b.csv": "1\n"}, None, r"b\.csv"),
        ({"a.csv": "1,2\n", "b.graphml": "<graphml>"}, None, r"b\.graphml cannot be read as a graph"),
        ({"a.csv": "1,2\n", "b.graphml": nx.generate_graphml(nx.Graph())}, None, r"b\.graphml holds a graph without n"),
        ({"a.graphml": nx.generate_graphml(nx.DiGraph([(1, 2)])), "b.csv": "1,2\n"}, None,
         r"a\.graphml has directed edges, .*b\.csv has undirected ones; pass directed=False .--undirected"),
        ({"tree1.csv": "1,2\n"}, "tree1,a\ntree2,b\n", r"line 2: there is no graph 'tree2'; did you mean 'tree1'"),
        ({"one.csv": "1,2\n"}, "one,a\nxyz,b\n", "there is no graph 'xyz'; ids go from one to one"),
        ({"a.csv": "1,2\n", "b.csv": "1,2\n", "c.csv": "1,2\n"}, "a,x\n", r"the graph 'b' has no class .and 1 more"),
        ({"a.csv": "1,2\n", "b.csv": "1,2\n"}, "a,x\nb,\n", "the graph 'b' has no class"),
        ({"a.csv": "1,2\n"}, "a,x\na,y\n", "line 2: the graph 'a' comes a second time"),
        ({"a.csv": "1,2\n"}, [1, 2], "2 classes for 1 graphs"),
        ({"a.csv": "1,2\n"}, "y2.csv", r"y2\.csv does not exist"),
    ],
)  # fmt: skip
def test_bad_folders(tmp_path, files, labels, message):
    folder = tmp_path / "f"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text if isinstance(text, str) else "\n".join(text))
    if isinstance(labels, str) and "\n" in labels:
        (tmp_path / "y.csv").write_text(labels)
        labels = tmp_path / "y.csv"
    with pytest.raises(DataError, match=message):
        load_graphs(folder, labels)


def test_folders_that_are_none(tmp_path):
    with pytest.raises(DataError, match="none does not exist; name a folder"):
        load_graphs(tmp_path / "none")
    (tmp_path / "a.csv").write_text("1,2\n")
    with pytest.raises(DataError, match=r"a\.csv is a file; one graph is read by load_graph"):
        load_graphs(tmp_path / "a.csv")


def test_mixed_directions_can_be_settled(tmp_path):
    nx.write_graphml(nx.DiGraph([(1, 2)]), tmp_path / "a.graphml")
    (tmp_path / "b.csv").write_text("1,2\n")
    assert [graph.num_edges for graph in load_graphs(tmp_path, directed=False)] == [2, 2]
    assert [graph.num_edges for graph in load_graphs(tmp_path, directed=True)] == [1, 1]


def write_tu(folder, seed=0, labels=True, attributes=True, classes=(-1, 1), smallest=3):
    """Random graphs in the format of the TU datasets, both directions of each edge, the last graph without edges."""
    random = np.random.RandomState(seed)
    sizes = random.randint(2, 7, 9)
    owner = np.repeat(np.arange(9), sizes)
    first = np.concatenate([[0], sizes.cumsum()])
    pairs = [first[k] + random.randint(0, sizes[k], (6, 2)) for k in range(8)]
    pairs = np.concatenate([*pairs, np.concatenate(pairs)[:, ::-1]])  # repeated edges and self-loops among them
    folder.mkdir(parents=True, exist_ok=True)

    def write(part, lines):
        (folder / f"SET_{part}.txt").write_text("".join(f"{line}\n" for line in lines))

    write("A", [f"{a + 1}, {b + 1}" for a, b in pairs])
    write("graph_indicator", owner + 1)
    if classes:
        write("graph_labels", [classes[k % len(classes)] for k in range(9)])
    if labels:
        write("node_labels", smallest + np.arange(len(owner)) % 4)
    if attributes:
        write("node_attributes", [f"{a:.3f}, {b:.3f}" for a, b in random.normal(size=(len(owner), 2))])


@pytest.mark.parametrize(("labels", "attributes"), [(True, True), (True, False), (False, True)])
def test_tu_files_are_read_as_pyg_does(tmp_path, labels, attributes):
    write_tu(tmp_path, labels=labels, attributes=attributes)
    graphs = load_graphs(tmp_path)
    data, slices, _ = read_tu_data(str(tmp_path), "SET")
    assert torch.equal(graphs.y, data.y)
    assert (graphs.label_names, graphs.graph_ids, graphs.name) == ([-1, 1], None, "SET")
    assert len(graphs.feature_names) == graphs.num_node_features == data.x.shape[1]
    for k in range(8):  # PyG loses the pointers of a last graph without edges
        a, b = slices["x"][k : k + 2].tolist()
        c, d = slices["edge_index"][k : k + 2].tolist()
        assert torch.equal(graphs[k].x, data.x[a:b])
        assert torch.equal(graphs[k].edge_index, data.edge_index[:, c:d])
    assert graphs[8].num_edges == 0
    assert graphs[8].num_nodes == len(data.x) - slices["x"][8]


def test_tu_files_without_labels_of_nodes(tmp_path):
    write_tu(tmp_path / "SET" / "raw", labels=False, attributes=False)
    graphs = load_graphs(tmp_path / "SET")
    assert graphs.feature_names[0] == "log(1 + degree)"
    index, n = graphs[0].edge_index, graphs[0].num_nodes
    assert torch.equal(graphs[0].x[:, 0], torch.bincount(index[0], minlength=n).float().log1p())
    other = load_graphs(tmp_path / "SET", {k: "odd" if k % 2 else "even" for k in range(9)})
    assert other.label_names == ["even", "odd"]
    assert load_graphs(tmp_path / "SET", False).y is None


def test_columns_of_node_labels_go_by_name(tmp_path):
    """A label that new graphs lack is a column of zeros; one that is not known is refused, not shifted."""
    write_tu(tmp_path / "old", smallest=3)
    write_tu(tmp_path / "new", smallest=3, seed=1)
    lines = (tmp_path / "new" / "SET_node_labels.txt").read_text().replace("3", "4").replace("6", "5")
    (tmp_path / "new" / "SET_node_labels.txt").write_text(lines)
    known = load_graphs(tmp_path / "old").feature_names
    assert known == ["node attribute 1", "node attribute 2", *(f"node label {k}" for k in range(3, 7))]
    assert load_graphs(tmp_path / "new").num_node_features == 4
    new = torch.cat([graph.x for graph in load_graphs(tmp_path / "new", features=known)])
    assert new[:, 2:].argmax(1).add(3).tolist() == [int(line) for line in lines.split()]
    write_tu(tmp_path / "strange", smallest=4)
    with pytest.raises(DataError, match="some nodes have 'node label 7', which is none of"):
        load_graphs(tmp_path / "strange", features=known)
    with pytest.raises(DataError, match="no node has 'height'; the columns are node attribute 1"):
        load_graphs(tmp_path / "old", features=["height"])


@pytest.mark.parametrize(
    ("part", "edit", "message"),
    [
        ("graph_indicator", lambda lines: lines[::-1], "must count graphs from 1, each with all its nodes in a row"),
        ("graph_indicator", lambda lines: ["0", *lines[1:]], "must count graphs from 1"),
        ("graph_indicator", lambda lines: [], "must count graphs from 1"),
        ("A", lambda lines: [*lines, "1, 999"], "names nodes from 1 to 999, but there are"),
        ("A", lambda lines: ["1, 8", *lines], "edge 1: its nodes are in two graphs"),
        ("A", lambda lines: [*lines, "1, x"], "SET_A.txt cannot be read"),
        ("A", lambda lines: ["1, 2, 3"], "has 3 columns, not 2"),
        ("graph_labels", lambda lines: lines[1:], "has 8 lines for 9 graphs"),
        ("graph_labels", lambda lines: ["1.5", *lines[1:]], "row 1: .1.5. are not whole numbers"),
        ("node_labels", lambda lines: lines[1:], r"SET_node_labels.txt has \d+ lines for"),
        ("node_attributes", lambda lines: ["nan, 1", *lines[1:]], "holds NaN or infinity"),
    ],
)
def test_damaged_tu_files(tmp_path, part, edit, message):
    write_tu(tmp_path)
    path = tmp_path / f"SET_{part}.txt"
    path.write_text("".join(f"{line}\n" for line in edit(path.read_text().splitlines())))
    with pytest.raises(DataError, match=message):
        load_graphs(tmp_path)


def test_tu_options(tmp_path):
    write_tu(tmp_path)
    (tmp_path / "SET_edge_labels.txt").write_text("1\n")
    with pytest.warns(DataWarning, match="edge_labels are not used"):
        load_graphs(tmp_path)
    with pytest.raises(DataError, match="holds a TU dataset; columns, header, delimiter, comment and weights"):
        load_graphs(tmp_path, header=True)
    (tmp_path / "B_A.txt").write_text("1, 2\n")
    (tmp_path / "B_graph_indicator.txt").write_text("1\n1\n")
    with pytest.raises(DataError, match="holds the TU datasets B, SET; keep one"):
        load_graphs(tmp_path)


def test_the_fingerprint_covers_graphs_names_and_classes(tmp_path):
    folder = tmp_path / "rings"
    labels = write_rings(folder)
    before = fingerprint(load_graphs(folder, labels))
    assert fingerprint(load_graphs(folder, labels)) == before
    assert fingerprint(load_graphs(folder)) != before
    text = labels.read_text()
    labels.write_text(text.replace("ring", "loop"))
    assert fingerprint(load_graphs(folder, labels)) != before
    labels.write_text(text.replace("g11", "g99"))
    (folder / "g11.csv").rename(folder / "g99.csv")
    assert fingerprint(load_graphs(folder, labels)) != before
    (folder / "g99.csv").rename(folder / "g11.csv")
    labels.write_text(text)
    (folder / "g0.csv").write_text("0,1\n")
    assert fingerprint(load_graphs(folder, labels)) != before


class Lazy(Dataset):
    """A PyG dataset that has nothing but ``len`` and ``get``."""

    def __init__(self, graphs):
        super().__init__()
        self.graphs = graphs

    def len(self):
        return len(self.graphs)

    def get(self, idx):
        return self.graphs[idx]


def test_folds_of_all_that_fit_takes(tmp_path):
    graphs = load_graphs(tmp_path / "rings", write_rings(tmp_path / "rings"))
    expected = split_graphs(graphs, 3)
    for same in (list(graphs), tuple(graphs), Lazy(list(graphs))):
        for fold, other in zip(expected, split_graphs(same, 3), strict=True):
            assert all(np.array_equal(getattr(fold, p), getattr(other, p)) for p in ("train", "val", "test"))
    run = fit(GraphClassification(num_folds=3), Lazy(list(graphs)), settings=TrainingSettings(epochs=1))
    assert run.finished
    assert len(run.predict(["g3", "g1"], graphs)) == 2


def test_names_of_graphs_in_predictions(tmp_path):
    graphs = load_graphs(tmp_path / "rings", write_rings(tmp_path / "rings"))
    run = fit(GraphClassification(num_folds=3), graphs, settings=TrainingSettings(epochs=1))
    assert run.classes == ["path", "ring"]
    assert run.nodes.tolist() == graphs.graph_ids.tolist()
    whole = run.predict()
    assert torch.allclose(run.predict(["g3", "g1"]), whole[[3, 1]], atol=1e-6)
    assert torch.allclose(run.predict("g3"), whole[3:4], atol=1e-6)
    assert torch.allclose(run.predict([3, 1]), whole[[3, 1]], atol=1e-6)
    assert torch.allclose(run.encode(graphs[2:5]), run.embeddings[2:5], atol=1e-6)
    with pytest.raises(DataError, match="there is no graph 'g33'; did you mean 'g3'"):
        run.predict(["g33"])
    other = load_graphs(tmp_path / "rings", directed=True)
    with pytest.raises(DataError, match=r"the features of rings are log\(1 \+ in-degree\)"):
        run.predict(other)
    one = Data(x=torch.ones(3, 2), edge_index=torch.zeros(2, 0, dtype=torch.long))
    with pytest.raises(DataError, match="graph 0 has 2 features a node"):
        run.predict([one])


def test_unlabeled_graphs_cannot_be_learned(tmp_path):
    write_rings(tmp_path / "rings")
    with pytest.raises(DataError, match=r"the graphs have no classes; give a file .*--labels"):
        fit(GraphClassification(), load_graphs(tmp_path / "rings"))
    with pytest.raises(DataError, match="has no y"):
        split_graphs(load_graphs(tmp_path / "rings"))
