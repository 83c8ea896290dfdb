"""Encoders: from node features and a graph to points of a space."""

from h2hgcn.models.h2h_gcn import H2HGCN
from h2hgcn.models.pretrained import Pretrained

ENCODERS: dict[str, type[Pretrained]] = {encoder.name: encoder for encoder in (H2HGCN,)}

__all__ = ["ENCODERS", "H2HGCN", "Pretrained"]
