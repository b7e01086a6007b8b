"""``subset="auto"``: every trial while that is cheap, then hyperparameters from a part, and values from many more.

Exact fits grow with the cube of the trials: at 300 a suggestion takes some 50 ms, at 1,000 half a second. Most of that goes into
the hyperparameters, a dozen numbers that TEACHERS trials settle as well as a thousand do; the values are what the search goes by,
and each that is left out is missed. So beyond CHEAP trials hyperparameters are learnt from a sample of the trials, and the
posterior holds all of them, up to MOST: then the best trial of each of so many clusters (k-means) and all since the last refresh.

Chosen on functions that are not reported (Styblinski-Tang, Rosenbrock, Salomon; d = 6, 600 trials, one seed each): regrets of
5e-5, 0.004 and 0.30, against 4e-4, 0.17 and 0.50 of the exact fit and 5e-4, 0.81 and 0.40 of clusters alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..errors import MethodError
from ..numerics import Array
from ..space.encoding import Encoding
from .gp import GP, sample_by_rank
from .sparse import FITC, VFE, Model
from .subset import KMeansSubset, Rows, Subset, last_refresh

MAX_EXACT_TRIALS = 300  # trials up to which everything is learnt from all of them
HYPERPARAMETER_TRIALS = 150  # trials that hyperparameters are learnt from beyond that: half of them the best, the others evenly by rank
MAX_POSTERIOR_TRIALS = 500  # trials in the posterior, beside those since the last refresh


@dataclass(frozen=True)
class AutoSubset(KMeansSubset):
    """All trials up to MOST, then the best of each of so many clusters; hyperparameters from TEACHERS of them beyond CHEAP."""

    def rows(self, Z: Array, y: Array, at_target: NDArray[np.bool_], encoding: Encoding, seed: int) -> Rows:
        return np.arange(len(y)) if len(y) <= MAX_POSTERIOR_TRIALS else super().rows(Z, y, at_target, encoding, seed)

    def hyperparameter_rows(self, y: Array) -> Rows:
        if len(y) <= MAX_EXACT_TRIALS:
            return np.arange(len(y))
        order, half = np.argsort(y, kind="stable"), HYPERPARAMETER_TRIALS // 2
        others = order[half:]
        return np.sort(np.concatenate([order[:half], others[sample_by_rank(y[others], HYPERPARAMETER_TRIALS - half)]]))

    def in_use(self, trials: int, parameters: int) -> bool:
        return trials > MAX_POSTERIOR_TRIALS and super().in_use(trials, parameters)

    def count(self, refresh: int) -> int:
        return min(MAX_POSTERIOR_TRIALS, refresh)


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


def training_size(model: Model, trials: int, parameters: int) -> int | None:
    """About how many trials the model learns from; None while these are all."""
    subset = model.subset if isinstance(model, GP) else None
    refresh = last_refresh(trials, parameters)
    if subset is None or refresh is None or not subset.in_use(trials, parameters):
        return None
    return min(subset.count(refresh) + trials - refresh, trials)
