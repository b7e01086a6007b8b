"""The executor of ``ShoestringSearchCV``: scikit-learn fits and scores the candidates of a study.

The folds are drawn once, so that all candidates are scored on the same rows. With "n_samples" as the resource, a share of the
training rows is used.
"""

from __future__ import annotations

import copy
import inspect
import itertools
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import check_cv

from .._format import plural
from ..data.history import History
from ..data.trial import Trial
from ..errors import MethodError
from ..execution.evaluate import LiveTrial
from ..execution.executor import CompletedTrial
from ..termination.base import Verdict
from .distributions import Translation
from .sklearn_results import (
    MIN_COST_SECONDS,
    Fit,
    all_fits_failed,
    evaluated,
    evaluation_of,
    failed_evaluation,
    fits_of_trials,
    study_columns,
    was_fitted,
)

Rows = NDArray[np.intp]
Evaluate = Callable[..., dict[str, Any]]


class FixedSplits:
    """A splitter that calls another one once and then returns the same folds.

    ``draw`` sets the ``folds`` as row numbers (train, test), ``train_sizes`` and ``test_sizes``. ``subsampled`` gives a splitter
    with fewer training rows. With ``repeatable``, a ``cv`` that shuffles without a random_state gets the seed as one, so that
    another process draws the same folds.
    """

    def __init__(self, cv: Any, *, classifier: bool, seed: int, repeatable: bool = False) -> None:
        if repeatable and getattr(cv, "random_state", seed) is None:
            cv = copy.copy(cv)  # the given one is the user's
            cv.random_state = seed
        self.cv, self.classifier, self.seed = cv, classifier, seed
        self.folds: list[tuple[Rows, Rows]] = []
        self.train_sizes: tuple[int, ...] = ()
        self.test_sizes: tuple[int, ...] = ()
        self._orders: list[Rows] = []

    def draw(self, evaluate: Evaluate) -> None:
        """Draw the folds before anything is fitted. This is a call of ``evaluate``, which knows what a splitter is given."""
        with suppress(_Drawn):
            evaluate([], cv=_DrawOnly(self))
        if not self.folds:
            said = "No fits were performed. Was the CV iterator empty? Were there no candidates?"  # in scikit-learn's words
            raise MethodError(f"{said} Give a cv with a split or more")

    def split(self, X: Any, y: Any = None, **params: Any) -> Iterator[tuple[Any, Any]]:
        if not self.folds:
            splitter = check_cv(self.cv, y, classifier=self.classifier)
            rows = np.arange(X.shape[0] if hasattr(X, "shape") else len(X))  # an index may be a mask or a slice
            self.folds = [(rows[train], rows[test]) for train, test in splitter.split(X, y, **params)]
            self.train_sizes = tuple(train.size for train, _ in self.folds)
            self.test_sizes = tuple(test.size for _, test in self.folds)
            labels = np.asarray(y) if self.classifier and y is not None and np.ndim(y) == 1 else None
            rng = np.random.default_rng(self.seed)
            self._orders = [nested_order(train, labels, rng) for train, _ in self.folds]
        return iter(self.folds)

    def subsampled(self, share: float) -> Any:
        """The same folds with this share of their training rows; a larger subsample contains all smaller ones."""
        return self if share >= 1.0 else SubsampledSplits(self, share)

    def subsampled_folds(self, X: Any, y: Any, params: dict[str, Any], share: float) -> Iterator[tuple[Any, Any]]:
        """Each fold with the first rows of its order."""
        folds = self.split(X, y, **params)  # before the loop: the first split draws the orders
        for order, (_, test) in zip(self._orders, folds, strict=True):
            yield order[: max(1, round(share * len(order)))], test


class _Drawn(Exception):
    """The folds are drawn, and nothing is to be fitted."""


