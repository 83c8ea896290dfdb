import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from samples import boost, random_points, seeds

from h2hgcn.embeddings import project_to_disk
from h2hgcn.embeddings.disk import DiskProjection
from h2hgcn.errors import DataError
from h2hgcn.geometry import klein, lorentz, poincare

dims, radii = st.integers(1, 9), st.floats(0.01, 8)


def disk_radii(projection: DiskProjection):
    return 2 * np.arctanh(np.linalg.norm(projection.points, axis=1))


@given(seeds, dims, radii, st.booleans())
def test_distance_to_the_middle_is_kept(seed, dim, radius, center):
    points = random_points(30, dim, radius, seed)
    projection = project_to_disk(points.numpy(), center=center)
    middle = torch.from_numpy(projection.center)
    np.testing.assert_allclose(disk_radii(projection), lorentz.distance(middle, points), rtol=1e-6, atol=1e-12)
    wanted = klein.einstein_midpoint(points) if center else lorentz.exp_origin(torch.zeros(dim, dtype=torch.float64))
    assert lorentz.distance(middle, wanted) < 1e-6


@given(seeds, radii, st.booleans())
def test_two_dimensions_keep_all_distances(seed, radius, center):
    points = random_points(12, 2, radius, seed)
    disk = torch.from_numpy(project_to_disk(points.numpy(), center=center).points)
    shown = lorentz.pairwise_distance(poincare.to_lorentz(disk), poincare.to_lorentz(disk))
    np.testing.assert_allclose(shown, lorentz.pairwise_distance(points, points), rtol=1e-5, atol=1e-5)
    if not center:
        np.testing.assert_allclose(disk, poincare.from_lorentz(points), rtol=1e-12, atol=1e-14)


@given(seeds, st.integers(3, 9), st.booleans())
def test_permuted_points_make_a_permuted_picture(seed, dim, center):
    points = random_points(40, dim, 4.0, seed).numpy() * 1.0
    points[:, 1:] *= np.linspace(3, 1, dim)  # principal directions that can be told apart
    points[:, 0] = np.sqrt(1 + (points[:, 1:] ** 2).sum(1))
    order = np.random.default_rng(seed).permutation(len(points))
    picture = project_to_disk(points, center=center).points
    np.testing.assert_allclose(project_to_disk(points[order], center=center).points, picture[order], atol=1e-6)


def test_points_in_one_orthant_are_spread_around_the_disk():
    points = random_points(500, 8, 3.0).abs().numpy()
    x, y = project_to_disk(points).points.T
    assert len(np.unique(np.floor(np.arctan2(y, x) / (np.pi / 4)))) == 8
    assert (project_to_disk(points, center=False).points[:, 0] > 0).all()


@given(seeds)
def test_centering_undoes_a_boost(seed):
    points = random_points(20, 2, 2.0, seed)
    moved = boost(points, 1.5, seed)
    np.testing.assert_allclose(disk_radii(project_to_disk(moved)), disk_radii(project_to_disk(points)), atol=1e-6)


ORIGIN = [[1.0, 0.0, 0.0, 0.0]]


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize(
    "points",
    [
        ORIGIN,
        ORIGIN * 5,
        random_points(1, 3, 5.0),
        random_points(1, 3, 5.0).repeat(7, 1),
        random_points(4, 1, 5.0),
        lorentz.exp_origin(torch.eye(3, dtype=torch.float64) * 36),
        torch.cat([random_points(3, 3, 1e-160), random_points(3, 3, 1.0)]),
    ],
    ids=["origin", "origins", "one", "equal", "dim 1", "far", "tiny"],
)
def test_degenerate_points_have_a_picture(points, center):
    disk = project_to_disk(np.asarray(points), center=center).points
    assert np.isfinite(disk).all()
    assert (np.linalg.norm(disk, axis=1) < 1).all()


def test_float32_and_ball_points():
    points = random_points(20, 4, 5.0)
    exact = project_to_disk(points.numpy()).points
    for given_points, space in ((points.float(), "lorentz"), (poincare.from_lorentz(points), "ball")):
        np.testing.assert_allclose(project_to_disk(given_points.numpy(), space).points, exact, atol=1e-4)


def test_euclidean_points_are_not_put_into_a_disk():
    points = np.random.default_rng(0).normal(size=(50, 4)) * [5, 1, 2, 1]
    projection = project_to_disk(points, "euclidean")
    assert projection.space == "euclidean"
    assert projection.points.min() >= 0
    assert projection.points.max() <= 1
    assert np.ptp(projection.points[:, 0]) == pytest.approx(1)
    first, second = (projection.points - projection.points.mean(0)).T
    assert first @ second == pytest.approx(0, abs=1e-9)
    for few in (points[:1], points[:1].repeat(3, 0), points[:, :1]):
        assert np.isfinite(project_to_disk(few, "euclidean").points).all()


@pytest.mark.parametrize(
    ("points", "space", "message"),
    [
        (np.ones((3, 4)), "lorentz", "row 0 .and 2 more. of the points is not on the hyperboloid"),
        (np.full((3, 4), np.nan), "lorentz", "not finite"),
        (np.zeros((0, 3)), "lorentz", "shape"),
        (np.ones(3), "euclidean", "shape"),
        (np.ones((2, 2)), "poincare", "unit ball"),
        (np.array([["a"]]), "euclidean", "not an array of numbers"),
        (torch.ones(2, 2, requires_grad=True), "euclidean", "not an array of numbers"),
        (np.ones((2, 2)), "sphere", "not known; take one of lorentz"),
    ],
)
def test_bad_points_are_refused(points, space, message):
    with pytest.raises(DataError, match=message):
        project_to_disk(points, space)
