"""Layers on the hyperboloid: modules with parameters, in PyTorch Geometric's conventions."""

from h2hgcn.graph.adjacency import Adjacency, prepare_adjacency
from h2hgcn.layers.decoders import CentroidDistance, FermiDiracDecoder
from h2hgcn.layers.h2h_conv import H2HConv, LorentzLinear

__all__ = ["Adjacency", "CentroidDistance", "FermiDiracDecoder", "H2HConv", "LorentzLinear", "prepare_adjacency"]
