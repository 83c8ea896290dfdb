"""Embeddings for the explorer whose every point is known."""

import numpy as np

from h2hgcn.explorer import make_scene


def tree(depth=5, branch=3, length=1.3):
    """A balanced tree drawn in the disk: points (n, 2), edges (2, n - 1), and the branch that a node is on."""
    points, edges, branches = [0j], [], ["root"]
    layer = [(0, 0.0, 2 * np.pi)]
    for level in range(1, depth):
        children = []
        for parent, begin, end in layer:
            for k in range(branch):
                low, high = begin + (end - begin) * np.array([k, k + 1]) / branch
                edges.append((parent, len(points)))
                branches.append(branches[parent] if parent else f"branch {k}")
                children.append((len(points), low, high))
                points.append(np.tanh(length * level / 2) * np.exp(1j * (low + high) / 2))
        layer = children
    found = np.array(points)
    return np.column_stack([found.real, found.imag]), np.array(edges).T, branches


def tree_scene(depth=5, **options):
    """The tree with ids n0, n1, ...; a link is the likelier the smaller the sum of its ends."""
    points, edges, branches = tree(depth)
    count = len(points)
    given = {
        "labels": branches,
        "space": "poincare",
        "edges": edges,
        "extra": {"weight": np.linspace(0, 1, count), "parity": [str(k % 2) for k in range(count)]},
        "title": "A <b>tree</b>",
        "probabilities": lambda pairs: 1 / (2.0 + pairs.sum(1)),
    }
    return make_scene(points, [f"n{k}" for k in range(count)], **given | options)
