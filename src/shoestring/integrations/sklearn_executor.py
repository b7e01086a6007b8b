"""The executor of ``ShoestringSearchCV``: scikit-learn fits and scores the candidates of a study.

A fit is the dict that scikit-learn makes for one candidate on one split: ``test_scores`` (a number, or one for each metric),
``fit_time``, ``score_time``, ``fit_error`` (a traceback, or None), and ``train_scores`` if they are wanted. The folds are drawn
once, so that all candidates are scored on the same rows. With "n_samples" as the resource, a share of the training rows is used.
"""

from __future__ import annotations

import itertools
import math
import re
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import check_cv

from .._format import plural
from ..data.history import History
from ..data.outcome import Outcome
from ..data.trial import State, Trial
from ..errors import MethodError
from ..execution.evaluate import Evaluation, LiveTrial
from ..execution.executor import CompletedTrial
from ..numerics import Array
from ..termination.base import Verdict
from .distributions import Translation

Rows = NDArray[np.intp]
Fit = dict[str, Any]
Evaluate = Callable[..., dict[str, Any]]

MIN_COST_SECONDS = 1e-6  # a cost must be positive, and a coarse clock may measure 0
_ALL_FITS_FAILED = re.compile(r"\s*All the \d+ fits failed")


class FixedSplits:
    """A splitter that calls another one once and then returns the same folds.

    ``train_sizes`` and ``test_sizes`` are set by the first split. ``subsampled`` gives a splitter with fewer training rows.
    """

    def __init__(self, cv: Any, *, classifier: bool, seed: int) -> None:
        self.cv, self.classifier, self.seed = cv, classifier, seed
        self.folds: list[tuple[Any, Any]] = []
        self.train_sizes: tuple[int, ...] = ()
        self.test_sizes: tuple[int, ...] = ()
        self._orders: list[Rows] = []

    def split(self, X: Any, y: Any = None, **params: Any) -> Iterator[tuple[Any, Any]]:
        if not self.folds:
            splitter = check_cv(self.cv, y, classifier=self.classifier)
            self.folds = list(splitter.split(X, y, **params))
            count = X.shape[0] if hasattr(X, "shape") else len(X)
            rows = np.arange(count)  # an index may be a mask or a slice
            self.train_sizes = tuple(rows[train].size for train, _ in self.folds)
            self.test_sizes = tuple(rows[test].size for _, test in self.folds)
            labels = np.asarray(y) if self.classifier and y is not None and np.ndim(y) == 1 else None
            rng = np.random.default_rng(self.seed)
            self._orders = [nested_order(rows[train], labels, rng) for train, _ in self.folds]
        return iter(self.folds)

    def subsampled(self, share: float) -> Any:
        """The same folds with this share of their training rows; a larger subsample contains all smaller ones."""
        return self if share >= 1.0 else SubsampledSplits(self, share)

    def subsampled_folds(self, X: Any, y: Any, params: dict[str, Any], share: float) -> Iterator[tuple[Any, Any]]:
        """Each fold with the first rows of its order."""
        folds = self.split(X, y, **params)  # before the loop: the first split draws the orders
        for order, (_, test) in zip(self._orders, folds, strict=True):
            yield order[: max(1, round(share * len(order)))], test


class SubsampledSplits:
    """``FixedSplits`` with a share of the training rows."""

    def __init__(self, whole: FixedSplits, share: float) -> None:
        self.whole, self.share = whole, share

    def split(self, X: Any, y: Any = None, **params: Any) -> Iterator[tuple[Any, Any]]:
        return self.whole.subsampled_folds(X, y, params, self.share)


def nested_order(rows: Rows, labels: NDArray[Any] | None, rng: np.random.Generator) -> Rows:
    """Rows in an order in which the first n are a random sample for every n; stratified by class if there are labels."""
    rows = rng.permutation(rows)
    if labels is None:
        return rows
    _, code = np.unique(labels[rows], return_inverse=True)
    place = np.empty(len(rows))
    for members in (np.flatnonzero(code == k) for k in range(int(code.max()) + 1)):
        place[members] = np.arange(len(members)) / len(members)
    return rows[np.argsort(place, kind="stable")]


