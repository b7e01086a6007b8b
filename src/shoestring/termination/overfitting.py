"""Does the search overfit its validation folds? A check from the folds themselves.

Section 4.5 of "Automatic termination for hyperparameter optimization": near the optimum, a lower validation error often is no
lower test error. The best of many trials is partly the luckiest, and its validation error is too good. Without a test set, the
folds can say by how much, since a fold that had no part in the choice is new data to the choice:

    F (n x k)    the value of trial i on fold j, lower is better;  mean_i = sum_j F_ij / k
    apparent     min_i mean_i                                                                                                (1)
    honest       sum_j F_{c(j), j} / k,    c(j) = argmin_i of the mean over the folds other than j                           (2)

Both are computed for the first half of the trials and for all of them. Where the second half has improved (1) but not (2), and
by no more than luck, what it found are lucky configs. Luck is what the best of m configs that are no better would gain,

    luck = z_m s / sqrt(k),    z_m = Phi^-1((m - 3/8) / (m + 1/4))                                                             (3)

s the deviation over the folds of the difference between the best config of the first half and of all, and z_m about the expected
highest of m standard normal numbers (Blom 1958).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._format import plural, rounded
from ..data.history import History
from ..numerics import Array, special

MIN_TRIALS = 20  # with folds; of fewer, half are too few to choose from
MIN_FOLDS = 3  # with two, a choice by the others is a choice by one


@dataclass(frozen=True)
class FoldCheck:
    """What the second half of the trials has improved: by the mean of the folds, and on folds that had no part in the choice."""

    trials: int
    apparent: float
    honest: float
    luck: float

    @property
    def overfits(self) -> bool:
        return self.honest <= 0.0 < self.apparent <= self.luck

    @property
    def text(self) -> str:
        """The warning; empty where there is nothing to warn of."""
        if not self.overfits:
            return ""
        lost = "nothing" if self.honest == 0.0 else f"nothing ({rounded(-self.honest)} worse)"
        return (
            f"the last {plural(self.trials, 'trial')} improved the mean of the folds by {rounded(self.apparent)}, but on folds "
            f"that had no part in the choice they gained {lost}: the best configs may fit these folds only. "
            "Compare them on data that no fold has seen"
        )


def check_folds(history: History) -> FoldCheck | None:
    """Equations (1) and (2) for a history; None where too few trials have comparable folds."""
    sign = -1.0 if history.maximize else 1.0
    folds = [trial.folds for trial in history if trial.folds is not None and trial.value is not None and history.at_target(trial)]
    k = len(folds[0]) if folds else 0
    rows = [row for row in folds if len(row) == k and np.isfinite(row).all()]
    if k < MIN_FOLDS or len(rows) < MIN_TRIALS:
        return None
    return compare_halves(sign * np.array(rows, dtype=float))


def compare_halves(F: Array) -> FoldCheck:
    """Equations (1) to (3) for the values of trials on folds, in the order of the trials."""
    k = F.shape[1]
    half, means = len(F) // 2, F.mean(axis=1)
    earlier, best = int(np.argmin(means[:half])), int(np.argmin(means))
    m = len(F) - half
    z = float(special.ndtri((m - 0.375) / (m + 0.25)))
    luck = z * float(np.std(F[earlier] - F[best], ddof=1)) / math.sqrt(k)  # (3)
    return FoldCheck(m, float(means[earlier] - means[best]), honest_value(F[:half]) - honest_value(F), luck)


def honest_value(F: Array) -> float:
    """Equation (2)."""
    others = F.sum(axis=1, keepdims=True) - F  # k - 1 times the mean over the other folds
    chosen = np.argmin(others, axis=0)
    return float(F[chosen, np.arange(F.shape[1])].mean())
