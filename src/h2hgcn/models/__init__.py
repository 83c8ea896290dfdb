"""Encoders: from node features and a graph to points of a space."""

from torch import nn

from h2hgcn.models.h2h_gcn import H2HGCN

ENCODERS: dict[str, type[nn.Module]] = {"h2h-gcn": H2HGCN}

__all__ = ["ENCODERS", "H2HGCN"]
