"""Encoders: from node features and a graph to points of a space."""

from h2hgcn.models.euclidean_gnns import GAT, GCN, SAGE, SGC
from h2hgcn.models.h2h_gcn import H2HGCN
from h2hgcn.models.hnn import HNN
from h2hgcn.models.mixed import MixedEuclidean, MixedHyperbolic
from h2hgcn.models.mlp import MLP
from h2hgcn.models.pretrained import Pretrained
from h2hgcn.models.shallow import ShallowEuclidean, ShallowHyperbolic

ENCODERS: dict[str, type[Pretrained]] = {
    encoder.name: encoder
    for encoder in (
        H2HGCN,
        # shallow
        ShallowEuclidean,
        ShallowHyperbolic,
        MixedEuclidean,
        MixedHyperbolic,
        # networks
        HNN,
        MLP,
        # Euclidean graph networks
        GAT,
        GCN,
        SAGE,
        SGC,
    )
}

__all__ = [
    "ENCODERS",
    "GAT",
    "GCN",
    "H2HGCN",
    "HNN",
    "MLP",
    "SAGE",
    "SGC",
    "MixedEuclidean",
    "MixedHyperbolic",
    "Pretrained",
    "ShallowEuclidean",
    "ShallowHyperbolic",
]
