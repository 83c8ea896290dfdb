import math

import mpmath
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from samples import as_points, boost, dtypes, pair_at, random_points, seeds
from torch.autograd import gradcheck, gradgradcheck

from h2hgcn.geometry import lorentz
from h2hgcn.geometry.numerics import max_radius


@pytest.fixture(scope="module", params=["reference", "kernel"], autouse=True)
def way(request):
    """Both ways to measure distances, whatever the number of points."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lorentz, "_FEW_NUMBERS", -1 if request.param == "kernel" else math.inf)
        yield request.param


PAIRS = [
    (r, d, kind) for r in (1, 2, 5, 7, 9, 12) for d in (0.1, 1.0, 3.0, 10.0) for kind in ("angle", "radius", "both")
]


def exact(x, y):
    """Distance and its gradient by x's space coordinates, from the stored coordinates in 60 digits."""
    with mpmath.workdps(60):
        sx = mpmath.matrix([float(v) for v in x[1:]])
        sy = mpmath.matrix([float(v) for v in y[1:]])
        tx, ty = mpmath.sqrt(1 + (sx.T * sx)[0]), mpmath.sqrt(1 + (sy.T * sy)[0])
        distance = mpmath.acosh(tx * ty - (sx.T * sy)[0])
        gradient = (sx * (ty / tx) - sy) / mpmath.sinh(distance)
        return float(distance), torch.tensor([float(v) for v in gradient], dtype=torch.float64)


@pytest.mark.parametrize(("radius", "distance", "kind"), [p for p in PAIRS if p[2] == "radius" or p[1] < 2 * p[0]])
def test_distance_and_gradient_against_mpmath(radius, distance, kind, dtype):
    x, y = (as_points(space, dtype)[0] for space in pair_at(radius, distance, kind))
    x.requires_grad_()
    value = lorentz.distance(x, y)
    value.backward()
    truth, gradient = exact(x.detach(), y)
    assert value.item() == pytest.approx(truth, rel=2e-7 if dtype == torch.float32 else 1e-10)
    error = (x.grad[1:].double() - gradient).norm() / gradient.norm()
    assert error <= (1e-4 if radius <= 9 else 1e-2)
    assert x.grad[0] == 0


@pytest.mark.parametrize("squared", [False, True])
def test_distance_gradient_and_its_derivative(squared):
    function = lorentz.squared_distance if squared else lorentz.distance
    x, y = random_points(6, 3, 3.0, seed=1), random_points(6, 3, 3.0, seed=2)
    inputs = (x.requires_grad_(), y.requires_grad_())
    assert gradcheck(function, inputs)
    assert gradgradcheck(function, inputs)


def test_equal_points_and_the_origin(dtype):
    origin = torch.tensor([[1.0, 0.0, 0.0]], dtype=dtype)
    far = lorentz.exp_origin(torch.tensor([[max_radius(dtype), 0.0]], dtype=dtype))
    points = torch.cat([origin, far, random_points(3, 2, 5.0, dtype=dtype)]).requires_grad_()
    for function in (lorentz.distance, lorentz.squared_distance):
        for other in (points.detach(), origin.expand(5, 3), far.expand(5, 3)):
            points.grad = None
            value = function(points, other)
            value.sum().backward()
            assert value.isfinite().all()
            assert points.grad.isfinite().all()
        assert (function(points, points) == 0).all()
    squared = lorentz.squared_distance(points, points.detach())
    assert (torch.autograd.grad(squared.sum(), points)[0] == 0).all()
    to_origin = lorentz.distance_to_origin(points)
    torch.testing.assert_close(lorentz.distance(points, origin), to_origin, rtol=1e-6, atol=1e-6)
    assert torch.autograd.grad(to_origin.sum(), points)[0].isfinite().all()


def test_gradient_at_the_origin_points_away_from_the_other_point():
    origin = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64, requires_grad=True)
    other = lorentz.exp_origin(torch.tensor([2.0, 0.0], dtype=torch.float64))
    lorentz.distance(origin, other).backward()
    torch.testing.assert_close(origin.grad, torch.tensor([0.0, -1.0, 0.0], dtype=torch.float64))


