"""How well a cross-validated value is known: the threshold below which regret is not worth reducing.

Source: equation 8 and algorithm 1 of "Automatic termination for hyperparameter optimization"; the correction is that of
Nadeau and Bengio (2003):

    Var f(x) ~ (1/k + |D_i| / |D_-i|) s^2,    s^2 = (1/k) sum_i (y - y_i)^2,    y the mean of the k folds' values

The folds share training data, so their spread alone says too little. With folds of different sizes n_i of N rows the ratio
is the mean of n_i / (N - n_i), or of n_i over the training rows where the folds are not the parts of one whole (shuffled or
repeated splits); without sizes they are taken as equal parts, which makes it 1 / (k - 1).

A bound on what is left to gain, against what is not worth gaining.

Source: "Automatic termination for hyperparameter optimization", equations 7 to 9 and algorithm 1.

    r = f(best tried) - f(best there is)  <=  min_{x in G} ucb(x) - min_{x in Gamma} lcb(x)                     (7)
    ucb, lcb = mu(x) +- sqrt(beta_t) s(x)
    beta_t = 2 log(|Gamma| t^2 pi^2 / (6 delta)) / 5,    |Gamma| the number of hyperparameters, t of evaluations
    stop when the bound is at most the tolerance, or the standard error of the incumbent's cross-validation     (8, 9)

mu and s are those of a GP on the best half of the evaluations (section 4.2); G is everything that was tried, at the target
fidelity: what was tried at a lower one counts by what the model says of the target there. The second minimum is over the whole
space: candidates, then gradient ascent and exchange moves, as for an acquisition. Values are standardised and nothing else, so
the bound is in the user's units.

The regret bound that two models agree on: the default.

``RegretBound`` as published looks at the best half of the evaluations only. Those say little of how far down the rest of
the space may go, and on the HPOBench tables (the tuning set, GP searcher, tolerance 0.01) a quarter of the runs that it stops
are not within the tolerance; the bound lies below the true regret in two steps of five. Here the bound is the larger of two:

    best half of the evaluations, beta doubled                              everything, beta as it is

On the same runs all that are stopped are within the tolerance, three of four are stopped, and the bound is below the true
regret in one step of seventy. A check costs no more as long as the first bound is above the threshold.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .._format import rounded
from ..acquisition.base import average
from ..acquisition.improvement import improvement_surface, negative_lower_bound
from ..acquisition.optimize.optimizer import AcquisitionOptimizer
from ..data.dataset import Dataset
from ..data.history import History
from ..data.trial import State
from ..errors import MethodError
from ..numerics import Array
from ..space.space import Space
from ..surrogate.belief import Belief, fit_belief
from ..surrogate.gp import GP
from .base import Lookout, StopRule, Verdict


def check_sizes(rule: str, sizes: Sequence[int] | None, train_sizes: Sequence[int] | None = None) -> None:
    for what, given in (("fold_sizes", sizes), ("train_sizes", train_sizes)):
        if given is None:
            continue
        if len(given) < 2 or not all(isinstance(size, int | np.integer) and size >= 1 for size in given):
            raise MethodError(f"{rule}: {what} must be the numbers of rows of two folds or more, not {given!r}")
    if train_sizes is not None and (sizes is None or len(sizes) != len(train_sizes)):
        raise MethodError(f"{rule}: train_sizes needs fold_sizes of the same length")


def standard_error(
    folds: Sequence[float] | None, sizes: Sequence[int] | None = None, train_sizes: Sequence[int] | None = None
) -> float | None:
    """The corrected standard error of the folds' mean; None with fewer than two finite folds.

    Folds that are not finite are left out, with their sizes.
    """
    if folds is None:
        return None
    values = np.asarray(folds, dtype=float)
    finite = np.isfinite(values)
    k = int(finite.sum())
    if k < 2:
        return None
    ratio = 1.0 / (len(values) - 1)
    if sizes is not None:
        if len(sizes) != len(values):
            raise MethodError(f"there are {len(sizes)} fold_sizes, but {len(values)} folds; give one size for each fold")
        rows = np.asarray(sizes, dtype=float)
        trained = rows.sum() - rows if train_sizes is None else np.asarray(train_sizes, dtype=float)
        ratio = float(np.mean((rows / trained)[finite]))
    return math.sqrt((1.0 / k + ratio) * float(np.var(values[finite])))


MODEL = GP(output="standard")
FEWEST = 3  # evaluations that the model is given at least


@dataclass(frozen=True)
class RegretBound(StopRule):
    """``RegretBound(tolerance=None, top=0.5, delta=0.1, after=20)``.

    tolerance    how much worse than the best possible value the result may be, in the objective's units; None: as much as
                 the best trial's cross-validation is off by, from its ``folds``
    top          share of the evaluations, the best ones, that the bound is computed from
    delta        chance that the bound fails, in theory
    after        evaluations before the first check
    fold_sizes   rows of each fold, where they differ; train_sizes  rows that each is trained on, where folds overlap
    """

    tolerance: float | None = None
    top: float = 0.5
    delta: float = 0.1
    after: int = 20
    fold_sizes: tuple[int, ...] | None = None
    train_sizes: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        check_number("RegretBound", "tolerance", self.tolerance, 0.0, math.inf, optional=True)
        check_number("RegretBound", "top", self.top, 0.0, 1.0)
        check_number("RegretBound", "delta", self.delta, 0.0, 1.0)
        check_after("RegretBound", self.after)
        check_sizes("RegretBound", self.fold_sizes, self.train_sizes)

    def check(self, history: History, space: Space) -> Verdict:
        found = history.evaluations
        if found < self.after:
            return Verdict(False, f"{found} of the {self.after} evaluations are there after which the regret is bounded")
        threshold, what = self.threshold(history)
        if threshold is None:
            return Verdict(False, what)
        if len({trial.value for trial in history.having(State.DONE)}) == 1:
            return Verdict(False, f"all {found} values are equal, which says nothing of the rest of the space")
        bound = self.bound(history, space, threshold)
        evidence = bound.evidence() | {"threshold": threshold}
        if bound.regret > threshold:
            reason = f"there may be {rounded(bound.regret)} or more left to gain, above {what} of {rounded(threshold)}"
            return Verdict(False, reason, evidence)
        reason = f"what is left to gain is bounded by {rounded(bound.regret)}, within {what} of {rounded(threshold)}"
        return Verdict(True, reason, evidence)

    def threshold(self, history: History) -> tuple[float | None, str]:
        """The regret that is not worth reducing, and what it is; None, and why there is none."""
        if self.tolerance is not None:
            return float(self.tolerance), "the tolerance"
        best = history.best
        try:
            error = standard_error(best.folds, self.fold_sizes, self.train_sizes) if best is not None else None
        except MethodError as wrong:  # not in the middle of a run
            return None, str(wrong)
        if error is None:
            return None, "the best trial has no folds to take a tolerance from: tell folds=[...], or give RegretBound(tolerance)"
        return error, "the best trial's cross-validation error"

    def bound(self, history: History, space: Space, enough: float = math.inf) -> Bound:
        """Equation 7 for the evaluations so far; once it is seen to lie above ``enough``, no longer exact but too low."""
        return regret_bound(Lookout.over(history, space), self.top, self.delta, enough)


@dataclass(frozen=True)
class Bound:
    """min ucb over what was tried, min lcb over everything, in the objective's units, lower is better."""

    upper: float
    lower: float
    beta: float
    evaluations: int

    @property
    def regret(self) -> float:
        return max(self.upper - self.lower, 0.0)

    def evidence(self) -> dict[str, float]:
        return {"bound": self.regret, "beta": self.beta, "evaluations": float(self.evaluations)}


