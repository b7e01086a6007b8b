"""The rules compared: a variant and a threshold, or patience, by the paper's labels.

Bounds are held against the tolerance on tables, and against the error of the incumbent's cross-validation elsewhere:
``paper_0.21`` is equation 9, whose factor of the folds' variance is 1/10 + 1/9 = 0.21 for ten folds, and ``paper_0.5`` a
larger factor (table 3). Thresholds of EI and PI are those of table 3; the text of the paper has others, a tenth of them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.termination.measures import gain
from benchmarks.termination.recordings import Recording
from benchmarks.termination.replay import Series
from benchmarks.termination.stopping import Array, first_below, patience
from benchmarks.termination.variants import FIRST, VARIANTS

TOLERANCES = (1e-4, 1e-3, 1e-2)
FACTORS = (0.21, 0.5)
CONVERGENCE = (10, 30, 50)
EI, PI = (1e-8, 1e-12, 1e-16), (1e-4, 1e-8, 1e-12)
WEIGHTS = (0.01, 0.1, 1.0)  # lambda of the cost-adjusted regret
STAGNATION = 31  # Optuna's BestValueStagnationEvaluator at its default of 30: it stops once that is exceeded
Stop = Callable[[Recording, Series | None], int | None]


@dataclass(frozen=True)
class Rule:
    """``variant`` is None where the values are enough; ``tolerance`` is the regret that it promises, where it does."""

    label: str
    variant: str | None
    stop: Stop
    tolerance: float | None = None


def numbers(series: Series) -> Array:
    return np.array([math.inf if value is None else value for value in series.values], dtype=float)


def fold_error(recording: Recording, steps: Sequence[int], factor: float) -> Array:
    """The root of ``factor`` times the variance of the incumbent's folds, after so many evaluations; 0.21 is equation 8,
    with the sizes of the folds.
    """
    from shoestring.termination.regret import standard_error

    assert recording.folds is not None
    found = []
    for n in steps:
        folds = recording.folds[int(np.argmin(recording.values[:n]))]
        corrected = standard_error(folds, recording.fold_sizes) if factor == FACTORS[0] else math.sqrt(factor * np.var(folds))
        found.append(corrected or 0.0)
    return np.array(found)


def waiting(label: str, trials: int) -> Rule:
    return Rule(label, None, lambda recording, _: patience(recording.values, trials, FIRST))


def below(label: str, variant: str, threshold: float, *, strictly: bool = True, tolerance: float | None = None) -> Rule:
    def stop(_: Recording, series: Series | None) -> int | None:
        assert series is not None
        return first_below(series.steps, numbers(series), threshold, strictly=strictly)

    return Rule(label, variant, stop, tolerance)


def within_folds(label: str, variant: str, factor: float) -> Rule:
    def stop(recording: Recording, series: Series | None) -> int | None:
        assert series is not None
        return first_below(series.steps, numbers(series), fold_error(recording, series.steps, factor))

    return Rule(label, variant, stop)


def priced(label: str, weight: float) -> Rule:
    """``WorthIt`` at the price at which all evaluations together cost ``weight`` times what a run has gained."""

    def stop(recording: Recording, series: Series | None) -> int | None:
        assert series is not None
        return first_below(series.steps, numbers(series), weight * gain(recording.values) / sum(recording.costs))

    return Rule(label, "worth", stop)


def all_rules(crossval: bool) -> list[Rule]:
    rules = [waiting(f"Conv_{i}", i) for i in CONVERGENCE]
    rules += [below(f"EI_{level:g}", "ei", level) for level in EI]
    rules += [below(f"PI_{level:g}", "pi", level) for level in PI]
    for name, variant in VARIANTS.items():
        if variant.bound and crossval:
            rules += [within_folds(f"{name}_{factor:g}", name, factor) for factor in FACTORS]
        elif variant.bound:
            rules += [below(f"{name}_{level:g}", name, level, strictly=False, tolerance=level) for level in TOLERANCES]
    rules += [priced(f"worth_{weight:g}", weight) for weight in WEIGHTS]
    return [*rules, below("optuna_emmr", "optuna_emmr", 1.0), waiting("optuna_stagnation", STAGNATION)]