@given(seed=seeds, dtype=dtypes)
def test_distance_is_a_metric(seed, dtype):
    x, y, z = (random_points(20, 4, 8.0, seed=seed % 1000 + k, dtype=dtype) for k in range(3))
    xy, yz, xz = lorentz.distance(x, y), lorentz.distance(y, z), lorentz.distance(x, z)
    assert (xy >= 0).all()
    torch.testing.assert_close(xy, lorentz.distance(y, x))
    assert (xz <= (xy + yz) * (1 + 1e-5)).all()
    torch.testing.assert_close(lorentz.squared_distance(x, y), xy.square())


@given(seed=seeds, rapidity=st.floats(0, 3))
def test_distance_is_invariant_under_boosts(seed, rapidity):
    x, y = random_points(10, 5, 4.0, seed), random_points(10, 5, 4.0, seed + 1)
    moved = lorentz.distance(boost(x, rapidity, seed), boost(y, rapidity, seed))
    torch.testing.assert_close(moved, lorentz.distance(x, y), rtol=1e-7, atol=1e-9)


@given(seed=seeds, dtype=dtypes, radius=st.floats(1e-6, 10))
def test_exp_and_log_at_the_origin_are_inverse(seed, dtype, radius):
    tangent = lorentz.log_origin(random_points(10, 5, radius, seed)).to(dtype)
    point = lorentz.exp_origin(tangent)
    assert lorentz.violation(point).max() <= 4 * torch.finfo(dtype).eps
    torch.testing.assert_close(
        lorentz.log_origin(point), tangent, rtol=1e-5 if dtype == torch.float32 else 1e-12, atol=0
    )


@given(seed=seeds, dtype=dtypes, radius=st.floats(1e-3, 3))
def test_exp_and_log_are_inverse(seed, dtype, radius):
    point, other = (random_points(10, 5, radius, seed + k, dtype) for k in range(2))
    tangent = lorentz.log(point, other)
    assert (lorentz.inner(point.double(), tangent.double()).abs() <= 1e-4 * point[:, 0].square()).all()
    reached = lorentz.exp(point, tangent)
    # coordinates resolve eps·exp(radius), and what is lost there grows with the way, which is up to two radii
    resolution = 8 * torch.finfo(dtype).eps * math.exp(3 * radius)
    assert lorentz.distance(reached, other).max() <= resolution
    assert lorentz.violation(reached).max() <= 4 * torch.finfo(dtype).eps


def test_length_of_the_logarithm_is_the_distance():
    point, other = random_points(50, 6, 6.0, 1), random_points(50, 6, 6.0, 2)
    tangent = lorentz.log(point, other)
    length = lorentz.inner(tangent, tangent).sqrt()
    torch.testing.assert_close(length, lorentz.distance(point, other), rtol=1e-7, atol=1e-7)
    assert (lorentz.log(point, point) == 0).all()


def test_exponential_maps_are_bounded(dtype):
    long = torch.full((1, 3), 1e30, dtype=dtype, requires_grad=True)
    point = lorentz.exp_origin(long)
    point.sum().backward()
    assert point.isfinite().all()
    assert long.grad.isfinite().all()
    torch.testing.assert_close(lorentz.distance_to_origin(point).item(), max_radius(dtype), rtol=1e-5, atol=0)
    capped = lorentz.exp_origin(long, max_norm=2.0)
    torch.testing.assert_close(lorentz.distance_to_origin(capped).item(), 2.0, rtol=1e-5, atol=0)
    start = random_points(1, 3, 5.0, dtype=dtype)
    assert lorentz.exp(start, torch.full((1, 4), 1e30, dtype=dtype)).isfinite().all()


def test_exp_origin_has_exact_gradients():
    tangent = torch.randn(5, 3, dtype=torch.float64)
    tangent[0] = 0
    tangent[1] *= 1e-3
    tangent[2] *= 10  # beyond the cap
    assert gradcheck(lambda v: lorentz.exp_origin(v, max_norm=4.0), tangent.requires_grad_())


def test_pairwise_distance_agrees_with_distance(dtype):
    points, others = random_points(7, 4, 5.0, 1, dtype), random_points(5, 4, 5.0, 2, dtype)
    expected = lorentz.distance(points[:, None], others[None])
    torch.testing.assert_close(lorentz.pairwise_distance(points, others), expected, rtol=1e-5, atol=1e-6)
    same = lorentz.pairwise_distance(points.requires_grad_(), points.detach())
    same.sum().backward()
    assert (same.diagonal() == 0).all()
    assert points.grad.isfinite().all()