def beta_at(evaluations: int, dimensions: int, delta: float) -> float:
    """beta_t, scaled down by five as in the paper's experiments."""
    return 2.0 * math.log(dimensions * evaluations**2 * math.pi**2 / (6.0 * delta)) / 5.0


def regret_bound(
    lookout: Lookout, top: float, delta: float, enough: float = math.inf, *, caution: float = 1.0
) -> Bound:
    """Equation 7 by a GP on the best ``top`` of the evaluations, with beta ``caution`` times as large.

    The search for the lowest lcb ends early when the bound is above ``enough``, which further search would only raise.
    """
    seen, encoding = lookout.data, lookout.encoding
    t = seen.finished if encoding.space.fidelities else len(seen.eligible)
    beta = caution * max(beta_at(t, len(encoding.space) - len(encoding.space.fidelities), delta), 0.0)
    belief = fit_belief(best_part(seen, top), encoding, MODEL, lookout.start)
    tried = encoding.space.at_target(seen.U[: seen.finished]) if encoding.space.fidelities else seen.U[seen.eligible]
    upper, lower = extremes(belief, tried, (lookout.glance(), lookout.optimizer(anywhere=True)), beta, enough)
    return Bound(upper, lower, beta, t)


def extremes(belief: Belief, tried: Array, seekers: Iterable[AcquisitionOptimizer], beta: float, enough: float) -> tuple[float, float]:
    """min ucb over the tried points and min lcb over everything, in the objective's units.

    Seekers are asked one after the other, until the difference is above ``enough``.
    """
    root = math.sqrt(beta)
    found = [each.objective.mean_and_variance(belief.encoding.features(tried)) for each in belief.samples]
    upper = float(np.mean([mean + root * np.sqrt(variance) for mean, variance in found], axis=0).min())
    lower = float(np.mean([mean - root * np.sqrt(variance) for mean, variance in found], axis=0).min())
    plain = [replace(each, feasibility=None) for each in belief.samples]
    anywhere = average(
        [improvement_surface(each, lambda mean, deviation: negative_lower_bound(mean, deviation, root)) for each in plain], log_space=False
    )
    for optimizer in seekers:
        lower = min(lower, -optimizer.maximize(anywhere).value)
        high, low = belief.output.inverse(np.array([upper, lower]))
        if high - low > enough:
            break
    return float(high), float(low)


