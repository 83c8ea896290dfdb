"""Errors of distances, their gradients, exponential maps and midpoints by radius, against 60-digit arithmetic, and
their cost.

Pairs are 0.1 to 10 apart, by angle, by radius, and by both; the truth is computed from the stored coordinates. Beside
ours:
geoopt's Lorentz manifold and the plain arcosh of the inner product, both in float32.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import geoopt
import mpmath
import torch
from report import interleaved_medians, parser, publish
from torch import Tensor

from h2hgcn.geometry import lorentz
from h2hgcn.kernels.distances import distance_of_pairs
from h2hgcn.layers import prepare_adjacency
from h2hgcn.layers.h2h_conv import midpoint

DIM = 16
RADII = (2, 5, 7, 9, 12, 15)
SEPARATIONS = (0.1, 0.3, 1.0, 3.0, 10.0)
SEEDS = range(5)
PAIRS = 44_324

Distance = Callable[[Tensor, Tensor], Tensor]


def plain_distance(x: Tensor, y: Tensor) -> Tensor:
    """The formula of the textbook, with the clamp that it needs."""
    inner = x[..., 0] * y[..., 0] - (x[..., 1:] * y[..., 1:]).sum(-1)
    return torch.acosh(inner.clamp_min(1 + torch.finfo(x.dtype).eps))


def pairs(radius: float, dtype: torch.dtype) -> Iterator[tuple[Tensor, Tensor]]:
    for separation in SEPARATIONS:
        for seed in SEEDS:
            generator = torch.Generator().manual_seed(seed)
            gaussian = torch.randn(DIM, 2, generator=generator, dtype=torch.float64)
            u, w = torch.linalg.qr(gaussian)[0].T
            for radial in (0.0, separation / 2, separation):
                other = abs(radius - radial)
                gap = (math.cosh(separation) - math.cosh(radius - other)) / (
                    math.sinh(radius) * math.sinh(other) or math.inf
                )
                if not 0 <= gap <= 2:
                    continue
                angle = 2 * math.asin(math.sqrt(gap / 2))
                first = math.sinh(radius) * u
                second = math.sinh(other) * (math.cos(angle) * u + math.sin(angle) * w)
                yield as_point(first, dtype), as_point(second, dtype)


def as_point(space: Tensor, dtype: torch.dtype) -> Tensor:
    return lorentz.project(torch.cat([torch.ones(1, dtype=dtype), space.to(dtype)]))


def exact(x: Tensor, y: Tensor) -> tuple[float, Tensor]:
    """Distance, and its gradient by the space coordinates of x, with time a function of space."""
    with mpmath.workdps(60):
        space_x, space_y = mpmath.matrix(x[1:].tolist()), mpmath.matrix(y[1:].tolist())
        time_x = mpmath.sqrt(1 + (space_x.T * space_x)[0])
        time_y = mpmath.sqrt(1 + (space_y.T * space_y)[0])
        distance = mpmath.acosh(time_x * time_y - (space_x.T * space_y)[0])
        gradient = (space_x * (time_y / time_x) - space_y) / mpmath.sinh(distance)
        return float(distance), torch.tensor([float(value) for value in gradient], dtype=torch.float64)


def errors(distance: Distance, radius: float, dtype: torch.dtype) -> tuple[float, float]:
    """Largest relative errors of the distance and of its gradient."""
    worst = worst_gradient = 0.0
    for x, y in pairs(radius, dtype):
        truth, gradient = exact(x, y)
        space = x[1:].clone().requires_grad_()
        value = distance(lorentz.project(torch.cat([torch.ones(1, dtype=dtype), space])), y)
        (ours,) = torch.autograd.grad(value, space)
        worst = max(worst, _finite(abs(value.item() - truth) / truth))
        worst_gradient = max(worst_gradient, _finite(((ours.double() - gradient).norm() / gradient.norm()).item()))
    return worst, worst_gradient


def _finite(error: float) -> float:
    return math.inf if math.isnan(error) else error


def distance_tables() -> dict[str, list[dict[str, Any]]]:
    manifold = geoopt.Lorentz()
    systems: dict[str, tuple[Distance, torch.dtype]] = {
        "plain arcosh, float32": (plain_distance, torch.float32),
        "geoopt, float32": (lambda x, y: manifold.dist(x, y), torch.float32),
        "ours, float32": (lorentz.distance, torch.float32),
        "ours, float64": (lorentz.distance, torch.float64),
    }
    values, gradients = [], []
    for radius in RADII:
        measured = {name: errors(distance, radius, dtype) for name, (distance, dtype) in systems.items()}
        values.append({"radius": radius, **{name: error[0] for name, error in measured.items()}})
        gradients.append({"radius": radius, **{name: error[1] for name, error in measured.items()}})
    return {"Largest relative error of the distance": values, "Largest relative error of its gradient": gradients}


def exponential_map_rows() -> list[dict[str, Any]]:
    """Error of the radius and of the direction after exp_origin, and of log_origin after it, relative to the vector."""
    rows = []
    manifold = geoopt.Lorentz()
    for radius in (1e-6, 1e-3, 0.1, 1.0, *RADII):
        row: dict[str, Any] = {"radius": radius}
        for name, dtype in (("float32", torch.float32), ("float64", torch.float64)):
            vector = torch.nn.functional.normalize(torch.randn(1, DIM, dtype=torch.float64)).to(dtype) * radius
            point = lorentz.exp_origin(vector)
            with mpmath.workdps(60):
                exact_vector = mpmath.matrix(vector[0].tolist())
                norm = mpmath.sqrt((exact_vector.T * exact_vector)[0])
                truth = torch.tensor([float(v * mpmath.sinh(norm) / norm) for v in exact_vector], dtype=torch.float64)
            row[f"exp, {name}"] = ((point[0, 1:].double() - truth).norm() / truth.norm()).item()
            back = lorentz.log_origin(point)
            row[f"log of exp, {name}"] = ((back - vector).norm() / vector.norm()).item()
            if dtype == torch.float32:
                padded = torch.cat([torch.zeros(1, 1), vector], dim=1)
                back = manifold.logmap0(manifold.expmap0(padded))[:, 1:]
                row["log of exp, geoopt float32"] = _finite(((back - vector).norm() / vector.norm()).item())
        rows.append(row)
    return rows


def midpoint_rows() -> list[dict[str, Any]]:
    """Displacement of float32 midpoints of close neighbours, whose sums cancel most, against float64."""
    rows = []
    edge_index = torch.randint(100, (2, 400))
    adjacency = prepare_adjacency(edge_index, None, 100)
    for radius in (1, 2, 3, 4, 5, 6, 6.4, 7, 8, 9):
        direction = torch.nn.functional.normalize(torch.ones(DIM) + 1e-3 * torch.randn(100, DIM), dim=1)
        points = lorentz.exp_origin(radius * direction)
        middles = []
        for dtype in (torch.float32, torch.float64):
            exact_points = lorentz.project(points.to(dtype))
            matrix = adjacency.matrix("symmetric", dtype)
            middles.append(midpoint(exact_points, matrix).double())
        displacement = lorentz.distance(*middles).max().item()
        rows.append({"radius": radius, "sums in float32": displacement, "resolution": 6e-8 * math.sinh(radius)})
    return rows


def cost_rows(repeats: int) -> list[dict[str, Any]]:
    """Forward and backward over as many pairs as PubMed has edges, relative to the plain float32 form."""
    manifold = geoopt.Lorentz()
    rows = []
    for dim in (16, 64, 256):
        points = [lorentz.exp_origin(torch.randn(PAIRS, dim) / dim**0.5).requires_grad_() for _ in range(2)]

        def step(distance: Distance, points: list[Tensor] = points) -> Callable[[], None]:
            def run() -> None:
                for point in points:
                    point.grad = None
                distance(points[0], points[1]).sum().backward()

            return run

        reference, kernel = (partial(by, squared=True) for by in (lorentz.composed_distance, distance_of_pairs))
        ours = {"reference": step(reference), "kernel": step(kernel)}
        seconds = interleaved_medians({"plain": step(plain_distance), "geoopt": step(manifold.dist), **ours}, repeats)
        ratios = {name: value / seconds["plain"] for name, value in seconds.items()}
        rows.append({"dim": dim, "plain ms": 1e3 * seconds["plain"], **ratios})
    return rows


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--repeats", type=int, default=31, help="of the timing (default: %(default)s)")
    options = arguments.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    tables = {
        **distance_tables(),
        "Relative error of the maps at the origin": exponential_map_rows(),
        "Displacement of the Einstein midpoint of close neighbours": midpoint_rows(),
        "Time of distances, forward and backward, relative to the plain float32 form": cost_rows(options.repeats),
    }
    publish(tables, options)


if __name__ == "__main__":
    main()
