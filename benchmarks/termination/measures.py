"""What a stop saved and what it cost: equations 10 and 11 of the paper, and the regret left.

    RYC = (y_T - y_es) / max(y_T, y_es)      y the test error of the incumbent after T evaluations and at the stop; negative: lost
    RTC = (t_T - t_es) / t_T                 t the cost of the evaluations up to there

A run that is not stopped has RYC = RTC = 0.

Cost-adjusted regret (Xie et al., "Cost-aware stopping for Bayesian optimization") is regret + price * cost, whether the run was
stopped or not. Made comparable over problems, in units of what a run has gained after its first evaluations:

    CAR = regret / gain + lambda * t_es / t_T,    gain = median of the first values - best of all,    price = lambda gain / t_T
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

FIRST_VALUES = 20  # evaluations before a rule is asked
ROUNDING = 1e-9  # relative; what is stored has eight digits


@dataclass(frozen=True)
class Judged:
    """One run under one rule; ``regret`` is the true one when stopped, NaN where it is not known or nothing was stopped."""

    ryc: float
    rtc: float
    rtc_trials: float
    stopped: bool
    regret: float
    left: float = float("nan")  # the true regret at the end, stopped or not, in units of the gain
    paid: float = float("nan")  # cost up to there over the cost of all evaluations

    def cost_adjusted(self, weight: float) -> float:
        """CAR for lambda = ``weight``."""
        return self.left + weight * self.paid

    def within(self, tolerance: float) -> bool:
        return self.regret <= tolerance * (1 + ROUNDING)


def ryc(final: float, stopped: float) -> float:
    """Equation 10; two errors of zero are no change."""
    highest = max(final, stopped)
    return (final - stopped) / highest if highest > 0 else 0.0


def rtc(total: float, stopped: float) -> float:
    """Equation 11."""
    return (total - stopped) / total


def incumbent(values: Sequence[float], n: int) -> int:
    """The first of the best among the first n evaluations, by the value that the search saw."""
    return int(np.argmin(values[:n]))


def regrets(values: Sequence[float], steps: Sequence[int], optimum: float) -> np.ndarray:
    """The true regret after so many evaluations."""
    return np.minimum.accumulate(values)[np.asarray(steps) - 1] - optimum


def gain(values: Sequence[float]) -> float:
    """What a run has gained after its first evaluations; 1 where it has gained nothing."""
    return float(np.median(values[:FIRST_VALUES]) - np.min(values)) or 1.0


def judge(
    values: Sequence[float], costs: Sequence[float], tests: Sequence[float], stop: int | None, optimum: float | None
) -> Judged:
    last = len(values)
    n = last if stop is None else stop
    left = values[incumbent(values, n)] - optimum if stop is not None and optimum is not None else float("nan")
    return Judged(
        ryc(tests[incumbent(values, last)], tests[incumbent(values, n)]),
        rtc(sum(costs), sum(costs[:n])) if n < last else 0.0,
        rtc(last, n),
        stop is not None,
        left,
        (values[incumbent(values, n)] - optimum) / gain(values) if optimum is not None else float("nan"),
        sum(costs[:n]) / sum(costs),
    )
