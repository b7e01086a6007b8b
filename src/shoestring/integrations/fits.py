"""What scikit-learn says of the fits of a candidate, and what a study is told of it.

A fit is the dict that scikit-learn makes for one candidate on one split: ``test_scores`` (a number, or one for each metric),
``fit_time``, ``score_time``, ``fit_error`` (a traceback, or None), perhaps ``train_scores``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..evaluate import Evaluation
from ..numerics import Array
from ..outcome import Outcome
from ..trial import Trial

Fit = dict[str, Any]
LEAST = 1e-6  # seconds: a cost is positive, and a coarse clock may say 0
_NONE_FITTED = re.compile(r"\s*All the \d+ fits failed")


@dataclass(frozen=True)
class Candidate:
    """A trial with the estimator's parameters, its fits in order of the splits, and the seconds that they took.

    ``fits`` is None where none of them succeeded: scikit-learn keeps no record of such a candidate, only ``error``.
    """

    trial: Trial
    params: dict[str, Any]
    fits: list[Fit] | None
    seconds: float
    error: str | None = None

    def evaluation(self, refit: Any, error_score: Any, splits: int) -> Evaluation:
        """What the study is told. A mean that is not finite, as with one fold that failed, is a failed trial."""
        scores = np.full(splits, error_score, dtype=float) if self.fits is None else scores_of(self.fits, refit)
        folds = scores.tolist() if splits > 1 else None
        error = None if np.isfinite(scores.mean()) else self.error or first_error(self.fits or ())
        return Evaluation(Outcome(float(scores.mean()), folds=folds), self.seconds, error)


def none_fitted(error: Exception) -> bool:
    """Whether this is scikit-learn's complaint that no fit of a candidate succeeded."""
    return bool(_NONE_FITTED.match(str(error)))


def measured_seconds(fits: Sequence[Fit]) -> float:
    return max(float(sum(fit["fit_time"] + fit["score_time"] for fit in fits)), LEAST)


def metric_of(fit: Fit, refit: Any) -> str | None:
    """The metric that is optimized, where there are several: the one that ``refit`` names, else the first."""
    if not isinstance(fit["test_scores"], dict):
        return None
    return refit if isinstance(refit, str) else next(iter(fit["test_scores"]))


def scores_of(fits: Sequence[Fit], refit: Any) -> Array:
    """The scores that are maximized, one for each split."""
    metric = metric_of(fits[0], refit)
    return np.array([fit["test_scores"] if metric is None else fit["test_scores"][metric] for fit in fits], dtype=float)


def first_error(fits: Sequence[Fit]) -> str | None:
    """The first error of the fits in one line."""
    return next((last_line(fit["fit_error"]) for fit in fits if fit["fit_error"] is not None), None)


def last_line(text: str) -> str:
    """Of a traceback: the error itself."""
    return next((line for line in reversed(text.splitlines()) if line.strip()), "")


def failed_fits(candidate: Candidate, like: Fit, error_score: Any, splits: int) -> list[Fit]:
    """The fits that scikit-learn would have recorded had they not all failed; ``like`` is one that succeeded."""
    fit = {**like, "fit_error": candidate.error, "fit_time": candidate.seconds / splits, "score_time": 0.0}
    for kind in ("test_scores", "train_scores"):
        if kind in like:
            fit[kind] = dict.fromkeys(like[kind], error_score) if isinstance(like[kind], dict) else error_score
    return [dict(fit) for _ in range(splits)]
