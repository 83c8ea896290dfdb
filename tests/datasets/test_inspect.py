import json
import re
import sys

import networkx as nx
import pytest
import torch
from matplotlib.figure import Figure
from torch_geometric.data import Data

from h2hgcn.datasets import inspect as plot
from h2hgcn.datasets import split_edges
from h2hgcn.datasets.inspect import inspect_graph, plot_inspection
from h2hgcn.datasets.shape import simple_graph
from h2hgcn.errors import DataError


def data(graph, **attributes):
    graph = nx.convert_node_labels_to_integers(graph)
    edges = torch.tensor(list(graph.edges), dtype=torch.long).reshape(-1, 2).T
    return Data(edge_index=torch.cat([edges, edges.flip(0)], dim=1), num_nodes=len(graph), **attributes)


def text(report):
    return " ".join(report.verdict.sentences)


def claims_help(report):
    return re.search(r"\blikely to help", text(report)) is not None


DEGENERATE = {
    "no nodes": Data(num_nodes=0, edge_index=torch.empty(2, 0, dtype=torch.long)),
    "one node": Data(num_nodes=1),
    "one self-loop": Data(num_nodes=1, edge_index=torch.zeros(2, 1, dtype=torch.long)),
    "no edges": Data(num_nodes=5, edge_index=torch.empty(2, 0, dtype=torch.long), y=torch.zeros(5, dtype=torch.long)),
    "self-loops only": Data(num_nodes=3, edge_index=torch.arange(3).repeat(2, 1)),
    "one edge": Data(num_nodes=2, edge_index=torch.tensor([[0, 1], [1, 0]])),
    "triangle": data(nx.complete_graph(3), y=torch.tensor([0, 1, -1])),
    "unlabelled": data(nx.cycle_graph(5), y=torch.full((5,), -1)),
}


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_graphs_are_reported(name):
    graph = DEGENERATE[name]
    report = inspect_graph(graph)
    assert json.loads(json.dumps(report.to_dict(), allow_nan=False)) == report.to_dict()
    assert report.size.nodes == (graph.num_nodes or 0)
    assert not claims_help(report) or report.tree_likeness.is_forest


@pytest.mark.parametrize("effort", [1.0, 0.0])
def test_same_seed_same_report(effort):
    graph = data(nx.barabasi_albert_graph(150, 3, seed=0), y=torch.arange(150) % 3)
    report = inspect_graph(graph, seed=4, effort=effort)
    assert inspect_graph(graph, seed=4, effort=effort) == report
    assert json.loads(json.dumps(report.to_dict(), allow_nan=False)) == report.to_dict()
    assert inspect_graph(graph, seed=5, effort=effort).hyperbolicity.mean != report.hyperbolicity.mean


def test_tree():
    report = inspect_graph(data(nx.balanced_tree(2, 6)))
    assert report.verdict.outlook == "likely"
    assert "is a tree (δ = 0)" in text(report)
    assert claims_help(report)


def held_out(report):
    return (report.held_out.links, report.held_out.unanswerable)


@pytest.mark.parametrize("structural", [None, True])
def test_a_tree_without_features_is_promised_no_links(structural):
    """The count is that of the split that training makes."""
    graph = data(nx.balanced_tree(3, 5), **({"x": torch.ones(364, 1), "structural": True} if structural else {}))
    report = inspect_graph(graph)
    split = split_edges(graph)
    degrees = torch.bincount(torch.from_numpy(split.train).flatten(), minlength=364)
    isolated = sum(bool((degrees[list(pair)] == 0).any()) for pair in split.test)
    assert held_out(report) == (36, isolated)
    assert report.tree_likeness.bridges == 363
    assert "All edges are bridges" in text(report)
    assert f"{isolated} of 36 held-out links would end at a node with no other edge" in text(report)
    assert "expect a gain" not in text(report)
    assert "--task embed" in text(report)
    assert "--task embed" in report.verdict.try_first[0]


def test_a_tree_with_features():
    report = inspect_graph(data(nx.balanced_tree(3, 5), x=torch.ones(364, 2)))
    assert "expect a gain" in text(report)
    assert "only features can predict those" in text(report)
    assert "--task embed" not in text(report)


def test_a_graph_that_is_mostly_bridges():
    graph = nx.compose(nx.random_labeled_tree(300, seed=1), nx.cycle_graph(10))
    report = inspect_graph(data(graph))
    bridges = len(list(nx.bridges(graph)))
    assert 0.5 * graph.number_of_edges() < bridges < graph.number_of_edges()
    assert f"{bridges} of {graph.number_of_edges()} edges are bridges" in text(report)
    assert "gain" not in text(report)


def test_held_out_links_of_a_graph_with_cycles():
    report = inspect_graph(data(nx.barabasi_albert_graph(300, 4, seed=0)))
    assert held_out(report) == (118, 0)
    assert "held-out" not in text(report)
    few = inspect_graph(data(nx.complete_graph(8)))  # there are no pairs to test against
    assert few.held_out is None
    assert few.tree_likeness.bridges == 0