def best_part(seen: Dataset, top: float) -> Dataset:
    """The best ``top`` of the finished trials, of those at the target fidelity and of the others alike; nothing pending."""
    kept: list[NDArray[np.intp]] = []
    for group in (np.flatnonzero(seen.at_target), np.flatnonzero(~seen.at_target)):
        order = group[np.argsort(seen.y[group], kind="stable")]
        kept.append(order[: max(math.ceil(top * len(group)), FEWEST)])
    rows = np.sort(np.concatenate(kept))
    nothing: Array = seen.pending[:0]
    return replace(seen.select(rows), pending=nothing)


def check_number(rule: str, what: str, value: float | None, low: float, high: float, *, optional: bool = False) -> None:
    """A number above ``low`` and at most ``high`` (below it where that is infinite)."""
    if optional and value is None:
        return
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or value is None or not low < value <= high or math.isinf(value):
        limits = f"above {low:g}" + ("" if math.isinf(high) else f" and at most {high:g}")
        raise MethodError(f"{rule}: {what} must be a number {limits}{', or None' if optional else ''}, not {value!r}")


def check_after(rule: str, after: int) -> None:
    if isinstance(after, bool) or not isinstance(after, int) or after < 2:
        raise MethodError(f"{rule}: after must be a whole number of at least 2, not {after!r}")


CAUTION = 2.0  # factor of beta for the best half


@dataclass(frozen=True)
class SureBound(RegretBound):
    """``SureBound(tolerance=None, top=0.5, delta=0.1, after=20)``: as ``RegretBound``, with the more careful bound."""

    def bound(self, history: History, space: Space, enough: float = math.inf) -> Bound:
        lookout = Lookout.over(history, space)
        narrow = regret_bound(lookout, self.top, self.delta, enough, caution=CAUTION)
        if narrow.regret > enough:
            return narrow
        wide = regret_bound(lookout, 1.0, self.delta, enough)
        return max(narrow, wide, key=lambda bound: bound.regret)
