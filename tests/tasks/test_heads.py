import pytest
import torch
from runs import Flat
from torch import nn

from h2hgcn.geometry import lorentz, poincare
from h2hgcn.layers.spaces import squared_distance
from h2hgcn.tasks.links import LinkHead

SPACES = ["lorentz", "ball", "euclidean"]
PAIRS = torch.cartesian_prod(torch.arange(7), torch.arange(7))


def points_of(space):
    vectors = torch.randn(7, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    if space == "euclidean":
        return vectors
    points = lorentz.exp_origin(vectors)
    return points if space == "lorentz" else poincare.from_lorentz(points)


def head_of(space, directed=True):
    """A head with weights as after training."""
    torch.manual_seed(0)
    head = LinkHead(Flat(3, 3, space), decoder="directed" if directed else "symmetric").double()
    if directed:
        with torch.no_grad():
            head.source_map.copy_(torch.linalg.qr(torch.randn(3, 3, dtype=torch.float64))[0])
            head.terms.normal_()
    return head


@pytest.mark.parametrize("space", SPACES)
def test_a_symmetric_decoder_is_symmetric_and_a_directed_one_starts_so(space):
    points = points_of(space)
    symmetric = head_of(space, directed=False)(points, PAIRS).view(7, 7)
    torch.testing.assert_close(symmetric, symmetric.mT)
    start = LinkHead(Flat(3, 3, space), decoder="directed").double()
    torch.testing.assert_close(start(points, PAIRS).view(7, 7), symmetric)
    learnt = head_of(space)(points, PAIRS).view(7, 7)
    assert not torch.isclose(learnt, learnt.mT)[~torch.eye(7, dtype=torch.bool)].any()


@pytest.mark.parametrize("space", SPACES)
def test_both_weights_of_direction_get_gradients_from_the_start(space):
    head = LinkHead(Flat(3, 3, space), decoder="directed").double()
    nn.functional.softplus(head(points_of(space), PAIRS[10:20])).sum().backward()
    assert head.terms.grad.norm() > 0
    assert head.source_map.grad.norm() > 0


def test_a_directed_decoder_gives_the_same_logits_in_ball_and_hyperboloid():
    scale = torch.tensor(0.7, dtype=torch.float64)
    first, second = (head_of(space)(points_of(space), PAIRS, scale) for space in ("lorentz", "ball"))
    torch.testing.assert_close(first, second)


@pytest.mark.parametrize("incoming", [False, True])
@pytest.mark.parametrize("space", SPACES)
def test_a_search_scores_the_links_of_a_node_as_the_decoder_does(space, incoming):
    head, points = head_of(space), points_of(space)
    logits = head(points, PAIRS, 0.7).view(7, 7)
    logits = logits.mT if incoming else logits
    queries, own, terms, slopes, *_ = head.as_search(lambda: pytest.fail("no terms"), points, incoming, 0.7)
    own, terms, (slope,) = torch.from_numpy(own), torch.from_numpy(terms), slopes
    scores = own.mT + terms - slope * squared_distance(space)(queries.unsqueeze(1), points)
    torch.testing.assert_close(scores, logits)
