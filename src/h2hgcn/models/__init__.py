"""Encoders: from node features and a graph to points of a space."""

from h2hgcn.models.euclidean_gnn import EuclideanGNN
from h2hgcn.models.h2h_gcn import H2HGCN
from h2hgcn.models.hgcn import HGCN
from h2hgcn.models.hgnn import HGNN
from h2hgcn.models.hybonet import HyboNet
from h2hgcn.models.pretrained import Pretrained

ENCODERS: dict[str, type[Pretrained]] = {
    encoder.name: encoder
    for encoder in (
        H2HGCN,
        # hyperbolic
        HGCN,
        HGNN,
        HyboNet,
        # Euclidean
        EuclideanGNN,
    )
}

__all__ = ["ENCODERS", "H2HGCN", "HGCN", "HGNN", "EuclideanGNN", "HyboNet", "Pretrained"]
