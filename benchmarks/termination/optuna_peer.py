"""Optuna's terminator on the same recorded runs, by its public interface on a study in memory.

- ``RegretBoundEvaluator`` at its defaults: a bound on the regret, to be held against a tolerance or against the error of
  cross-validation (``CrossValidationErrorEvaluator`` is the threshold that our rules use too, for folds of equal size);
- ``EMMREvaluator`` with ``MedianErrorEvaluator`` at their defaults: stored as the ratio of the two, a stop below one. Before
  thirty evaluations the second has no threshold yet, and the ratio is infinite;
- ``BestValueStagnationEvaluator`` needs no model: it is patience of 31 (see ``rules``).

Optuna stops where an evaluator is below the error, asked from 20 evaluations on. Both fit models anew each time and are slow, so
they are computed after every eighth evaluation and for ten seeds. Optuna 4.9 declared the module deprecated, to go with 6.0.
"""

import math
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from benchmarks.peers import optuna_distributions
from benchmarks.termination.core import TestedProblem

EVERY, SEEDS = 8, 10


@contextmanager
def _quiet() -> Iterator[Any]:
    """The module, its warnings of experiments and deprecation silenced."""
    import optuna
    import torch

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import optuna.terminator as terminator

        yield terminator


def exists() -> str | None:
    """Why there is nothing to compare with, or None."""
    try:
        with _quiet():
            return None
    except ImportError as problem:
        return f"this version of Optuna has no terminator: {problem}"


def study_of(problem: TestedProblem, history: Any, terminator: Any) -> Any:
    """The recorded trials as an Optuna study."""
    import optuna

    distributions = optuna_distributions(problem.plain())
    study = optuna.create_study(direction="minimize", sampler=optuna.samplers.RandomSampler(seed=0))
    for recorded in history:
        study.enqueue_trial(dict(recorded.config))
        trial = study.ask(distributions)
        if recorded.folds is not None:
            terminator.report_cross_validation_scores(trial, list(recorded.folds))
        study.tell(trial, recorded.value)
    return study


def regret_bounds(problem: TestedProblem, history: Any, steps: Sequence[int]) -> list[float]:
    with _quiet() as terminator:
        study = study_of(problem, history, terminator)
        evaluator = terminator.RegretBoundEvaluator(seed=0)
        trials = study.trials
        return [max(float(evaluator.evaluate(trials[:n], study.direction)), 0.0) for n in steps]


def emmr(problem: TestedProblem, history: Any, steps: Sequence[int]) -> list[float]:
    with _quiet() as terminator:
        study = study_of(problem, history, terminator)
        improvement = terminator.EMMREvaluator(seed=0)
        threshold = terminator.MedianErrorEvaluator(improvement)
        trials, found = study.trials, []
        for n in steps:
            left, error = improvement.evaluate(trials[:n], study.direction), threshold.evaluate(trials[:n], study.direction)
            found.append(left / error if error > 0 and left < sys.float_info.max else math.inf)
        return [float(ratio) for ratio in found]