def test_forest():
    report = inspect_graph(data(nx.disjoint_union(nx.balanced_tree(2, 5), nx.empty_graph(1))))
    assert "forest" in text(report)
    assert "δ = 0" in text(report)


@pytest.mark.parametrize("graph", [nx.path_graph(50), nx.star_graph(50)])
def test_trees_that_every_geometry_fits(graph):
    report = inspect_graph(data(graph))
    assert "is a tree (δ = 0)" in text(report)
    assert report.verdict.outlook == "unlikely"


def test_every_component_counts_before_a_forest_is_called_stars():
    report = inspect_graph(data(nx.disjoint_union(nx.star_graph(60), nx.balanced_tree(2, 4))))
    assert report.hyperbolicity.diameter == 8
    assert report.verdict.outlook == "likely"


@pytest.mark.parametrize("effort", [1.0, 0.0])
def test_a_star_and_a_cycle(effort):
    report = inspect_graph(data(nx.disjoint_union(nx.star_graph(60), nx.cycle_graph(20))), effort=effort)
    assert (report.hyperbolicity.diameter, report.hyperbolicity.delta) == (10, 0)
    assert "nearly all nodes of the largest component" in text(report)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32])
def test_edges_in_small_numbers(dtype):
    graph = data(nx.balanced_tree(2, 5))
    small = Data(edge_index=graph.edge_index.to(dtype), num_nodes=graph.num_nodes)
    assert inspect_graph(small) == inspect_graph(graph)


