"""The base classes of encoders: their arguments, how they are saved and loaded, and what they do with their inputs."""

import inspect
import tomllib
from abc import abstractmethod
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Self

import tomli_w
import torch
from torch import Tensor, nn
from torch_geometric.nn.inits import reset

from h2hgcn.errors import DataError
from h2hgcn.files import atomic_write, load_weights, part_of, read_tensors, write_tensors
from h2hgcn.graph.adjacency import Adjacency, adjacency_of
from h2hgcn.kernels.csr import check_features, is_sparse, prepare_features
from h2hgcn.layers.inputs import FeatureLinear, NodeVectors, check_inputs, feature_dropout
from h2hgcn.layers.spaces import Space, check_shares, check_sizes
from h2hgcn.options import changed_options, checked_options, option_types, plain_options

# Arguments that the caller chooses; not part of the saved configuration.
PLACEMENT = ("device", "dtype")

# Arguments that the data determine.
FACTS = ("in_features", "num_nodes")


_PLAIN = str | int | float | bool | None
_VAR_POSITIONAL, _VAR_KEYWORD = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD


class Encoder(nn.Module):
    """The base class of encoders: it declares what tasks ask of them, keeps the arguments of the constructor as
    ``config``, and saves and loads.

    ``inductive`` says whether it can be used on nodes that it was not trained with, ``uses_graph`` whether it looks at
    edges. One that ``pools`` is also called with the graph of each node and the number of graphs, and gives one point
    for each graph. ``**options`` of a constructor stand for the keyword arguments of the base class's.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    paper: ClassVar[str]
    tasks: ClassVar[tuple[str, ...]] = ("lp", "nc", "gc")
    inductive: ClassVar[bool] = True
    uses_graph: ClassVar[bool] = True
    pools: ClassVar[bool] = False
    without: ClassVar[tuple[str, ...]] = ()  # arguments of the base class that this one does not have
    space: Space
    dim: int
    config: dict[str, Any]
    __signature__: ClassVar[inspect.Signature]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Completes the signature, from which options are read and checked."""
        super().__init_subclass__(**kwargs)
        try:
            signature = inspect.signature(cls.__init__, eval_str=True)
        except NameError:  # annotations that only a type checker can resolve
            signature = inspect.signature(cls.__init__)
        _, *own = signature.parameters.values()
        kinds = [each.kind for each in own]
        if _VAR_KEYWORD in kinds and hasattr(cls, "__signature__"):
            base, known = list(cls.__signature__.parameters.values()), {*cls.without, *(each.name for each in own)}
            inherited = [each for each in base if each.name not in known]
            if kinds[0] is _VAR_POSITIONAL:  # passes all arguments on
                own = [*inherited, *(each for each in own if each.kind is each.KEYWORD_ONLY)]
            else:
                own = [*own[:-1], *(each.replace(kind=max(each.kind, each.KEYWORD_ONLY)) for each in inherited)]
            own.sort(key=lambda each: each.kind)
        cls.__signature__ = inspect.Signature(own)

    def __new__(cls, *arguments: Any, **options: Any) -> Self:
        """Keeps the arguments, defaults included; the device and the precision are not part of what an encoder is."""
        encoder = super().__new__(cls)
        bound = cls.__signature__.bind_partial(*arguments, **options)  # copies pass none
        bound.apply_defaults()
        config = dict(bound.arguments)
        for name, parameter in cls.__signature__.parameters.items():
            if parameter.kind is _VAR_KEYWORD:
                config |= config.pop(name)
        config = {name: value for name, value in config.items() if name not in PLACEMENT}
        if config.get("node_vectors") is False:
            config["num_nodes"] = None  # it does not depend on their number
        object.__setattr__(encoder, "config", config)
        return encoder

    def reset_parameters(self) -> None:
        """Draws all weights again."""
        for module in self.children():
            reset(module)

    def save_pretrained(self, folder: str | Path) -> None:
        """Writes ``config.toml`` and ``model.safetensors``, for ``from_pretrained``."""
        folder = Path(folder)
        config = {"model": {"name": self.name, **plain_options(self.plain_config())}}
        if (folder / "config.toml").exists() and read_config(folder).keys() != config.keys():
            raise DataError(f"{folder} holds a run, which would be lost; choose another folder")
        weights = {f"encoder.{name}": value for name, value in self.state_dict().items()}
        write_tensors(folder / "model.safetensors", weights, {})
        with atomic_write(folder / "config.toml") as file:
            tomli_w.dump(config, file)

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> Self:
        """The encoder of a folder that ``save_pretrained`` wrote, or of the folder of a finished run."""
        folder = Path(folder)
        config = read_config(folder)
        section = dict(config.get("model", {}))
        name = section.pop("name", None)
        if name != cls.name:
            raise DataError(f"{folder} holds a {name!r}, not a {cls.name!r}")
        types = option_types(cls, PLACEMENT)
        facts = {fact: config.get("facts", {}).get(fact) for fact in FACTS if fact in types}
        where, file = f"{folder / 'config.toml'} [model]", folder / "model.safetensors"
        options = checked_options(facts | section, types, where)
        weights = part_of(read_tensors(file)[0], "encoder.")
        try:
            encoder = cls(**options)
        except (TypeError, ValueError) as error:
            raise DataError(f"{where} {error}") from error
        encoder.to(dtype=next((value.dtype for value in weights.values() if value.is_floating_point()), None))
        load_weights(encoder, weights, str(file))
        return encoder

    def is_plain(self) -> bool:
        """Whether the arguments can be written down: a function of the user's own cannot."""
        return all(isinstance(value, _PLAIN) for value in self.config.values())

    def plain_config(self) -> dict[str, Any]:
        """The arguments, if they can be written down."""
        for name, value in self.config.items():
            if not isinstance(value, _PLAIN):
                raise DataError(f"{name}={value!r} cannot be written to a file; use one that has a name")
        return self.config

    def extra_repr(self) -> str:
        """The sizes, and the options that are not at their default."""
        changed = changed_options(self.config, type(self))
        sizes = [str(changed.pop(name)) for name in ("in_features", "dim") if name in changed]
        return ", ".join([*sizes, *(f"{name}={value!r}" for name, value in changed.items())])


