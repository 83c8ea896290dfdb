import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from samples import boost, dtypes, random_points, seeds

from h2hgcn.geometry import klein, lorentz


def test_there_and_back(dtype):
    points = random_points(30, 5, 4.0, dtype=dtype)
    back = klein.to_lorentz(klein.from_lorentz(points))
    tolerance = 1e-3 if dtype == torch.float32 else 1e-12
    assert lorentz.distance(back, points).max() < tolerance
    torch.testing.assert_close(klein.lorentz_factor(klein.from_lorentz(points)), points[:, 0], rtol=tolerance, atol=0)


def test_beyond_the_boundary_is_finite(dtype):
    outside = torch.tensor([[1.0, 0.0], [3.0, 4.0]], dtype=dtype, requires_grad=True)
    lifted = klein.to_lorentz(outside)
    lifted.sum().backward()
    assert lifted.isfinite().all()
    assert outside.grad.isfinite().all()
    assert lorentz.violation(lifted).max() < 1e-6


def test_midpoint_in_both_models_is_the_papers_mean():
    points, weights = random_points(6, 3, 3.0), torch.rand(6, dtype=torch.float64)
    klein_points = klein.from_lorentz(points)
    factor = 1 / (1 - klein_points.square().sum(1)).sqrt()
    mean = (weights * factor) @ klein_points / (weights @ factor)  # Eq. 12 as it is written
    torch.testing.assert_close(klein.einstein_midpoint(klein_points, weights), mean, rtol=1e-12, atol=1e-14)
    on_hyperboloid = klein.einstein_midpoint(points, weights)
    torch.testing.assert_close(klein.from_lorentz(on_hyperboloid), mean, rtol=1e-12, atol=1e-14)


def test_midpoint_of_two_points_is_half_way(dtype):
    points = random_points(2, 3, 3.0, dtype=dtype)
    middle = klein.einstein_midpoint(points)
    half = lorentz.distance(points[0], points[1]) / 2
    torch.testing.assert_close(lorentz.distance(middle, points), half.expand(2), rtol=1e-5, atol=1e-6)


@given(seed=seeds, dtype=dtypes, rapidity=st.floats(0, 3))
def test_midpoint_laws(seed, dtype, rapidity):
    points = random_points(6, 4, 4.0, seed)
    weights = torch.rand(6, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) + 0.01
    middle = klein.einstein_midpoint(points.to(dtype), weights)
    tolerance = 1e-3 if dtype == torch.float32 else 1e-9
    assert lorentz.violation(middle) <= 4 * torch.finfo(dtype).eps

    order = torch.randperm(6, generator=torch.Generator().manual_seed(seed))
    permuted = klein.einstein_midpoint(points[order].to(dtype), weights[order])
    assert lorentz.distance(permuted, middle) <= tolerance

    rotation = torch.linalg.qr(torch.randn(4, 4, dtype=torch.float64))[0]
    rotated = klein.einstein_midpoint(torch.cat([points[:, :1], points[:, 1:] @ rotation], 1).to(dtype), weights)
    expected = torch.cat([middle[:1], middle[1:] @ rotation.to(dtype)])
    assert lorentz.distance(rotated, expected) <= tolerance

    boosted = klein.einstein_midpoint(boost(points, rapidity, seed).to(dtype), weights)
    assert lorentz.distance(boosted, boost(middle.double(), rapidity, seed).to(dtype)) <= tolerance

    scaled = klein.einstein_midpoint(points.to(dtype), weights * 1e6)
    assert lorentz.distance(scaled, middle) <= tolerance


def test_midpoints_by_a_weight_matrix():
    points, weights = random_points(5, 3, 2.0), torch.rand(4, 5, dtype=torch.float64)
    expected = torch.stack([klein.einstein_midpoint(points, row) for row in weights])
    torch.testing.assert_close(klein.einstein_midpoint(points, weights), expected)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (torch.tensor([1.0, -1.0, 1.0]), "not negative"),
        (torch.zeros(3), "all weights"),
        (torch.tensor([1.0, float("nan"), 1.0]), "finite"),
        (torch.ones(4), "do not fit"),
    ],
)
def test_bad_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        klein.einstein_midpoint(random_points(3, 2, 1.0), weights)


def test_no_points():
    with pytest.raises(ValueError, match="no points"):
        klein.einstein_midpoint(torch.ones(0, 3))
