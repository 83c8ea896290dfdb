"""Features for nodes that have none, made from the graph alone."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.utils import degree

from h2hgcn.errors import DataError

# The cap of HGCN's one-hot degree; larger degrees share the last column.
DEGREE_CAP = 5


def one_hot_degree(edge_index: Tensor, num_nodes: int) -> Tensor:
    """Degrees as one-hot rows ``(n, 6)``, capped at 5."""
    degrees = degree(edge_index[1], num_nodes, dtype=torch.long).clamp_max(DEGREE_CAP)
    return F.one_hot(degrees, DEGREE_CAP + 1).float()


def structural_features(edge_index: Tensor, num_nodes: int, directed: bool = False) -> tuple[Tensor, list[str]]:
    """``log(1 + degree)``, the one-hot capped degree, and a constant 1, with the names of the columns.

    A directed graph has these columns for the in-degree and again for the out-degree.
    """
    kinds = {"in-degree": edge_index, "out-degree": edge_index.flip(0)} if directed else {"degree": edge_index}
    columns, names = [], []
    for word, edges in kinds.items():
        columns += [degree(edges[1], num_nodes).log1p().unsqueeze(1), one_hot_degree(edges, num_nodes)]
        names += [f"log(1 + {word})", *(f"{word} {k}" for k in range(DEGREE_CAP)), f"{word} {DEGREE_CAP}+"]
    return torch.cat([*columns, torch.ones(num_nodes, 1)], 1), [*names, "constant"]


def add_structural_features(graph: Any) -> str:
    """Gives a graph without features those that its edges make; returns a note for its user."""
    directed = bool(getattr(graph, "directed", False))
    graph.x, graph.feature_names = structural_features(graph.edge_index, graph.num_nodes, directed)
    graph.structural = True
    return structural_note(directed)


def structural_note(directed: bool) -> str:
    degree = "in- and out-degree" if directed else "degree"
    return f"no features were given; structural ones were made: {degree}, one-hot degree up to 5, constant"


def task_features(graph: Any, task: str, edge_index: Tensor | None = None) -> Tensor:
    """The features of a graph for ``"lp"``, ``"nc"`` or ``"embed"``.

    For labels to be predicted, columns that they were made from (``graph.label_columns``) are left out. Structural
    features are computed again from ``edge_index``, the graph to train on, since degrees would tell of edges to be
    predicted. Where the dataset asks for it (Airport), its one-hot degree and a constant follow.
    """
    if task not in ("lp", "nc", "embed"):
        raise DataError(f"task={task!r} is not known; use 'lp', 'nc' or 'embed'")
    if getattr(graph, "structural", False):  # made from the graph, so computed again without the edges to be predicted
        return graph.x if edge_index is None else _structural_again(graph, edge_index)
    x: Tensor = graph.x
    hidden = getattr(graph, "label_columns", None) if task == "nc" else None
    if hidden:
        x = x[:, [column for column in range(x.shape[1]) if column not in hidden]]
    if getattr(graph, "append_structure", False):
        edge_index = graph.edge_index if edge_index is None else edge_index
        x = torch.cat([x, one_hot_degree(edge_index, len(x)), torch.ones(len(x), 1)], 1)
    return x


def _structural_again(graph: Any, edge_index: Tensor) -> Tensor:
    """The same columns from other edges. Directed graphs that older runs hold have the in-degree alone."""
    both = graph.x.shape[1] > DEGREE_CAP + 3
    return structural_features(edge_index, graph.num_nodes, both)[0]
