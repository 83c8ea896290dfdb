"""A disease that spreads over a tree: the built-in dataset, generated, so that nothing has to be downloaded.

The model, in the order in which it is drawn:

1. *Tree.* Every node, first come first served, gets 1 to ``max_children`` children until all nodes are used.
2. *Inheritance.* The root has ``num_traits`` independent standard normal traits. A child has ``inheritance`` times its
   parent's trait, plus a normal change that keeps the variance at 1. The first trait, shifted and scaled to mean 0 and
   variance 1 over the tree, is the susceptibility ``s``.
3. *Spreading.* Who meets the infected catches the disease with probability ``σ(steepness · s - threshold)`` a contact.
   At the beginning the most susceptible node is infected, and everyone else, by the world outside, with
   ``outside_contacts`` times that probability. Then, step by step, every infected node meets all its neighbors and
   after that recovers for good with probability ``recovery`` (SIR: susceptible, infected, recovered), until nobody is
   infected.
4. *Observation.* A share ``examined`` of the nodes is examined. Every trait of theirs is seen with normal noise,
   ``susceptibility_noise`` for the first and ``trait_noise`` for the others, and with an error that all observations of
   a node share, ``shared_noise``; of the other nodes all observations are 0. Behind them stand ``num_noise_features``
   columns of standard normal noise.
5. *Order.* The nodes are renumbered at random, so that their numbers say nothing.

Who was infected at any time is the label. Both tasks need features and graph together: the shared error, which a linear
map can cancel and neighbors average out, hides from feature distances which nodes are alike, and what a node that was
not examined is like can be seen from its neighbors only."""

from typing import Any

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
    """A tree with observed traits ``x``, and in ``y`` whether the disease reached a node; see the module for the model.

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
    parents = _grow_tree(num_nodes, max_children, random)
    traits = _inherit(parents, num_traits, inheritance, random)
    susceptibility = (traits[:, 0] - traits[:, 0].mean()) / traits[:, 0].std()
    catching = 1 / (1 + np.exp(threshold - steepness * susceptibility))
    infected = _spread(parents, catching, outside_contacts, recovery, random)
    noise = np.full(num_traits, trait_noise)
    noise[0] = susceptibility_noise
    observations = _observe(traits, examined, noise, shared_noise, random)
    features = np.concatenate([observations, random.standard_normal((num_nodes, num_noise_features))], axis=1)
    return _as_data(parents, features, infected, random)


def _grow_tree(num_nodes: int, max_children: int, random: RandomState) -> NDArray[np.int64]:
    """The parents of nodes 1, 2, ...; a parent's number is smaller than its children's."""
    num_children = random.randint(1, max_children + 1, size=num_nodes, dtype=np.int64)
    return np.repeat(np.arange(num_nodes), num_children)[: num_nodes - 1]


def _inherit(
    parents: NDArray[np.int64], num_traits: int, inheritance: float, random: RandomState
) -> NDArray[np.float64]:
    traits = random.standard_normal((len(parents) + 1, num_traits))
    traits[1:] *= np.sqrt(1 - inheritance**2)
    for child, parent in enumerate(parents, start=1):
        traits[child] += inheritance * traits[parent]
    return traits


def _spread(
    parents: NDArray[np.int64],
    catching: NDArray[np.float64],
    outside_contacts: float,
    recovery: float,
    random: RandomState,
) -> NDArray[np.bool_]:
    """Who was infected at any time."""
    children = np.arange(1, len(parents) + 1)
    source, target = np.concatenate([parents, children]), np.concatenate([children, parents])
    infected = random.random_sample(len(catching)) < outside_contacts * catching
    infected[catching.argmax()] = True
    ever = infected.copy()
    while infected.any():
        transmits = infected[source] & ~ever[target] & (random.random_sample(len(target)) < catching[target])
        infected &= random.random_sample(len(infected)) >= recovery
        infected[target[transmits]] = True
        ever |= infected
    return ever


def _observe(
    traits: NDArray[np.float64],
    examined: float,
    noise: NDArray[np.float64],
    shared_noise: float,
    random: RandomState,
) -> NDArray[np.float64]:
    is_examined = random.random_sample((len(traits), 1)) < examined
    own = noise * random.standard_normal(traits.shape)
    shared = shared_noise * random.standard_normal((len(traits), 1))
    return np.where(is_examined, traits + own + shared, 0.0)


def _as_data(parents: NDArray[np.int64], features: NDArray[Any], infected: NDArray[Any], random: RandomState) -> Data:
    order = random.permutation(len(features))
    new_number = torch.from_numpy(np.argsort(order)).long()
    edges = torch.stack([torch.from_numpy(parents), torch.arange(1, len(features))])
    return Data(
        x=torch.from_numpy(features[order]).float(),
        edge_index=to_undirected(new_number[edges], num_nodes=len(features)),
        y=torch.from_numpy(infected[order]).long(),
        directed=False,
        name="disease",
    )
