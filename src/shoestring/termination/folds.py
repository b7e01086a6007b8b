"""How well a cross-validated value is known: the threshold below which regret is not worth reducing.

Source: equation 8 and algorithm 1 of "Automatic termination for hyperparameter optimization"; the correction is that of
Nadeau and Bengio (2003):

    Var f(x) ~ (1/k + |D_i| / |D_-i|) s^2,    s^2 = (1/k) sum_i (y - y_i)^2,    y the mean of the k folds' values

The folds share training data, so their spread alone says too little. With folds of different sizes n_i of N rows the ratio
is the mean of n_i / (N - n_i), or of n_i over the training rows where the folds are not the parts of one whole (shuffled or
repeated splits); without sizes they are taken as equal parts, which makes it 1 / (k - 1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..errors import MethodError


def check_sizes(rule: str, sizes: Sequence[int] | None, train_sizes: Sequence[int] | None = None) -> None:
    for what, given in (("fold_sizes", sizes), ("train_sizes", train_sizes)):
        if given is None:
            continue
        if len(given) < 2 or not all(isinstance(size, int | np.integer) and size >= 1 for size in given):
            raise MethodError(f"{rule}: {what} must be the numbers of rows of two folds or more, not {given!r}")
    if train_sizes is not None and (sizes is None or len(sizes) != len(train_sizes)):
        raise MethodError(f"{rule}: train_sizes needs fold_sizes of the same length")


def standard_error(
    folds: Sequence[float] | None, sizes: Sequence[int] | None = None, train_sizes: Sequence[int] | None = None
) -> float | None:
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
        trained = rows.sum() - rows if train_sizes is None else np.asarray(train_sizes, dtype=float)
        ratio = float(np.mean((rows / trained)[finite]))
    return math.sqrt((1.0 / k + ratio) * float(np.var(values[finite])))