def with_fold_sizes(rule: Any, test_sizes: tuple[int, ...], train_sizes: tuple[int, ...]) -> Any:
    """The stopping rule with the sizes of the folds, if it has ``fold_sizes`` that are not set; also inside joined rules."""
    if len(test_sizes) < 2 or not is_dataclass(rule) or isinstance(rule, type):
        return rule
    held = {field.name: getattr(rule, field.name) for field in fields(rule)}
    if "fold_sizes" in held and held["fold_sizes"] is None:
        return replace(rule, fold_sizes=test_sizes, train_sizes=train_sizes)
    if "rules" in held:
        return replace(rule, rules=tuple(with_fold_sizes(inner, test_sizes, train_sizes) for inner in held["rules"]))
    return rule


@dataclass(frozen=True)
class Candidate:
    """A trial with the estimator's parameters, its fits in the order of the splits, and their time in seconds.

    ``fits`` is None if all fits failed: scikit-learn keeps no record of such a candidate, only ``error``.
    """

    trial: Trial
    params: dict[str, Any]
    fits: list[Fit] | None
    seconds: float
    error: str | None = None

    def evaluation(self, refit: Any, error_score: Any, splits: int) -> Evaluation:
        """The result for the study. If the mean is not finite, for example because one fold failed, the trial has failed."""
        scores = np.full(splits, error_score, dtype=float) if self.fits is None else scores_of(self.fits, refit)
        folds = scores.tolist() if splits > 1 else None
        error = None if np.isfinite(scores.mean()) else self.error or first_error(self.fits or ())
        return Evaluation(Outcome(float(scores.mean()), folds=folds), self.seconds, error)


def all_fits_failed(error: Exception) -> bool:
    """Whether this is scikit-learn's error that all fits of a candidate failed."""
    return bool(_ALL_FITS_FAILED.match(str(error)))


def measured_seconds(fits: Sequence[Fit]) -> float:
    """The time of fitting and scoring, summed over the splits."""
    return max(float(sum(fit["fit_time"] + fit["score_time"] for fit in fits)), MIN_COST_SECONDS)


def metric_of(fit: Fit, refit: Any) -> str | None:
    """With several metrics, the one that is optimized: the one that ``refit`` names, else the first. With one metric, None."""
    if not isinstance(fit["test_scores"], dict):
        return None
    return refit if isinstance(refit, str) else next(iter(fit["test_scores"]))


def scores_of(fits: Sequence[Fit], refit: Any) -> Array:
    """The scores of the optimized metric, one for each split."""
    metric = metric_of(fits[0], refit)
    return np.array([fit["test_scores"] if metric is None else fit["test_scores"][metric] for fit in fits], dtype=float)


def first_error(fits: Sequence[Fit]) -> str | None:
    """The first error of the fits, in one line."""
    return next((last_line(fit["fit_error"]) for fit in fits if fit["fit_error"] is not None), None)


def last_line(text: str) -> str:
    """The last line of a traceback that is not empty: the error itself."""
    return next((line for line in reversed(text.splitlines()) if line.strip()), "")


def failed_fits(candidate: Candidate, like: Fit, error_score: Any, splits: int) -> list[Fit]:
    """Fits for a candidate whose fits all failed, in scikit-learn's format; ``like`` is a fit that succeeded."""
    fit = {**like, "fit_error": candidate.error, "fit_time": candidate.seconds / splits, "score_time": 0.0}
    for kind in ("test_scores", "train_scores"):
        if kind in like:
            fit[kind] = dict.fromkeys(like[kind], error_score) if isinstance(like[kind], dict) else error_score
    return [dict(fit) for _ in range(splits)]


