"""How the paper compares two methods: Wilcoxon's signed-rank test, Cliff's delta, and the rate of improvement (its C.4).

    Wilcoxon     of pairs with the same seed, two-sided, exact, at 5 %; pairs without a difference are left out
    delta        P(a > b) - P(a < b) over all pairs of runs; negative: a is lower. Below 0.147 in size it is negligible, up to
                 0.33 small, above obvious
    ROI          (t_BO - t) / t_BO, t the mean time of a method and t_BO that of the exact one

The test looks at values as they are, not at logarithms, as in the paper. Values below FLOOR count as equal: they are all zero
to anyone who wants an optimum.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Runs = dict[int, dict[str, Any]]  # by seed
LEVEL = 0.05
NEGLIGIBLE, SMALL = 0.147, 0.33
FLOOR = 1e-6


def tidy(number: float, digits: int = 4) -> float:
    return float(f"{number:.{digits}g}")


def signed_rank(ours: Array, theirs: Array) -> tuple[float, bool]:
    """The two-sided p, and whether ours are the lower ones.

    Exact also where differences tie, which errors on a few hundred rows often do: the distribution of the rank sum over all
    choices of signs, rank by rank. scipy approximates there, which makes five pairs significant that cannot be.
    """
    from scipy.stats import rankdata

    difference = np.maximum(ours, FLOOR) - np.maximum(theirs, FLOOR)
    difference = difference[difference != 0]
    doubled = np.rint(2 * rankdata(np.abs(difference))).astype(int)  # whole, since ties share halves
    chances = np.ones(1)
    for rank in doubled:
        chances = 0.5 * (np.pad(chances, (0, rank)) + np.pad(chances, (rank, 0)))
    positive = int(doubled[difference > 0].sum())
    low, high = float(chances[: positive + 1].sum()), float(chances[positive:].sum())
    return min(2 * min(low, high), 1.0), low < high


def cliffs_delta(ours: Array, theirs: Array) -> float:
    difference = np.maximum(ours, FLOOR)[:, None] - np.maximum(theirs, FLOOR)[None, :]
    return float(np.mean(np.sign(difference)))


def size(delta: float) -> str:
    """The paper's words."""
    return "negligible" if abs(delta) < NEGLIGIBLE else "small" if abs(delta) <= SMALL else "obvious"


def shared(first: Runs, second: Runs) -> list[int]:
    return sorted(set(first) & set(second))


def column(runs: Runs, field: str, seeds: list[int] | None = None) -> Array:
    return np.array([runs[seed][field] for seed in (sorted(runs) if seeds is None else seeds)], dtype=float)


def compare(ours: Runs, theirs: Runs) -> dict[str, Any]:
    """The final values of two methods on one problem; the verdict is on ours."""
    seeds = shared(ours, theirs)
    if not seeds:
        return {}
    a, b = column(ours, "best", seeds), column(theirs, "best", seeds)
    p, lower = signed_rank(a, b)
    delta = cliffs_delta(a, b)
    verdict = "same" if p >= LEVEL else "better" if lower else "worse"
    no_higher = float(np.median(a)) <= max(float(np.median(b)), FLOOR)
    return {
        "verdict": verdict, "p": tidy(p), "delta": tidy(delta), "size": size(delta), "median_no_higher": no_higher,
        "runs": len(seeds),
    }  # fmt: skip


def saved(ours: Runs, exact: Runs, field: str) -> float | None:
    """The rate of improvement of a time, from runs of the same seeds."""
    seeds = shared(ours, exact)
    if not seeds:
        return None
    whole = float(column(exact, field, seeds).mean())
    return tidy((whole - float(column(ours, field, seeds).mean())) / whole)
