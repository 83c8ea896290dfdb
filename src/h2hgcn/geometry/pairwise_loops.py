"""The compiled loops of ``pairwise``: from products of rows to distances, and from slopes to gradients."""

from typing import Any

import numpy as np

from h2hgcn.compiled import compiled, inlined


@compiled
def lift(first: int, last: int, points: Any, lifted: Any) -> None:
    for i in range(first, last):
        row, new = points[i], lifted[i]
        square = lifted.dtype.type(1)
        for k in range(1, len(row)):
            new[k] = row[k]
            square += new[k] * new[k]
        new[0] = np.sqrt(square)


@compiled
def pull_back(first: int, last: int, points: Any, pull: Any, grad: Any) -> None:
    for i in range(first, last):
        point, pulled, new = points[i], pull[i], grad[i]
        ratio = pulled[0] / point[0]
        new[0] = 0
        for k in range(1, len(new)):
            new[k] = ratio * point[k] - pulled[k]


@compiled
def grow(product: Any, lifted: Any, mirrored: Any, growth: Any, slopes: Any, rounding: float, wanted: bool) -> None:
    """Only the chord is in float64: roots and quotients of the points' own precision are twice as many at a time."""
    other_time = np.empty(len(mirrored))
    for j in range(len(mirrored)):
        other_time[j] = mirrored[j, 0] * rounding
    for i in range(product.shape[0]):
        products, chords, slope, time = product[i], growth[i], slopes[i], lifted[i, 0]
        for j in range(len(products)):
            chord = 2 * (products[j] - 1)
            chords[j] = 0.0 if chord <= time * other_time[j] else chord  # NaN stays NaN
        _grow_row(chords, slope, wanted)


@compiled
def grow_known(
    products: Any, lifted: Any, mirrored: Any, slopes: Any, noise: float, rounding: float, singles: int, wanted: bool
) -> bool:
    """The same in place, the chords that ``noise`` might spoil being worked out anew; whether they were few enough."""
    kind = products.dtype.type
    zero, one, two = kind(0), kind(1), kind(2)
    bounds = mirrored[:, 0] * kind(noise)
    for i in range(products.shape[0]):
        chords, point = products[i], lifted[i]
        spoilt = zero  # a count in the precision of the loop, which keeps it wide
        for j in range(len(chords)):
            chords[j] = two * (chords[j] - one)
            spoilt += zero if chords[j] >= point[0] * bounds[j] else one  # NaN is
        singles -= int(spoilt)
        if singles < 0:
            return False
        if spoilt:
            for j in range(len(chords)):
                if not chords[j] >= point[0] * bounds[j]:
                    chords[j] = _chord(point, mirrored[j], rounding)
        _grow_row(chords, slopes[i], wanted)
    return True


@inlined
def _chord(point: Any, mirrored: Any, rounding: float) -> float:
    """The chord of one pair in float64, 0 where it is noise."""
    square, other_square, product = 1.0, 1.0, 0.0
    for k in range(1, len(point)):
        value, other = np.float64(point[k]), np.float64(mirrored[k])
        square += value * value
        other_square += other * other
        product += value * other
    times = np.sqrt(square * other_square)
    chord = 2 * (times + product - 1)
    return 0.0 if chord <= times * rounding else chord  # NaN stays NaN


@inlined
def _grow_row(chords: Any, slopes: Any, wanted: bool) -> None:
    """From chords to ``exp(distance) - 1``, and twice the slopes if these are wanted."""
    kind = chords.dtype.type
    zero, one, half, quarter = kind(0), kind(1), kind(0.5), kind(0.25)
    if wanted:
        for j in range(len(chords)):
            sinh = np.sqrt(chords[j] + quarter * chords[j] * chords[j])
            slopes[j] = zero if chords[j] == zero else one / sinh
    for j in range(len(chords)):
        chords[j] = np.sqrt(chords[j] + quarter * chords[j] * chords[j]) + half * chords[j]
