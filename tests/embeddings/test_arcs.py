import numpy as np
import torch
from hypothesis import given
from samples import seeds

from h2hgcn.embeddings.disk import geodesic_arcs
from h2hgcn.geometry import lorentz, poincare


def disk_points(seed, count=20):
    random = np.random.default_rng(seed)
    angle, radius = random.uniform(0, 2 * np.pi, count), random.uniform(0, 0.98, count)
    return radius * np.exp(1j * angle)


@given(seeds)
def test_arcs_meet_the_boundary_at_right_angles(seed):
    start, end = disk_points(seed), disk_points(seed + 1)
    arcs = geodesic_arcs(start, end)
    bent = np.isfinite(arcs.radii)
    assert bent.any()
    # orthogonal circles: the squared distance of the centres is the sum of the squared radii
    np.testing.assert_allclose(np.abs(arcs.centers[bent]) ** 2, 1 + arcs.radii[bent] ** 2, rtol=1e-9)
    for point in (start, end):
        np.testing.assert_allclose(np.abs(point - arcs.centers)[bent], arcs.radii[bent], rtol=1e-6)


@given(seeds)
def test_sampled_arcs_are_geodesics(seed):
    start, end = disk_points(seed), disk_points(seed + 1)
    sampled = geodesic_arcs(start, end).sampled(8)
    np.testing.assert_allclose(sampled[:, 0], start, atol=1e-9)
    np.testing.assert_allclose(sampled[:, -1], end, atol=1e-9)
    lifted = poincare.to_lorentz(torch.view_as_real(torch.from_numpy(sampled)))
    steps = lorentz.distance(lifted[:, 1:], lifted[:, :-1]).sum(1)
    np.testing.assert_allclose(steps, lorentz.distance(lifted[:, 0], lifted[:, -1]), rtol=1e-6)


def test_diameters_and_equal_points_are_straight():
    start = np.array([0.5, 0, 0.3 + 0.4j, 0.6, 0.3 + 0.3j])
    end = np.array([-0.7, 0.2 + 0.6j, 0.3 + 0.4j, 0.9, 0.3 + 0.3j + 1e-15j])
    arcs = geodesic_arcs(start, end)
    assert np.isinf(arcs.radii[:4]).all()
    assert np.isfinite(arcs.sampled()).all()
    np.testing.assert_allclose(arcs.sampled(2)[:, 1], (start + end) / 2, atol=1e-12)


def test_turns_say_which_way_an_arc_runs():
    arcs = geodesic_arcs(np.array([0.5, 0.5j]), np.array([0.5j, 0.5]))
    assert arcs.turns.tolist() == [-1, 1]  # its centre lies outside the disk, so it bends towards the origin
