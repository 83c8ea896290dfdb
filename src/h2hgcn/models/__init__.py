"""Encoders: from node features and a graph to points of a space."""

from h2hgcn.models.dgcnn import DGCNN
from h2hgcn.models.diffpool import DiffPool
from h2hgcn.models.ecc import ECC
from h2hgcn.models.fingerprint import Fingerprint
from h2hgcn.models.gin import GIN
from h2hgcn.models.h2h_gcn import H2HGCN
from h2hgcn.models.pretrained import Pretrained

ENCODERS: dict[str, type[Pretrained]] = {
    encoder.name: encoder for encoder in (DGCNN, DiffPool, ECC, Fingerprint, GIN, H2HGCN)
}

__all__ = ["DGCNN", "ECC", "ENCODERS", "GIN", "H2HGCN", "DiffPool", "Fingerprint", "Pretrained"]
