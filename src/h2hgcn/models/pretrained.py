"""Encoders on disk: their arguments as TOML, their weights as safetensors."""

import tomllib
from pathlib import Path
from typing import Any, ClassVar, Self

import tomli_w
from torch import nn

from h2hgcn.atomic import atomic_write
from h2hgcn.errors import DataError
from h2hgcn.layers.spaces import Space
from h2hgcn.options import checked_options, option_types, plain_options
from h2hgcn.tensor_files import load_weights, part_of, read_tensors, write_tensors

# Settled by whoever builds the encoder, not part of what it is.
PLACEMENT = ("device", "dtype")


# Settled by the data.
FACTS = ("in_features", "num_nodes")


class Pretrained(nn.Module):
    """An encoder that can say what it is: its name, what it is good for, its paper, and its arguments, which rebuild
    it.

    ``inductive`` says whether it can be used on nodes that it was not trained with. One that ``pools`` is called with
    the graph of each node and the number of graphs, too, and gives one point for each graph.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    paper: ClassVar[str]
    tasks: ClassVar[tuple[str, ...]] = ("lp", "nc", "gc")
    inductive: ClassVar[bool] = True
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
