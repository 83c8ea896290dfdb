"""The pictures of docs/maths.md, each drawn with the functions of h2hgcn.geometry and h2hgcn.layers themselves."""
