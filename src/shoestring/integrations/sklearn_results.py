"""The results of ``ShoestringSearchCV``: scikit-learn's fits as the result of a trial, and trials as the table ``cv_results_``.

A fit is the dict that scikit-learn makes for one candidate on one split: ``test_scores`` (a number, or one for each metric),
``fit_time``, ``score_time``, ``fit_error`` (a traceback, or None), and ``train_scores`` if they are wanted.

The fits of a candidate are kept with its trial, as the attribute FITS. So the table is written from the trials alone, also from
those that an earlier process has fitted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..data.history import History
from ..data.outcome import Outcome
from ..data.trial import State, Trial
from ..execution.evaluate import Evaluation
from ..numerics import Array

Fit = dict[str, Any]

FITS = "fits"  # the attribute of a trial that holds its fits
MIN_COST_SECONDS = 1e-6  # a cost must be positive, and a coarse clock may measure 0
_ALL_FITS_FAILED = re.compile(r"\s*All the \d+ fits failed")


# -- fits as the result of a trial -------------------------------------------------------------------------------------


def evaluation_of(fits: Sequence[Fit], refit: Any) -> Evaluation:
    """The result for the study. If the mean is not finite, for example because one fold failed, the trial has failed."""
    metric = metric_of(fits[0], refit)
    scores = np.array([score_of(fit, metric) for fit in fits], dtype=float)
    value = float(scores.mean())
    names = [] if metric is None else list(fits[0]["test_scores"])
    means = {name: float(np.mean([score_of(fit, name) for fit in fits])) for name in names}
    outcome = Outcome(value, folds=folds_of(scores), metrics=means or None, attrs={FITS: fits_to_json(fits)})
    errors = [] if math.isfinite(value) else [fit["fit_error"] for fit in fits if fit["fit_error"] is not None]
    said, story = (last_line(errors[0]), errors[0]) if errors else (None, None)
    return Evaluation(outcome, measured_seconds(fits), said, traceback=story)


def failed_evaluation(error: Exception, error_score: Any, splits: int, seconds: float) -> Evaluation:
    """The result of a candidate whose fits all failed: scikit-learn keeps no fits of it, only the error."""
    scores = np.full(splits, error_score, dtype=float)
    said = last_line(str(error))
    outcome = Outcome(float(scores.mean()), folds=folds_of(scores), attrs={FITS: {"error": said}})
    return Evaluation(outcome, seconds, None if np.isfinite(scores).all() else said, traceback=str(error))


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


def score_of(fit: Fit, metric: str | None) -> float:
    """The test score by a metric; None stands for the only one."""
    return float(fit["test_scores"] if metric is None else fit["test_scores"][metric])


def folds_of(scores: Array) -> list[float] | None:
    """The scores as the folds of an outcome; None if there is one split only."""
    return list(map(float, scores)) if len(scores) > 1 else None


def last_line(text: str) -> str:
    """The last line of a traceback that is not empty: the error itself."""
    return next((line for line in reversed(text.splitlines()) if line.strip()), "")


# -- fits as JSON ------------------------------------------------------------------------------------------------------


def fits_to_json(fits: Sequence[Fit]) -> dict[str, Any]:
    """The fits as columns over the splits."""
    columns: dict[str, Any] = {name: numbers_to_json(fit[name] for fit in fits) for name in ("fit_time", "score_time")}
    for name in ("test_scores", "train_scores"):
        if name not in fits[0]:
            continue
        scores = [fit[name] for fit in fits]
        if isinstance(scores[0], dict):
            columns[name] = {metric: numbers_to_json(each[metric] for each in scores) for metric in scores[0]}
        else:
            columns[name] = numbers_to_json(scores)
    return columns


def numbers_to_json(numbers: Iterable[Any]) -> list[float | str]:
    """The numbers as floats. JSON has neither NaN nor infinity: they become texts, which ``float`` reads."""
    return [number if math.isfinite(number) else str(number) for number in map(float, numbers)]


def fits_from_json(columns: Any, splits: int, train: bool) -> list[Fit]:
    """The fits that ``fits_to_json`` wrote; train scores that are wanted and not there are NaN."""
    if train and "train_scores" not in columns:
        unknown = ["nan"] * splits
        test = columns["test_scores"]
        columns = {**columns, "train_scores": dict.fromkeys(test, unknown) if isinstance(test, dict) else unknown}

    def at(split: int, column: Any) -> Any:
        if isinstance(column, dict):
            return {metric: float(numbers[split]) for metric, numbers in column.items()}
        return float(column[split])

    return [{name: at(split, column) for name, column in columns.items()} for split in range(splits)]


# -- trials as a table -------------------------------------------------------------------------------------------------


def evaluated(history: History) -> list[Trial]:
    """The trials that are rows of the table: those with a result or a failure, in order."""
    return [trial for trial in history if trial.state in (State.DONE, State.FAILED)]


def was_fitted(trial: Trial) -> bool:
    """Whether fits are stored with the trial."""
    return "test_scores" in (trial.attrs.get(FITS) or {})


def fits_of_trials(trials: Sequence[Trial], *, splits: int, train: bool, refit: Any, error_score: Any) -> list[Fit]:
    """The fits of all trials, in scikit-learn's format; at least one of them must have been fitted."""
    like = next(fits_from_json(trial.attrs[FITS], splits, train)[0] for trial in trials if was_fitted(trial))
    metric = metric_of(like, refit)
    fits: list[Fit] = []
    for trial in trials:
        if was_fitted(trial):
            fits += fits_from_json(trial.attrs[FITS], splits, train)
        elif trial.state is State.FAILED or FITS in trial.attrs:
            time = (trial.cost or math.nan) / splits
            fits += [uniform_fit(like, error_score) | {"fit_time": time, "score_time": 0.0} for _ in range(splits)]
        else:  # a result that was added by hand, of the optimized metric
            scores = trial.folds if trial.folds is not None and len(trial.folds) == splits else [trial.value] * splits
            for score in scores:
                fit = uniform_fit(like, math.nan)
                fits.append(fit | {"test_scores": score if metric is None else {**fit["test_scores"], metric: score}})
    return fits


def uniform_fit(like: Fit, score: Any) -> Fit:
    """A fit with the same score everywhere, in the format of another one."""
    fit: Fit = {"fit_time": math.nan, "score_time": math.nan}
    for name in ("test_scores", "train_scores"):
        if name in like:
            fit[name] = dict.fromkeys(like[name], score) if isinstance(like[name], dict) else score
    return fit


def study_columns(history: History, trials: Sequence[Trial], resource: str | None) -> dict[str, Any]:
    """The columns that the study adds to the table."""
    spent = np.cumsum([trial.charge for trial in history])
    columns = {
        "trial": [trial.number for trial in trials],
        "cost": [trial.cost or math.nan for trial in trials],
        "spent": [spent[trial.number] for trial in trials],
        "expected_cost": [trial.suggestion.get("cost", math.nan) for trial in trials],
        "failed": [trial.state is State.FAILED for trial in trials],
    }
    if resource is not None:
        columns["n_resources"] = [trial.config[resource] for trial in trials]
    return columns
