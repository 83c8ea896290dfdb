import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from h2hgcn.datasets import DataError, load_graph

pytestmark = pytest.mark.filterwarnings("ignore::h2hgcn.datasets.DataWarning")

PAIRS = [(0, 1), (1, 2), (2, 3), (3, 4)]


@pytest.mark.parametrize("weight", [1e39, 1e-50])
def test_weights_must_fit_into_single_precision(weight):
    with pytest.raises(DataError, match=r"row 1: the weight .* is beyond what single precision holds"):
        load_graph(PAIRS, weights=[1, weight, 1, 0])


BAD_WEIGHTS = {
    "complex": (np.array([1j, 1, 1, 1]), "complex"),
    "two columns": (np.ones((4, 2)), "one each"),
    "a square": (np.ones((2, 2)), "one each"),
    "one for all": (5, "one each"),
    "text": (["a", "b", "c", "d"], "not all numbers"),
    "too large": ([10**400, 1, 1, 1], "not all numbers"),
    "gaps": ([None, 1, 1, 1], "row 0: the weight nan must be finite"),
}


@pytest.mark.parametrize(("weights", "message"), BAD_WEIGHTS.values(), ids=BAD_WEIGHTS.keys())
def test_bad_weights(tmp_path, weights, message):
    with pytest.raises(DataError, match=message):
        load_graph(PAIRS, weights=weights)
    if isinstance(weights, np.ndarray):
        np.savez(tmp_path / "g.npz", edges=PAIRS, edge_weight=weights)
        with pytest.raises(DataError, match=message):
            load_graph(tmp_path / "g.npz")


@pytest.mark.parametrize("weight", ["heavy", None])
def test_triples_with_something_else_than_a_weight(weight):
    with pytest.raises(DataError, match=r"not all numbers|must be finite"):
        load_graph([(0, 1, weight), (1, 2, weight)])


def test_tensors_as_weights():
    for weights in (torch.ones(4, requires_grad=True), torch.ones(4, dtype=torch.bfloat16), torch.ones(4, 1)):
        assert load_graph(PAIRS, weights=weights).edge_weight.tolist() == [1] * 8


@pytest.mark.parametrize("weights", [True, "strength"])
def test_weights_that_are_not_there(tmp_path, weights):
    np.savez(tmp_path / "g.npz", edges=PAIRS)
    np.save(tmp_path / "g.npy", PAIRS)
    index = torch.tensor(PAIRS).T
    for source in (
        PAIRS,
        index,
        nx.Graph(PAIRS),
        Data(edge_index=index, num_nodes=5),
        tmp_path / "g.npz",
        tmp_path / "g.npy",
    ):
        with pytest.raises(DataError, match=r"no weights|no array 'strength'|no edge has an attribute"):
            load_graph(source, weights=weights)
