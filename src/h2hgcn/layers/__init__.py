"""Layers on the hyperboloid: modules with parameters, in PyTorch Geometric's conventions."""

from h2hgcn.layers.adjacency import Adjacency, prepare_adjacency
from h2hgcn.layers.centroids import CentroidDistance
from h2hgcn.layers.fermi_dirac import FermiDiracDecoder
from h2hgcn.layers.h2h_conv import H2HConv
from h2hgcn.layers.linear import LorentzLinear

__all__ = ["Adjacency", "CentroidDistance", "FermiDiracDecoder", "H2HConv", "LorentzLinear", "prepare_adjacency"]
