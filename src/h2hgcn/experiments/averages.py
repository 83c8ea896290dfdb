"""Means of what several runs report under the same names."""

from collections.abc import Iterable, Mapping
from statistics import fmean


def mean_by_name(scores: Iterable[Mapping[str, float | None]]) -> dict[str, float]:
    """The mean of each name over those that have it, in the order in which names appear."""
    found: dict[str, list[float]] = {}
    for each in scores:
        for name, score in each.items():
            if score is not None:
                found.setdefault(name, []).append(score)
    return {name: fmean(values) for name, values in found.items()}
