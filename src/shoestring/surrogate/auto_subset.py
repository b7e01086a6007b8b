"""``subset="auto"``: every trial while that is cheap, then the best trial of each of many clusters.

Exact fits grow with the cube of the trials: at 300 a suggestion takes some 50 ms, at 1,000 half a second. From CHEAP trials on
the model learns from the best trials of at least LEAST clusters (k-means), and from all since the last refresh. The paper's
k = N / 20 alone would be 15 of 300 trials: faster than anybody notices, and a poorer model than need be.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..encoding import Encoding
from ..errors import MethodError
from ..numerics import Array
from .gp import GP
from .sparse import FITC, VFE, Model
from .subset import KMeansSubset, Rows, Subset, last_refresh

CHEAP = 300  # trials up to which all are used
LEAST, MOST = 150, 250  # clusters


@dataclass(frozen=True)
class AutoSubset(KMeansSubset):
    """All trials up to CHEAP, then the best of each of N / 20 clusters, LEAST at least and MOST at most."""

    def rows(self, Z: Array, y: Array, at_target: NDArray[np.bool_], encoding: Encoding, seed: int) -> Rows:
        if not self.in_use(len(y), len(encoding.space)):
            return np.arange(len(y))
        return super().rows(Z, y, at_target, encoding, seed)

    def in_use(self, trials: int, parameters: int) -> bool:
        return trials > CHEAP and super().in_use(trials, parameters)

    def count(self, refresh: int) -> int:
        return min(max(super().count(refresh), LEAST), MOST, refresh)


def with_subset(model: Model, subset: object) -> Model:
    """The model, learning from the part of the trials that is wanted: "auto", None for all, or a Subset."""
    if subset is not None and subset != "auto" and not isinstance(subset, Subset):
        wanted = '"auto", None, st.RandomSubset(), st.KMeansSubset() or st.SeedSubset()'
        raise MethodError(f"subset must be {wanted}, not {subset!r}")
    if isinstance(model, VFE | FITC):
        if isinstance(subset, Subset):
            raise MethodError(f"{type(model).__name__} stands for all trials already; leave subset= out, or use st.GP()")
        return model
    if model.subset is not None:  # the model's own
        return model
    return replace(model, subset=subset if isinstance(subset, Subset) else AutoSubset() if subset == "auto" else None)


def learnt_from(model: Model, trials: int, parameters: int) -> int | None:
    """About how many trials the model learns from; None while these are all."""
    subset = model.subset if isinstance(model, GP) else None
    refresh = last_refresh(trials, parameters)
    if subset is None or refresh is None or not subset.in_use(trials, parameters):
        return None
    return min(subset.count(refresh) + trials - refresh, trials)
