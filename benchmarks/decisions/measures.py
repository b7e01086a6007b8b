"""What is read off one run: normalised regret after a number of evaluations or at a cost, and the cost to a given quality.

best known   the lowest true value of the problem that anything stored has seen, or that the yardstick names
regret       0 at the best known, 1 at the median of the best of ten random evaluations
cost         a share of the problem's budget in cost, which is the mean cost of 60 random evaluations
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import wilcoxon

from benchmarks.decisions.problems import Yardstick
from benchmarks.decisions.runs import CAP, Run
from benchmarks.ranks import exact_interval

Array = NDArray[np.float64]
ROUNDING = 1e-9  # shares of a budget: a sum of costs may miss it by rounding


@dataclass(frozen=True)
class Course:
    """A run as numbers: the regret of the incumbent and the share of the budget spent after each evaluation.

    ``first`` is the regret of one random evaluation, which counts where none has ended yet.
    """

    regrets: Array
    spent: Array
    first: float

    def after(self, evaluations: int) -> float:
        """The regret after so many evaluations; a run that ended earlier keeps what it has."""
        return float(self.regrets[min(evaluations, len(self.regrets)) - 1]) if len(self.regrets) else self.first

    def at(self, share: float) -> float:
        """The regret at a share of the budget; only evaluations that end within it count."""
        count = int(np.searchsorted(self.spent, share + ROUNDING, side="right"))
        return float(self.regrets[count - 1]) if count else self.first

    def cost_to(self, regret: float) -> float:
        """The share of the budget at which the regret is first as low; infinite if that is not within the budget."""
        reached = np.flatnonzero((self.regrets <= regret + ROUNDING) & (self.spent <= 1.0 + ROUNDING))
        return float(self.spent[reached[0]]) if len(reached) else float("inf")

    def cost_of(self, evaluations: int) -> float:
        """The share of the budget that so many evaluations cost; undefined (NaN) for a run that ended earlier."""
        return float(self.spent[evaluations - 1]) if len(self.spent) >= evaluations else float("nan")


def _numbers(values: Sequence[float]) -> Array:
    """Values as an array; one that is not a number counts as the worst."""
    found = np.array(values, dtype=float)
    return np.where(np.isnan(found), np.inf, found)


def true_values(run: Run) -> Array:
    """The values without noise."""
    return _numbers(run.values if run.truths is None else run.truths)


def best_known(runs: Iterable[Run], yardsticks: Mapping[str, Yardstick]) -> dict[str, float]:
    """The lowest true value by problem. All stored runs count, also those not compared: one may go below an estimated optimum."""
    lowest = {name: yardstick.lowest for name, yardstick in yardsticks.items()}
    for run in runs:
        if run.values:
            lowest[run.problem] = min(lowest[run.problem], float(true_values(run).min()))
    return lowest


def course(run: Run, yardstick: Yardstick, lowest: float) -> Course:
    """The numbers of a run. The incumbent is the config with the best value seen; its true value counts."""
    seen = _numbers(run.values)
    best = np.minimum.accumulate(seen)
    fresh = np.concatenate([[True], best[1:] < best[:-1]]) if len(seen) else np.zeros(0, dtype=bool)
    incumbent = np.maximum.accumulate(np.where(fresh, np.arange(len(seen)), 0))
    truths = true_values(run)[incumbent] if len(seen) else seen
    regrets = np.array([yardstick.normalised(float(value), lowest) for value in truths])
    return Course(regrets, np.cumsum(run.costs) / yardstick.budget, yardstick.normalised(yardstick.first, lowest))


def ended_by_cap(run: Run) -> bool:
    """Whether a run was ended by the number of evaluations, with budget left."""
    return len(run.values) >= CAP and sum(run.costs) < run.cost_budget * (1 - ROUNDING)


def proportion(count: int, total: int) -> dict[str, Any]:
    """A share with its exact (Clopper-Pearson) 95 % interval."""
    if not total:
        return {}
    low, high = exact_interval(count, total)
    return {"share": round(count / total, 4), "low": round(low, 4), "high": round(high, 4), "count": count, "runs": total}


def signed_rank(differences: Array) -> dict[str, float | None]:
    """One-sided p-values of Wilcoxon's signed-rank test: that the differences tend to be above zero, and below it."""
    differences = np.round(differences[np.isfinite(differences)], 12)
    if not len(differences):
        return {"above": None, "below": None}
    if not differences.any():
        return {"above": 1.0, "below": 1.0}
    above, below = wilcoxon(differences, alternative="greater"), wilcoxon(differences, alternative="less")
    return {"above": round(float(above.pvalue), 5), "below": round(float(below.pvalue), 5)}


def quantile(costs: Array, share: float) -> float | None:
    """A quantile where infinite means never; None if that is the quantile itself. Between two costs, their mean."""
    if not len(costs):
        return None
    ordered, place = np.sort(costs), share * (len(costs) - 1)
    middle = (ordered[math.floor(place)] + ordered[math.ceil(place)]) / 2
    return round(float(middle), 4) if np.isfinite(middle) else None