def test_labels_in_a_list():
    graph = data(nx.cycle_graph(5))
    graph.y = [0, 0, 1, 1, 1]
    assert inspect_graph(graph).homophily.homophily == 3 / 5
    for other in (["a"] * 5, [0.5] * 5, [[0], [0, 1]], [0, 1]):
        graph.y = other
        assert inspect_graph(graph).homophily is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": -1}, "seed=-1 must be an integer"),
        ({"effort": -1.0}, "effort=-1.0 must be a number, 0 or more"),
        ({"effort": float("nan")}, "effort=nan"),
        ({"effort": "much"}, "effort='much'"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(DataError, match=message):
        inspect_graph(data(nx.cycle_graph(5)), **options)


@pytest.mark.parametrize("effort", [1e300, float("inf")])
def test_effort_without_end(effort):
    graph = data(nx.barabasi_albert_graph(50, 2, seed=0))
    assert inspect_graph(graph, effort=effort) == inspect_graph(graph)


def test_truth_values_are_no_edges():
    with pytest.raises(DataError, match=r"edge_index is torch.bool"):
        inspect_graph(Data(edge_index=torch.tensor([[False], [True]]), num_nodes=2))


DENSE = {
    "random": lambda: nx.gnp_random_graph(300, 0.5, seed=0),
    "complete": lambda: nx.complete_graph(40),
    "windmill": lambda: nx.windmill_graph(30, 5),
}


@pytest.mark.parametrize("name", DENSE)
def test_dense_graphs_of_small_delta(name):
    report = inspect_graph(data(DENSE[name]()))
    assert report.hyperbolicity.delta <= 1
    assert report.verdict.outlook == "unlikely"
    assert "distances hardly vary" in text(report)
    assert not claims_help(report)


RANDOM_AND_FLAT = {
    "sparse random": lambda: nx.gnm_random_graph(1000, 2000, seed=0),
    "large random": lambda: nx.gnm_random_graph(20_000, 80_000, seed=0),
    "regular": lambda: nx.random_regular_graph(3, 1000, seed=0),
    "grid": lambda: nx.grid_2d_graph(25, 25),
    "cycle": lambda: nx.cycle_graph(100),
    "small world": lambda: nx.watts_strogatz_graph(500, 6, 0.1, seed=0),
}


@pytest.mark.parametrize("name", RANDOM_AND_FLAT)
def test_random_and_flat_graphs(name):
    report = inspect_graph(data(RANDOM_AND_FLAT[name]()), effort=0.1)
    assert report.verdict.outlook == "unlikely"
    assert not claims_help(report)


@pytest.mark.parametrize("size", [500, 5000])
def test_networks_with_hubs(size):
    report = inspect_graph(data(nx.barabasi_albert_graph(size, 2, seed=0)), effort=0.1)
    assert report.verdict.outlook == "possible"
    assert "may help in low dimension" in text(report)
    assert "hubs" in text(report)


def test_hubs_in_a_dense_network():
    report = inspect_graph(data(nx.barabasi_albert_graph(5000, 5, seed=0)), effort=0.1)
    assert report.verdict.outlook == "unlikely"
    assert "may still be worth it" in text(report)


def test_tree_with_a_few_long_cycles():
    graph = nx.compose(nx.random_labeled_tree(500, seed=1), nx.gnm_random_graph(500, 40, seed=2))
    report = inspect_graph(data(graph))
    assert report.verdict.outlook == "possible"
    assert "long cycles" in text(report)


def test_tree_of_cliques_is_close_to_a_tree():
    graph = nx.balanced_tree(3, 4)
    for node in list(graph):
        graph.add_edges_from(nx.complete_graph([node, *((node, i) for i in range(3))]).edges)
    assert inspect_graph(data(graph)).verdict.outlook == "likely"


def two_halves(**attributes):
    return data(nx.barabasi_albert_graph(200, 2, seed=0), **attributes)


def test_labels_decide_on_node_classification():
    graph = two_halves()
    assert "node classification" not in text(inspect_graph(graph))
    torch.manual_seed(0)
    at_random = inspect_graph(two_halves(y=torch.randint(2, (200,))))
    assert "hardly follow the edges" in text(at_random)
    assert "not going to profit" in text(at_random)
    assert any("features alone" in step for step in at_random.verdict.try_first)


def test_labels_that_follow_the_edges():
    graph = nx.disjoint_union(nx.barabasi_albert_graph(100, 2, seed=0), nx.barabasi_albert_graph(100, 2, seed=1))
    graph.add_edge(0, 100)
    y = (torch.arange(200) >= 100).long()
    assert "labels follow the edges" in text(inspect_graph(data(graph, y=y)))


def test_labels_that_differ_across_edges():
    graph = nx.complete_bipartite_graph(20, 30)
    report = inspect_graph(data(graph, y=(torch.arange(50) >= 20).long()))
    assert report.homophily.adjusted < -0.9
    assert "differ across edges" in text(report)


def test_every_verdict_names_a_comparison_and_its_grounds():
    for graph in (nx.balanced_tree(2, 5), nx.barabasi_albert_graph(200, 2, seed=0), nx.grid_2d_graph(9, 9)):
        verdict = inspect_graph(data(graph)).verdict
        assert any("H2HGCN(in_features, dim=" in step for step in verdict.try_first)
        assert any("Euclidean GCN" in step for step in verdict.try_first)
        assert any("largest δ" in fact for fact in verdict.rests_on)


def test_a_sample_is_called_a_sample():
    report = inspect_graph(data(nx.barabasi_albert_graph(200, 2, seed=0)), effort=0.0)
    assert any("largest δ ≥" in fact and "in a sample of" in fact for fact in report.verdict.rests_on)


def test_direction_is_ignored_and_that_is_said():
    cycle = torch.stack([torch.arange(30), (torch.arange(30) + 1) % 30])
    one_way = inspect_graph(Data(edge_index=cycle, num_nodes=30, directed=True))
    both_ways = inspect_graph(Data(edge_index=torch.cat([cycle, cycle.flip(0)], 1), num_nodes=30))
    assert one_way.hyperbolicity == both_ways.hyperbolicity
    assert one_way.size == both_ways.size
    assert "direction, which was ignored" in text(one_way)
    assert "direction" not in text(both_ways)


@pytest.mark.parametrize("name", ["no nodes", "self-loops only", "triangle"])
def test_plot_of_a_degenerate_graph(name, tmp_path):
    graph = DEGENERATE[name]
    assert plot_inspection(graph, inspect_graph(graph), tmp_path / "shape.png").stat().st_size > 0


def test_few_degrees_are_drawn_as_bars():
    graph = data(nx.star_graph(2000))
    axes = Figure().subplots()
    plot.draw_degrees(axes, simple_graph(graph).degrees)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2,000"]
    assert [bar.get_height() for bar in axes.patches] == [2000 / 2001, 1 / 2001]
    assert [text.get_text() for text in axes.texts] == ["2,000", "1"]


def test_many_degrees_are_drawn_as_a_curve():
    graph = data(nx.barabasi_albert_graph(300, 2, seed=0))
    axes = Figure().subplots()
    plot.draw_degrees(axes, simple_graph(graph).degrees)
    assert not axes.patches
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_plot(tmp_path, ending):
    graph = data(nx.barabasi_albert_graph(300, 2, seed=0))
    path = plot_inspection(graph, inspect_graph(graph, effort=0.0), tmp_path / f"shape.{ending}")
    assert path.stat().st_size > 1000


def test_plot_refuses_other_endings(tmp_path):
    graph = data(nx.path_graph(4))
    with pytest.raises(DataError, match=r"\.png"):
        plot_inspection(graph, inspect_graph(graph), tmp_path / "shape.xls")


def test_plot_without_matplotlib(tmp_path, monkeypatch):
    graph = data(nx.path_graph(4))
    report = inspect_graph(graph)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(DataError, match=r"pip install 'h2hgcn\[plot\]'"):
        plot_inspection(graph, report, tmp_path / "shape.png")
