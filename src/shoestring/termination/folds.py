"""How well a cross-validated value is known: the threshold below which regret is not worth reducing.

Source: equation 8 and algorithm 1 of "Automatic termination for hyperparameter optimization"; the correction is that of
Nadeau and Bengio (2003):

    Var f(x) ~ (1/k + |D_i| / |D_-i|) s^2,    s^2 = (1/k) sum_i (y - y_i)^2,    y the mean of the k folds' values

The folds share training data, so their spread alone says too little. With folds of different sizes n_i of N rows the ratio
is the mean of n_i / (N - n_i); without sizes they are taken as equal, which makes it 1 / (k - 1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..errors import MethodError


def check_sizes(rule: str, sizes: Sequence[int] | None) -> None:
    if sizes is None:
        return
    if len(sizes) < 2 or not all(isinstance(size, int | np.integer) and size >= 1 for size in sizes):
        raise MethodError(f"{rule}: fold_sizes must be the numbers of rows of two folds or more, not {sizes!r}")


def standard_error(folds: Sequence[float] | None, sizes: Sequence[int] | None = None) -> float | None:
    """The corrected standard error of the folds' mean; None with fewer than two finite folds.

    Folds that are not finite are left out, with their sizes.
    """
    if folds is None:
        return None
    values = np.asarray(folds, dtype=float)
    finite = np.isfinite(values)
    k = int(finite.sum())
    if k < 2:
        return None
    ratio = 1.0 / (len(values) - 1)
    if sizes is not None:
        if len(sizes) != len(values):
            raise MethodError(f"there are {len(sizes)} fold_sizes, but {len(values)} folds; give one size for each fold")
        rows = np.asarray(sizes, dtype=float)
        ratio = float(np.mean((rows / (rows.sum() - rows))[finite]))
    return math.sqrt((1.0 / k + ratio) * float(np.var(values[finite])))
