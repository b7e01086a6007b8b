"""When a rule would have stopped a run: the number of evaluations, or None if it never would."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def first_below(steps: Sequence[int], series: Array, threshold: float | Array, *, strictly: bool = False) -> int | None:
    """The first step at which the series is at most the threshold (below it, if ``strictly``), which may vary by step."""
    low = np.asarray(series) < threshold if strictly else np.asarray(series) <= threshold
    return int(steps[int(np.argmax(low))]) if low.any() else None


def waits(values: Sequence[float]) -> NDArray[np.intp]:
    """After each evaluation, for how many the best value has not changed; the first counts as a change."""
    best = np.minimum.accumulate(np.asarray(values, dtype=float))
    numbers = np.arange(len(best))
    changed = np.concatenate([[True], best[1:] < best[:-1]])
    return numbers - np.maximum.accumulate(np.where(changed, numbers, 0))


def patience(values: Sequence[float], trials: int, after: int) -> int | None:
    """Conv_i: when the best value has not changed for ``trials`` evaluations, asked from ``after`` evaluations on."""
    over = (waits(values) >= trials) & (np.arange(1, len(values) + 1) >= after)
    return int(np.argmax(over)) + 1 if over.any() else None