class _DrawOnly:
    """A splitter that has another one draw its folds, and then ends the call."""

    def __init__(self, splits: FixedSplits) -> None:
        self.splits = splits

    def split(self, X: Any, y: Any = None, **params: Any) -> Iterator[tuple[Any, Any]]:
        self.splits.split(X, y, **params)
        raise _Drawn


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
        self.results: dict[str, Any] | None = None
        self.failure: Exception | None = None  # the last one of a candidate whose fits all failed
        self.unfitted = 0  # how many candidates of this run that are
        self._waiting: list[Trial] = []

    @property
    def workers(self) -> int:
        """How many candidates are fitted at once: as many as ``n_jobs`` allows."""
        return max(1, int(effective_n_jobs(self.n_jobs)) // len(self.splits.folds))

    def now(self) -> float:
        return time.perf_counter()

    def start(self, trial: Trial, live: LiveTrial) -> None:
        self._waiting.append(trial)

    def wait(self, seconds: float | None = None) -> list[CompletedTrial]:
        """Fit all candidates that were started, those with the same share of the rows together; none if ``seconds`` is 0."""
        if seconds == 0.0:
            return []
        trials, self._waiting = self._waiting, []
        groups = [(share, list(group)) for share, group in itertools.groupby(trials, key=self.row_share)]
        return [done for share, group in groups for done in self.fit(group, share)]

    def cancel(self) -> None:
        self._waiting.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def row_share(self, trial: Trial) -> float:
        """The share of the training rows that a trial uses."""
        return float(trial.config["n_samples"]) / self.rows if self.resource == "n_samples" else 1.0

    def fit(self, trials: list[Trial], share: float) -> list[CompletedTrial]:
        """Fit the trials' candidates on this share of the training rows."""
        params = [self.translation.params(trial.config) for trial in trials]
        n, began = len(self.splits.folds), time.perf_counter()
        try:
            self.results = self.evaluate(params, cv=self.splits.subsampled(share))
        except ValueError as error:
            if isinstance(self.error_score, str) or not all_fits_failed(error):
                raise
            self.failure, self.unfitted = error, self.unfitted + len(trials)
            cost = self.shared_seconds(time.perf_counter() - began, len(trials))
            return [CompletedTrial(trial, failed_evaluation(error, self.error_score, n, cost)) for trial in trials]
        fits = self.results["fits"][-n * len(trials) :]
        return [CompletedTrial(trial, evaluation_of(fits[n * i : n * (i + 1)], self.refit)) for i, trial in enumerate(trials)]

    def shared_seconds(self, seconds: float, count: int) -> float:
        """The cost of each of some candidates whose fits all failed: their times are not known, so they share the total."""
        busy = min(int(effective_n_jobs(self.n_jobs)), count * len(self.splits.folds))
        return max(seconds * busy / count, MIN_COST_SECONDS)

    def require_results(self, history: History, verdict: Verdict) -> None:
        """Raise scikit-learn's error if no candidate could be fitted; warn if some could not."""
        trials = evaluated(history)
        if not any(map(was_fitted, trials)):
            if self.failure is not None:
                raise self.failure
            if not trials:
                raise MethodError(f"the search ended before its first candidate: {verdict.reason}")
            said = f"none of the {plural(len(trials), 'candidate')} in the storage could be fitted"
            raise MethodError(f"{said}; the last error was: {trials[-1].error}; fix it, and give another study_name=")
        if self.failure is not None:
            said = f"{plural(self.unfitted, 'candidate')} could not be fitted on any fold and got the score {self.error_score}"
            warnings.warn(f"{said}; the last error was\n{self.failure}", FitFailedWarning, stacklevel=2)

    def write_table(self, history: History, format_results: Callable[..., dict[str, Any]], *, train: bool) -> None:
        """Write the table of all candidates into the dict with which scikit-learn continues; ``train``: with train scores."""
        trials, n = evaluated(history), len(self.splits.folds)
        fits = fits_of_trials(trials, splits=n, train=train, refit=self.refit, error_score=self.error_score)
        params = [self.translation.params(trial.config) for trial in trials]
        table = format_results(params, n, fits, study_columns(history, trials, self.resource))
        if self.results is None:  # all candidates come from the storage
            self.results = hand_over(self.evaluate, fits)
        if self.results is None:
            cheapest = min(filter(was_fitted, trials), key=lambda trial: trial.charge)
            self.results = self.evaluate([self.translation.params(cheapest.config)], cv=self.splits)
        self.results.clear()
        self.results.update(table)


@contextmanager
def search_callbacks(context: Any, search: Any, evaluate: Evaluate, most: int | None) -> Iterator[Evaluate]:
    """``evaluate`` such that scikit-learn's callbacks hear of every fit, as parts of one task of the search.

    context  of the callbacks, None in versions of scikit-learn without them;   most  candidates; None: not known
    """
    if context is None:
        yield evaluate
        return
    fits = None if most is None else most * search.n_splits_
    task = context.subcontext(task_name="search", max_subtasks=fits, sequential_subtasks=False)
    task.call_on_fit_task_begin(estimator=search)
    yield partial(evaluate, callback_ctx=_NumberedTasks(task))
    task.call_on_fit_task_end(estimator=search)


class _NumberedTasks:
    """A context of callbacks that numbers its subtasks on: scikit-learn numbers those of every round from 0."""

    def __init__(self, task: Any) -> None:
        self.task, self.made = task, 0

    def subcontext(self, *, task_name: str, task_id: int) -> Any:
        self.made += 1
        return self.task.subcontext(task_name=task_name, task_id=self.made - 1)


def hand_over(evaluate: Evaluate, fits: list[Fit]) -> dict[str, Any] | None:
    """Hand stored fits to scikit-learn as if it had made them; returns the dict in which it expects the results.

    scikit-learn looks at its own list of fits after a search, and has no other way to fill it than to fit something. The list is
    a variable of the function that encloses ``evaluate``. None if there is no such variable: then something must be fitted.
    """
    try:
        enclosing = inspect.getclosurevars(evaluate.func if isinstance(evaluate, partial) else evaluate).nonlocals
    except TypeError:
        return None
    made, results = enclosing.get("all_out"), enclosing.get("results")
    if not isinstance(made, list) or not isinstance(results, dict):
        return None
    made.extend(fits)
    return results
