"""The base class of encoders: their arguments, and how they are saved and loaded."""

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
from h2hgcn.graph.features import is_sparse, prepare_features
from h2hgcn.layers.spaces import Space
from h2hgcn.options import checked_options, option_types, plain_options

# Settled by whoever builds the encoder, not part of what it is.
PLACEMENT = ("device", "dtype")


# Settled by the data.
FACTS = ("in_features", "num_nodes")


class Pretrained(nn.Module):
    """An encoder that can say what it is: its name, what it is good for, its paper, and its arguments, which rebuild
    it.

    ``inductive`` says whether it can be used on nodes that it was not trained with, ``uses_graph`` whether it looks at
    edges. One that ``pools`` is called with
    the graph of each node and the number of graphs, too, and gives one point for each graph.
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


class PoolingEncoder(Pretrained):
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
        self._check_features(x)
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

    def _check_features(self, x: Any) -> None:
        if not isinstance(x, Tensor) and not is_sparse(x):
            raise ValueError(f"x is a {type(x).__name__}; pass a tensor, or a sparse matrix of torch or SciPy")
        shape = tuple(x.shape)
        if len(shape) != 2 or shape[1] != self.in_features:
            raise ValueError(
                f"x has shape {shape}, but the encoder was made for {self.in_features} features; pass one row of "
                f"{self.in_features} numbers for each node, or make an encoder with in_features={shape[-1]}"
            )


def batch_norm(width: int) -> BatchNorm:
    """Batch norm that takes a batch of one row, too: with the running mean and variance, as in evaluation."""
    return BatchNorm(width, allow_single_element=True)


def check_counts(**counts: int) -> None:
    for name, count in counts.items():
        if count < 1:
            raise ValueError(f"{name}={count} must be at least 1")


def check_shares(**shares: float) -> None:
    for name, share in shares.items():
        if not 0 <= share < 1:
            raise ValueError(f"{name}={share} must be 0 or more, and below 1")


def check_choice(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(f"{name}={value!r} is not known; use one of {known}")
