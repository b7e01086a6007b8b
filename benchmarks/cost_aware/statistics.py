"""Means and medians over problems and seeds with intervals that resample both; what is undefined (NaN) is left out."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
RESAMPLES = 2000


def interval(samples: Mapping[str, Array], digits: int = 3) -> dict[str, Any]:
    """The mean over problems of their means over seeds, the median over all runs, and 95 % intervals of both.

    Problems are drawn first and seeds within each problem drawn: a claim is about problems like these.
    """
    groups = [np.asarray(sample, dtype=float) for sample in samples.values()]
    groups = [group[np.isfinite(group)] for group in groups if np.isfinite(group).any()]
    if not groups:
        return {}
    rng = np.random.default_rng(0)
    means, medians = [], []
    for _ in range(RESAMPLES):
        drawn = [groups[i] for i in rng.integers(len(groups), size=len(groups))]
        again = [group[rng.integers(len(group), size=len(group))] for group in drawn]
        means.append(np.mean([group.mean() for group in again]))
        medians.append(np.median(np.concatenate(again)))
    point = {"mean": np.mean([group.mean() for group in groups]), "median": np.median(np.concatenate(groups))}
    spread = {"mean": means, "median": medians}
    return {
        name: {
            "value": round(float(point[name]), digits),
            "low": round(float(np.quantile(spread[name], 0.025)), digits),
            "high": round(float(np.quantile(spread[name], 0.975)), digits),
        }
        for name in point
    }
