"""Encoders: from node features and a graph to points of a space."""

from h2hgcn.models.dgcnn import DGCNN
from h2hgcn.models.diffpool import DiffPool
from h2hgcn.models.ecc import ECC
from h2hgcn.models.encoder import Encoder
from h2hgcn.models.fingerprint import Fingerprint
from h2hgcn.models.gcn import GAT, GCN, SAGE, SGC
from h2hgcn.models.gin import GIN
from h2hgcn.models.h2h_gcn import H2HGCN
from h2hgcn.models.hgcn import HGCN
from h2hgcn.models.hgnn import HGNN, EuclideanGNN
from h2hgcn.models.hnn import HNN
from h2hgcn.models.hybonet import HyboNet
from h2hgcn.models.mlp import MLP
from h2hgcn.models.shallow import MixedEuclidean, MixedHyperbolic, ShallowEuclidean, ShallowHyperbolic

ENCODERS: dict[str, type[Encoder]] = {
    encoder.name: encoder
    for encoder in (
        H2HGCN,
        # shallow
        ShallowEuclidean,
        ShallowHyperbolic,
        MixedEuclidean,
        MixedHyperbolic,
        # networks
        MLP,
        HNN,
        # Euclidean graph networks
        GCN,
        GAT,
        SAGE,
        SGC,
        EuclideanGNN,
        # hyperbolic graph networks
        HGCN,
        HGNN,
        HyboNet,
        # of whole graphs
        GIN,
        ECC,
        DGCNN,
        DiffPool,
        Fingerprint,
    )
}

__all__ = [
    "DGCNN", "ECC", "ENCODERS", "GAT", "GCN", "GIN", "H2HGCN", "HGCN", "HGNN", "HNN", "MLP", "SAGE", "SGC",
    "DiffPool", "Encoder", "EuclideanGNN", "Fingerprint", "HyboNet", "MixedEuclidean", "MixedHyperbolic",
    "ShallowEuclidean", "ShallowHyperbolic",
]  # fmt: skip