class CandidateExecutor:
    """A ``TrialExecutor`` in which scikit-learn's ``evaluate_candidates`` fits the candidates of a study.

    evaluate    ``evaluate_candidates``: fits candidates, and returns a dict with all ``fits`` so far
    resource    the fidelity in the column ``n_resources`` of the table
    rows        the number of rows; the resource "n_samples" is divided by it
    """

    def __init__(
        self,
        translation: Translation,
        splits: FixedSplits,
        evaluate: Evaluate,
        *,
        n_jobs: int | None,
        refit: Any,
        error_score: Any,
        resource: str | None = None,
        rows: int = 1,
    ) -> None:
        self.translation, self.splits, self.evaluate = translation, splits, evaluate
        self.n_jobs, self.refit, self.error_score, self.resource, self.rows = n_jobs, refit, error_score, resource, rows
        self.candidates: list[Candidate] = []
        self.results: dict[str, Any] | None = None
        self.failure: Exception | None = None
        self._waiting: list[Trial] = []

    @property
    def workers(self) -> int:
        """How many candidates are fitted at once: 1 until the number of folds is known, then as many as ``n_jobs`` allows."""
        return max(1, effective_n_jobs(self.n_jobs) // len(self.splits.folds)) if self.splits.folds else 1

    def now(self) -> float:
        return time.perf_counter()

    def start(self, trial: Trial, live: LiveTrial) -> None:
        self._waiting.append(trial)

    def wait(self, seconds: float | None = None) -> list[CompletedTrial]:
        """Fit all candidates that were started, those with the same share of the rows together; none if ``seconds`` is 0."""
        if seconds == 0.0:
            return []
        trials, self._waiting = self._waiting, []
        done: list[CompletedTrial] = []
        for share, group in itertools.groupby(trials, key=self.row_share):
            for candidate in self.fit(list(group), share):
                evaluation = candidate.evaluation(self.refit, self.error_score, len(self.splits.folds))
                done.append(CompletedTrial(candidate.trial, evaluation))
                self.candidates.append(candidate)
        return done

    def cancel(self) -> None:
        self._waiting.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def row_share(self, trial: Trial) -> float:
        """The share of the training rows that a trial uses."""
        return float(trial.config["n_samples"]) / self.rows if self.resource == "n_samples" else 1.0

    def fit(self, trials: list[Trial], share: float) -> list[Candidate]:
        """Fit the trials' candidates on this share of the training rows."""
        params = [self.translation.params(trial.config) for trial in trials]
        began = time.perf_counter()
        try:
            self.results = self.evaluate(params, cv=self.splits.subsampled(share))
        except ValueError as error:
            if isinstance(self.error_score, str) or not all_fits_failed(error):
                raise
            self.failure = error
            return self.failed_candidates(trials, params, error, time.perf_counter() - began)
        n = len(self.splits.folds)
        fits = self.results["fits"][-n * len(trials) :]
        rows = [fits[i : i + n] for i in range(0, len(fits), n)]
        return [Candidate(*each, measured_seconds(each[2])) for each in zip(trials, params, rows, strict=True)]

    def failed_candidates(
        self, trials: list[Trial], params: list[dict[str, Any]], error: Exception, seconds: float
    ) -> list[Candidate]:
        """Candidates whose fits all failed. Their times are not known, so each gets an equal share of the total."""
        busy = min(effective_n_jobs(self.n_jobs), len(trials) * len(self.splits.folds))
        cost = max(seconds * busy / len(trials), MIN_COST_SECONDS)
        return [Candidate(trial, given, None, cost, last_line(str(error))) for trial, given in zip(trials, params, strict=True)]

    def require_results(self, verdict: Verdict) -> None:
        """Raise scikit-learn's error if no candidate could be fitted; warn if some could not."""
        if self.results is None:
            raise self.failure or MethodError(f"the search ended before its first candidate: {verdict.reason}")
        if self.failure is not None:
            count = plural(sum(candidate.fits is None for candidate in self.candidates), "candidate")
            said = f"{count} could not be fitted on any fold and got the score {self.error_score}; the last error was"
            warnings.warn(f"{said}\n{self.failure}", FitFailedWarning, stacklevel=2)

    def write_table(self, history: History, format_results: Callable[..., dict[str, Any]]) -> None:
        """Write the table of all candidates into the dict that scikit-learn returned, with which it continues."""
        assert self.results is not None
        n = len(self.splits.folds)
        like = next(candidate.fits[0] for candidate in self.candidates if candidate.fits)
        fits = [fit for each in self.candidates for fit in each.fits or failed_fits(each, like, self.error_score, n)]
        costs = [trial.cost or math.nan for trial in history]
        columns = {
            "cost": costs,
            "spent": np.cumsum(costs),
            "expected_cost": [trial.suggestion.get("cost", math.nan) for trial in history],
            "failed": [trial.state is State.FAILED for trial in history],
        }
        if self.resource is not None:
            columns["n_resources"] = [trial.config[self.resource] for trial in history]
        table = format_results([candidate.params for candidate in self.candidates], n, fits, columns)
        self.results.clear()
        self.results.update(table)