def test_shapes_broadcast_and_may_be_empty():
    assert lorentz.distance(torch.ones(0, 4), torch.ones(0, 4)).shape == (0,)
    assert lorentz.distance(random_points(3, 2, 1.0)[:, None], random_points(4, 2, 1.0)[None]).shape == (3, 4)
    assert lorentz.exp_origin(torch.zeros(2, 0, 3)).shape == (2, 0, 4)
    assert lorentz.distance(random_points(1, 2, 1.0)[0], random_points(1, 2, 1.0, 1)[0]).shape == ()


PAIR_FUNCTIONS = [
    lorentz.inner, lorentz.distance, lorentz.squared_distance, lorentz.pairwise_distance, lorentz.exp, lorentz.log
]  # fmt: skip


@pytest.mark.parametrize("function", PAIR_FUNCTIONS)
@pytest.mark.parametrize("shapes", [((2, 1), (2, 4)), ((2, 4), (2, 1)), ((2, 3), (2, 4)), ((2, 0), (2, 0)), ((), (4,))])
def test_coordinates_do_not_broadcast(function, shapes):
    with pytest.raises(ValueError, match="do not go together; pass points of one space"):
        function(*(torch.ones(shape) for shape in shapes))


@pytest.mark.parametrize("function", PAIR_FUNCTIONS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the compiler's own parts
def test_pair_functions_compile_to_one_graph(function):
    torch._dynamo.reset()
    x, y = random_points(4, 3, 2.0, 1), random_points(4, 3, 2.0, 2)
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x, y), function(x, y))


def test_violation_sees_a_point_off_the_hyperboloid():
    point = torch.tensor([[2.0, 0.0, 0.0]])
    assert lorentz.violation(point).item() == pytest.approx(0.75)
    assert lorentz.violation(lorentz.project(point)).item() == 0


@pytest.mark.parametrize("function", [lorentz.distance, lorentz.squared_distance])
def test_gradients_at_the_origin_are_the_same_with_a_graph(function):
    origin = torch.tensor([[1.0, 0.0, 0.0]], dtype=torch.float64, requires_grad=True)
    other = lorentz.exp_origin(torch.tensor([[1.0, 0.5]], dtype=torch.float64))
    (plain,) = torch.autograd.grad(function(origin, other).sum(), origin)
    (with_graph,) = torch.autograd.grad(function(origin, other).sum(), origin, create_graph=True)
    torch.testing.assert_close(with_graph, plain)
    near = origin.detach() + torch.tensor([[0.0, 1e-3, -2e-3]], dtype=torch.float64)
    assert gradgradcheck(function, (near.requires_grad_(), other))
    assert gradcheck(lorentz.log, (near.requires_grad_(), other))


def test_squared_distance_has_the_curvature_of_a_square_where_points_meet():
    origin = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)
    hessian = torch.autograd.functional.hessian(lambda x: lorentz.squared_distance(x, origin), origin)
    torch.testing.assert_close(hessian[1:, 1:], 2 * torch.eye(2, dtype=torch.float64))


@pytest.mark.parametrize("radius", [4.0, 8.0, 10.0])
def test_exp_finds_the_way_back_to_the_origin(radius):
    far = lorentz.exp_origin(torch.tensor([radius, 0.3], dtype=torch.float64))
    near = lorentz.exp_origin(torch.tensor([0.1, -0.2], dtype=torch.float64))
    reached = lorentz.exp(far, lorentz.log(far, near))
    assert lorentz.distance(reached, near) <= 1e-15 * math.exp(2 * radius + 1)


def test_nan_stays_nan():
    nothing = torch.full((2, 3), float("nan"))
    assert lorentz.distance(nothing, nothing).isnan().all()
    assert lorentz.pairwise_distance(nothing, nothing).isnan().all()


@pytest.mark.parametrize(
    "function", [lorentz.distance, lorentz.squared_distance, lorentz.pairwise_distance, lorentz.log]
)
def test_transforms_of_torch_func(function):
    x, y, direction = (random_points(5, 3, 2.0, seed) for seed in (1, 2, 3))

    def total(point):
        return function(point, y).sum()

    expected = torch.autograd.functional.jacobian(total, x)
    torch.testing.assert_close(torch.func.grad(total)(x), expected)
    torch.testing.assert_close(torch.func.jvp(total, (x,), (direction,))[1], (expected * direction).sum())
    several = torch.stack([x, y])
    mapped = torch.func.vmap(lambda points: function(points, y))(several)
    torch.testing.assert_close(mapped, torch.stack([function(points, y) for points in several]))
