"""A disease that spreads over a tree: the built-in dataset, generated, so that nothing has to be downloaded."""

import numpy as np
import torch
from numpy.random import RandomState
from numpy.typing import NDArray
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected


def generate_disease(
    num_nodes: int = 2500,
    seed: int = 0,
    *,
    max_children: int = 2,
    num_traits: int = 12,
    num_noise_features: int = 4,
    inheritance: float = 0.95,
    steepness: float = 8.0,
    threshold: float = 2.0,
    outside_contacts: float = 0.1,
    recovery: float = 0.1,
    examined: float = 0.75,
    trait_noise: float = 0.25,
    susceptibility_noise: float = 0.6,
    shared_noise: float = 0.6,
) -> Data:
    """A tree with observed traits ``x``, and in ``y`` whether the disease ever reached a node.

    The model, in the order in which it is drawn:

    1. *Tree.* Every node, first come first served, gets 1 to ``max_children`` children until all nodes are used.
    2. *Inheritance.* The root has ``num_traits`` independent standard normal traits. A child has ``inheritance`` times
       its parent's, plus a normal change that keeps the variance at 1. The first trait, standardized over the tree, is
       the susceptibility ``s``.
    3. *Spreading* (SIR). Who meets the infected catches the disease with probability ``σ(steepness · s - threshold)``.
       At the beginning the most susceptible node is infected, and everyone else with ``outside_contacts`` times that
       probability. In each step, every infected node meets its neighbors, then recovers for good with probability
       ``recovery``, until nobody is infected.
    4. *Observation.* A share ``examined`` of the nodes is examined. Their traits are seen with normal noise,
       ``susceptibility_noise`` for the first and ``trait_noise`` for the others, and with an error that all traits of
       a node share, ``shared_noise``; those of other nodes are 0. ``num_noise_features`` columns of noise follow.
    5. *Order.* The nodes are renumbered at random.

    Both tasks need features and graph together: the shared error hides from feature distances which nodes are alike,
    but neighbors average it out, and of a node that was not examined only its neighbors tell.

    The same arguments give the same graph everywhere: NumPy has frozen the streams of ``RandomState``, and what
    another processor's rounding can change in double precision is lost in ``x``, which is ``float32``.
    """
    if num_nodes < 2:
        raise ValueError(f"num_nodes is {num_nodes}, but a tree to spread on has at least 2")
    if max_children < 1:
        raise ValueError(f"max_children is {max_children}, but without children no tree grows; pass 1 or more")
    if not 0 < recovery <= 1:
        raise ValueError(f"recovery is {recovery}, but must be in (0, 1], so that the disease ends")
    random = RandomState(seed)
    num_children = random.randint(1, max_children + 1, size=num_nodes, dtype=np.int64)
    # of nodes 1, 2, ...; a parent's number is smaller than its children's
    parents = np.repeat(np.arange(num_nodes), num_children)[: num_nodes - 1]
    traits = random.standard_normal((num_nodes, num_traits))
    traits[1:] *= np.sqrt(1 - inheritance**2)
    for child, parent in enumerate(parents, start=1):
        traits[child] += inheritance * traits[parent]
    susceptibility = (traits[:, 0] - traits[:, 0].mean()) / traits[:, 0].std()
    catching = 1 / (1 + np.exp(threshold - steepness * susceptibility))
    infected = _spread(parents, catching, outside_contacts, recovery, random)
    is_examined = random.random_sample((num_nodes, 1)) < examined
    noise = np.full(num_traits, trait_noise)
    noise[0] = susceptibility_noise
    own = noise * random.standard_normal(traits.shape)
    shared = shared_noise * random.standard_normal((num_nodes, 1))
    observations = np.where(is_examined, traits + own + shared, 0.0)
    features = np.concatenate([observations, random.standard_normal((num_nodes, num_noise_features))], axis=1)
    order = random.permutation(num_nodes)
    edges = torch.from_numpy(np.argsort(order)[np.stack([parents, np.arange(1, num_nodes)])])
    return Data(
        x=torch.from_numpy(features[order]).float(),
        edge_index=to_undirected(edges, num_nodes=num_nodes),
        y=torch.from_numpy(infected[order]).long(),
        directed=False,
        name="disease",
    )


def _spread(
    parents: NDArray[np.int64], catching: NDArray[np.float64], outside: float, recovery: float, random: RandomState
) -> NDArray[np.bool_]:
    """Who was infected at any time."""
    children = np.arange(1, len(parents) + 1)
    source, target = np.concatenate([parents, children]), np.concatenate([children, parents])
    infected = random.random_sample(len(catching)) < outside * catching
    infected[catching.argmax()] = True
    ever = infected.copy()
    while infected.any():
        transmits = infected[source] & ~ever[target] & (random.random_sample(len(target)) < catching[target])
        infected &= random.random_sample(len(infected)) >= recovery
        infected[target[transmits]] = True
        ever |= infected
    return ever
