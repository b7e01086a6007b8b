"""Means over problems of means over runs, drawn anew: for figures that are no means themselves, such as ratios.

The resampling is that of ``benchmarks.ranks.bootstrap``: problems first, and the runs within each problem drawn.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
RESAMPLES = 1000


def draws(samples: Sequence[Array], resamples: int = RESAMPLES) -> Array:
    """Every entry of ``samples`` is one problem's (runs, columns); the result is (resamples, columns)."""
    rng = np.random.default_rng(0)
    count = len(samples)
    chosen = rng.integers(count, size=(resamples, count))
    totals = np.zeros((resamples, samples[0].shape[1]))
    for index, sample in enumerate(samples):
        at, _ = np.nonzero(chosen == index)
        runs = rng.integers(len(sample), size=(len(at), len(sample)))
        np.add.at(totals, at, sample[runs].mean(axis=1))
    return totals / count


def figure(samples: Sequence[Array], of: Callable[[Array], float], digits: int = 4) -> dict[str, Any]:
    """A function of the column means with its 95 % interval; draws in which it is undefined (NaN) are left out."""
    point = of(np.mean([sample.mean(axis=0) for sample in samples], axis=0))
    found = np.array([of(drawn) for drawn in draws(samples)])
    found = found[np.isfinite(found)]
    if not np.isfinite(point) or not len(found):
        return {}
    low, high = np.quantile(found, [0.025, 0.975])
    return {"value": round(float(point), digits), "low": round(float(low), digits), "high": round(float(high), digits)}