def read_config(folder: Path) -> dict[str, Any]:
    """``config.toml`` of a folder."""
    path = folder / "config.toml"
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        raise DataError(f"{folder} holds no config.toml; give the folder of a run") from None
    except (ValueError, RecursionError) as error:  # also of numbers too long, and of nesting too deep
        raise DataError(f"{path} is damaged: {error}") from None


def widths(in_features: int, dim: int, num_layers: int) -> list[tuple[int, int]]:
    """Width before and after each layer; all layers after the first are ``dim`` wide."""
    check_sizes(in_features=in_features, dim=dim, num_layers=num_layers)
    return list(pairwise([in_features, *[dim] * num_layers]))


class GraphEncoder(Encoder):
    """An encoder of nodes by layers on a graph, and what all of these share: the input of the first layer.

    Args:
        in_features: Number of features of a node.
        dim: Dimension of the space, and width of all layers.
        num_layers: Number of layers.
        dropout: Dropout of the vectors between layers.
        feature_dropout: Dropout of the features.
        node_vectors: Whether each node of the training graph, which has ``num_nodes``, has a learned vector, added to a
            linear map of its features before the first layer; see ``NodeVectors``.
        vector_dropout: Dropout of the node vectors.
        use_features: Whether features are used; without them, the node vectors stand alone.
    """

    def __init__(
        self,
        in_features: int,
        dim: int,
        num_layers: int,
        *,
        dropout: float = 0.0,
        feature_dropout: float = 0.0,
        node_vectors: bool = False,
        vector_dropout: float = 0.0,
        use_features: bool = True,
        num_nodes: int | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check_sizes(in_features=in_features, dim=dim, num_layers=num_layers)
        check_shares(dropout=dropout, feature_dropout=feature_dropout)
        check_inputs(node_vectors, use_features)
        self.in_features, self.dim, self.num_layers = in_features, dim, num_layers
        self.dropout, self.feature_dropout = dropout, feature_dropout
        self.factory: dict[str, Any] = {"device": device, "dtype": dtype}  # of the layers' weights
        self.linear = FeatureLinear(in_features, dim, **self.factory) if node_vectors and use_features else None
        self.vectors = NodeVectors(num_nodes, dim, vector_dropout, **self.factory) if node_vectors else None
        self.widths = widths(dim if node_vectors else in_features, dim, num_layers)

    def forward(
        self, x: Any, edge_index: Any, edge_weight: Tensor | None = None, nodes: Tensor | None = None
    ) -> Tensor:
        """Points of nodes with features ``x (n, in_features)``, dense or sparse (torch or SciPy).

        ``edge_index`` is a ``(2, edges)`` tensor, a sparse ``adj_t``, or what ``prepare_adjacency`` returned; for
        ``nodes`` see ``NodeVectors``.
        """
        check_features(x, self.in_features)
        adjacency = adjacency_of(edge_index, edge_weight, x.shape[0])
        return self.encode(self._inputs(x, adjacency, nodes), adjacency)

    def _inputs(self, x: Any, adjacency: Adjacency, nodes: Tensor | None) -> Any:
        """What enters the first layer: the features, or with node vectors ``W x_i + b + v_i``."""
        if self.vectors is None:
            return feature_dropout(x, self.feature_dropout, self.training)
        vectors = self.vectors(nodes, adjacency)
        if self.linear is None:
            return vectors
        return self.linear(feature_dropout(x, self.feature_dropout, self.training)) + vectors

    @abstractmethod
    def encode(self, hidden: Any, adjacency: Adjacency) -> Tensor:
        """The layers, from their input: vectors, or features, which may be sparse."""


class PoolingEncoder(Encoder):
    """An encoder that gives one Euclidean vector ``(num_graphs, dim)`` for each graph of a batch.

    Args:
        in_features: Number of features of a node.
        dim: Width of the layers and of the vector of a graph.
        dropout: Dropout of the hidden layers.
    """

    tasks: ClassVar[tuple[str, ...]] = ("gc",)
    pools: ClassVar[bool] = True
    space: Space = "euclidean"

    def __init__(self, in_features: int, dim: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        check_sizes(in_features=in_features, dim=dim)
        check_shares(dropout=dropout)
        self.in_features, self.dim = in_features, dim
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: Any,
        edge_index: Any,
        batch: Tensor | None = None,
        num_graphs: int | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        """Vectors ``(num_graphs, dim)`` of graphs whose nodes have the features ``x (n, in_features)``.

        ``batch`` holds the graph of each node, in rising order; without it, all nodes are of one graph.
        """
        check_features(x, self.in_features)
        x = prepare_features(x) if is_sparse(x) else x
        adjacency = adjacency_of(edge_index, edge_weight, x.shape[0])
        if batch is None:
            batch = torch.zeros(x.shape[0], dtype=torch.long, device=adjacency.device)
        if num_graphs is None:
            num_graphs = int(batch.max()) + 1 if len(batch) else 1
        return self.pooled(x, adjacency, batch, num_graphs)

    @abstractmethod
    def pooled(self, x: Any, adjacency: Adjacency, batch: Tensor, num_graphs: int) -> Tensor:
        """``forward``, all arguments being there and checked."""
