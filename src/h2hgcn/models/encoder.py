"""The base class of encoders: their arguments, and how they are saved and loaded."""

import inspect
import tomllib
from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

import tomli_w
import torch
from torch import Tensor, nn
from torch_geometric.nn import BatchNorm

from h2hgcn.errors import DataError
from h2hgcn.files import atomic_write, load_weights, part_of, read_tensors, write_tensors
from h2hgcn.graph.adjacency import Adjacency, adjacency_of
from h2hgcn.graph.features import check_features, is_sparse, prepare_features
from h2hgcn.layers.spaces import Space
from h2hgcn.options import checked_options, option_types, plain_options

# Chosen by the caller; not part of the saved configuration.
PLACEMENT = ("device", "dtype")


# Settled by the data.
FACTS = ("in_features", "num_nodes")


class Encoder(nn.Module):
    """The base class of encoders: it declares what tasks ask of them, keeps the arguments of the constructor as
    ``config``, and saves and loads.

    ``inductive`` says whether it can be used on nodes that it was not trained with, ``uses_graph`` whether it looks at
    edges. One that ``pools`` is also called with the graph of each node and the number of graphs, and gives one point
    for each graph.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    paper: ClassVar[str]
    tasks: ClassVar[tuple[str, ...]] = ("lp", "nc", "gc")
    inductive: ClassVar[bool] = True
    uses_graph: ClassVar[bool] = True
    pools: ClassVar[bool] = False
    space: Space
    dim: int
    config: dict[str, Any]

    def __new__(cls, *arguments: Any, **options: Any) -> Self:
        """Keeps the arguments, defaults included; the device and the precision are not part of what an encoder is."""
        encoder = super().__new__(cls)
        bound = inspect.signature(cls.__init__).bind_partial(encoder, *arguments, **options)  # copies pass none
        bound.apply_defaults()
        _, *given = bound.arguments.items()
        config = {name: value for name, value in given if name not in PLACEMENT}
        if config.get("node_vectors") is False:
            config["num_nodes"] = None  # it does not depend on their number
        object.__setattr__(encoder, "config", config)
        return encoder

    def save_pretrained(self, folder: str | Path) -> None:
        """Writes ``config.toml`` and ``model.safetensors``, for ``from_pretrained``."""
        folder = Path(folder)
        config = {"model": {"name": self.name, **plain_options(self.plain_config())}}
        if (folder / "config.toml").exists() and read_config(folder).keys() != config.keys():
            raise DataError(f"{folder} holds a run, which would be lost; choose another folder")
        write_tensors(
            folder / "model.safetensors", {f"encoder.{name}": value for name, value in self.state_dict().items()}, {}
        )
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
        for fact in FACTS:
            if fact in types:
                section.setdefault(fact, config.get("facts", {}).get(fact))
        where, file = f"{folder / 'config.toml'} [model]", folder / "model.safetensors"
        options = checked_options(section, types, where)
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
        return all(map(_is_plain, self.config.values()))

    def plain_config(self) -> dict[str, Any]:
        """The arguments, if they can be written down."""
        for name, value in self.config.items():
            if not _is_plain(value):
                raise DataError(f"{name}={value!r} cannot be written to a file; use one that has a name")
        return self.config


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | bool)


def read_config(folder: Path) -> dict[str, Any]:
    """``config.toml`` of a folder."""
    path = folder / "config.toml"
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        raise DataError(f"{folder} holds no config.toml; give the folder of a run") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is damaged: {error}") from None


class PoolingEncoder(Encoder):
    """An encoder that gives one Euclidean vector ``(num_graphs, dim)`` for each graph of a batch."""

    tasks: ClassVar[tuple[str, ...]] = ("gc",)
    pools: ClassVar[bool] = True
    space: Space = "euclidean"
    in_features: int

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

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.config.items())


def batch_norm(width: int) -> BatchNorm:
    """Batch norm that takes a batch of one row, too: with the running mean and variance, as in evaluation."""
    return BatchNorm(width, allow_single_element=True)


def check_choice(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(f"{name}={value!r} is not known; use one of {known}")
