"""The regret bound: stop when what is left to gain is bounded by what is not worth gaining.

Source: "Automatic termination for hyperparameter optimization", equations 7 to 9 and algorithm 1.

    r = f(best evaluated) - f(best there is)  <=  min_{x in G} ucb(x) - min_{x in Gamma} lcb(x)                 (7)
    ucb, lcb = mu(x) +- sqrt(beta_t) s(x)
    beta_t = 2 log(|Gamma| t^2 pi^2 / (6 delta)) / 5,    |Gamma| the number of hyperparameters, t of evaluations
    Var f(x) ~ (1/k + |D_i| / |D_-i|) s_cv^2,    s_cv^2 = (1/k) sum_i (y - y_i)^2                                (8)
    stop when the bound is at most the tolerance, or sqrt(Var f) of the best trial's cross-validation           (9)

mu and s are those of a model of the best half of the evaluations (section 4.2). G is everything that was evaluated, at the target
fidelity; a config that was evaluated at a lower one counts by what the model says of its target. The second minimum is over the
whole space, found by the acquisition optimizer.

With a study's belief, all comes from the study's own model and from what it learnt, of many trials perhaps a subset. The bound of
everything is that of the belief itself: no model is fitted. Output transforms rise with the value, so the ends of both bounds are
mapped back to the user's units. For the best half an exact GP is fitted anew, as in the paper, from the belief's hyperparameters.
A sparse model or one from outside keeps its hyperparameters: its posterior is restricted to the best half, and its amplitude is
estimated anew in closed form. With a history alone, a GP is fitted to the values as they are.

Equation 8 is the correction of Nadeau and Bengio (2003): folds share training data, so their spread alone says too little. With
folds of different sizes n_i of N rows the ratio is the mean of n_i / (N - n_i), or of n_i over the training rows where the folds
are not the parts of one whole (shuffled or repeated splits). Without sizes the folds are taken as equal parts: 1 / (k - 1).

``SureBound``, the default, is the larger of two bounds:

    best half of the evaluations, beta doubled                              everything, beta as it is

``RegretBound`` as published looks at the best half only, which says little of how far down the rest of the space may go. On the
HPOBench tables (the tuning set, GP searcher, tolerance 0.01, histories alone) a quarter of the runs that it stops are not within
the tolerance, and the bound lies below the true regret in two steps of five. With ``SureBound`` all that are stopped are within
the tolerance, three of four are stopped, and the bound is below the true regret in one step of seventy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._format import rounded
from .._validation import number_between, whole_number
from ..acquisition.base import average
from ..acquisition.improvement import improvement_surface, negative_lower_bound
from ..acquisition.optimize.optimizer import Surface
from ..data.dataset import Dataset, to_dataset
from ..data.history import History
from ..data.trial import State
from ..errors import MethodError
from ..numerics import Array, single_threaded
from ..space.encoding import Encoding
from ..surrogate.base import SurrogatePosterior
from ..surrogate.belief import Belief, fit_belief
from ..surrogate.gp import GP, layout_for, posterior_under
from ..surrogate.output_transform import OutputTransform
from ..surrogate.posterior import Posterior
from ..surrogate.subset import sample_by_rank
from .base import RULE_STREAM, StopRule, Verdict, stored_text
from .lower_bound import candidates, joint_draws, search_lowest

PAPER_MODEL = GP(output="standard")
BETA_SCALE = 0.2  # of beta, "scaled down by a factor of 5" (appendix A.2.3)
MIN_ROWS = 3  # evaluations that the model is given at least
MAX_LEARNING_ROWS = 128  # of the best half: its hyperparameters are learnt from so many, its posterior holds all
FIRST_LOOK = 0.125  # of the candidates of a search: those that are looked at first
BEST_HALF_CAUTION = 2.0  # factor of beta for the best half, in SureBound


@dataclass(frozen=True, repr=False)
class RegretBound(StopRule):
    """Stop when the regret is bounded by the tolerance: the best value is provably close to the best possible one, by a model.

    As published, from one model. ``SureBound`` takes the larger of two bounds and is right more often: prefer it.

    tolerance    how much worse than the best possible value the result may be, in the objective's units; None: as much as the
                 best trial's cross-validation is off by, from its ``folds``
    top          share of the evaluations, the best ones, that the bound is computed from
    delta        probability that the bound fails, in theory
    after        evaluations before the first check
    fold_sizes   rows of each fold, where they differ
    train_sizes  rows that each is trained on, where folds overlap
    beta_scale   factor of beta: 1/5 in the paper's experiments, 1 in theory (its figure 9)
    fold_factor  the variance of the folds' mean over that of the folds; None: by the sizes of the folds, 0.21 for ten equal
                 ones. A larger one stops earlier: 0.5 in the paper's table 3

    >>> space = st.Space(x=st.Float(0, 1))
    >>> history = st.minimize(lambda c: c["x"], space, 12, method=st.Sobol()).history
    >>> st.RegretBound(tolerance=10, after=12).check(history).stop
    True
    """

    tolerance: float | None = None
    top: float = 0.5
    delta: float = 0.1
    after: int = 20
    fold_sizes: tuple[int, ...] | None = None
    train_sizes: tuple[int, ...] | None = None
    beta_scale: float = BETA_SCALE
    fold_factor: float | None = None

    def __post_init__(self) -> None:
        name = type(self).__name__
        number_between(self.beta_scale, f"{name}: beta_scale", 0.0, low_included=False)
        number_between(self.fold_factor, f"{name}: fold_factor", 0.0, low_included=False, optional=True)
        number_between(self.tolerance, f"{name}: tolerance", 0.0, low_included=False, optional=True)
        for field in ("top", "delta"):
            number_between(getattr(self, field), f"{name}: {field}", 0.0, 1.0, low_included=False)
        whole_number(self.after, f"{name}: after", 2)
        check_sizes(name, self.fold_sizes, self.train_sizes)

    def __repr__(self) -> str:
        return stored_text(self, ("beta_scale", "fold_factor"))

    def needs_belief(self, history: History) -> bool:
        return history.evaluations >= self.after and self.threshold(history)[0] is not None

    def check(self, history: History, belief: Belief | None = None) -> Verdict:
        found = history.evaluations
        if found < self.after:
            return Verdict(False, f"{found} of the {self.after} evaluations are there after which the regret is bounded")
        threshold, what = self.threshold(history)
        if threshold is None:
            return Verdict(False, what)
        if values_are_equal(history):
            return Verdict(False, f"all {found} values are equal, which says nothing of the rest of the space")
        bound = self.bound(history, belief, threshold)
        evidence = bound.evidence() | {"threshold": threshold}
        if bound.regret > threshold:
            reason = f"there may be {rounded(bound.regret)} or more left to gain, above {what} of {rounded(threshold)}"
            return Verdict(False, reason, evidence)
        reason = f"what is left to gain is bounded by {rounded(bound.regret)}, within {what} of {rounded(threshold)}"
        return Verdict(True, reason, evidence)

    def threshold(self, history: History) -> tuple[float | None, str]:
        """The regret that is not worth reducing (equation 9), and what it is; None, and why there is none."""
        if self.tolerance is not None:
            return float(self.tolerance), "the tolerance"
        return fold_threshold(history, self.fold_sizes, self.train_sizes, self.fold_factor, type(self).__name__)

    def bound(self, history: History, belief: Belief | None = None, enough: float = math.inf) -> Bound:
        """Equation 7 for the evaluations so far; once it is seen to lie above ``enough``, no longer exact but too low."""
        return BoundModel.of(history, belief).bound(self.top, self.delta, enough, scale=self.beta_scale)


@dataclass(frozen=True, repr=False)
class SureBound(RegretBound):
    """A safer regret bound: the larger of two, one from the best half of the evaluations and one from all of them.

    The rule to use where you know a tolerance, or where trials report the folds of a cross-validation. The options are those of
    ``RegretBound``.

    >>> space = st.Space(x=st.Float(0, 1))
    >>> history = st.minimize(lambda c: c["x"], space, 12, method=st.Sobol()).history
    >>> st.SureBound(tolerance=10, after=12).check(history).stop
    True
    """

    def bound(self, history: History, belief: Belief | None = None, enough: float = math.inf) -> Bound:
        model, found = BoundModel.of(history, belief), list[Bound]()
        parts = [(self.top, BEST_HALF_CAUTION), (1.0, 1.0)]
        for top, caution in parts if belief is None else reversed(parts):  # the cheaper one first: with a belief it needs no fit
            found.append(model.bound(top, self.delta, enough, scale=caution * self.beta_scale))
            if found[-1].regret > enough:
                break
        return max(found, key=lambda bound: bound.regret)


@dataclass(frozen=True)
class Bound:
    """min ucb over what was evaluated, min lcb over everything, in the objective's units, lower is better."""

    upper: float
    lower: float
    beta: float
    evaluations: int

    @property
    def regret(self) -> float:
        return max(self.upper - self.lower, 0.0)

    def evidence(self) -> dict[str, float]:
        return {"bound": self.regret, "beta": self.beta, "evaluations": float(self.evaluations)}


def beta_at(evaluations: int, dimensions: int, delta: float, scale: float = BETA_SCALE) -> float:
    """beta_t times a scale: a fifth in the paper's experiments."""
    return scale * 2.0 * math.log(dimensions * evaluations**2 * math.pi**2 / (6.0 * delta))


@dataclass(frozen=True)
class BoundModel:
    """What a bound is computed from: a study's belief, or a history alone.

    data   the evaluations that the bound looks at: all of them, or what the study's model learnt from
    """

    history: History
    encoding: Encoding
    data: Dataset
    belief: Belief | None

    @classmethod
    def of(cls, history: History, belief: Belief | None) -> BoundModel:
        if belief is None:
            return cls(history, Encoding(history.space), to_dataset(history), None)
        return cls(history, belief.encoding, belief.data, belief)

    @single_threaded
    def bound(self, top: float, delta: float, enough: float = math.inf, *, scale: float = BETA_SCALE) -> Bound:
        """Equation 7 by a model of the best ``top`` of the evaluations, with ``scale`` times the beta of theory.

        The search for the lowest lcb ends early when the bound is above ``enough``, which further search would only raise.
        """
        space, data = self.encoding.space, self.data
        t = self.history.evaluations
        beta = max(beta_at(t, len(space) - len(space.fidelities), delta, scale), 0.0)
        evaluated = space.at_target(data.U[: data.finished]) if space.fidelities else data.U[data.eligible]
        upper, lower = extremes(self.model_of_best(top), evaluated, data, beta, enough)
        return Bound(upper, lower, beta, t)

    def model_of_best(self, top: float) -> Belief:
        """The belief given the best ``top`` of the evaluations alone."""
        rows = best_rows(self.data, top)
        if self.belief is None:
            known = self.history.warm_start
            start = {"theta": known["theta"], "trials": len(self.data.y)} if known and known.get("theta") else None
            part = replace(self.data.select(rows), pending=self.data.pending[:0])
            return fit_belief(part, self.encoding, PAPER_MODEL, start)
        if len(rows) == len(self.data.y):
            return self._each_sample(lambda one: one.fit.posterior)
        if isinstance(self.belief.model, GP):
            return self._refitted(rows, self.belief.model)
        return self._each_sample(lambda one: one.fit.posterior if one.fit.restrict is None else rescaled(one.fit.restrict(rows)))

    def _each_sample(self, posterior_of: Callable[[Belief], Any]) -> Belief:
        """The study's belief with another posterior for each hyperparameter sample."""
        assert self.belief is not None
        samples = tuple(replace(one, objective=posterior_of(one)) for one in self.belief.hyperparameter_samples)
        return replace(self.belief, objective=posterior_of(self.belief), hyperparameter_samples=samples)

    def _refitted(self, rows: NDArray[np.intp], model: GP) -> Belief:
        """The study's GP fitted to the values of some rows as they are, from the hyperparameters of the belief."""
        assert self.belief is not None
        y, Z = self.data.y[rows], self.encoding.features(self.data.U[rows])
        output = OutputTransform.of(y, "standard")
        learn = sample_by_rank(y, MAX_LEARNING_ROWS)
        groups, fidelities, targets = self.encoding.groups, self.encoding.fidelities, output.forward(y)
        exact = replace(model, inference="map", subset=None)
        fit = exact.fit(Z[learn], targets[learn], groups, start=self.belief.fit.theta, cold=False, fidelities=fidelities)
        posterior = fit.posterior
        if len(learn) < len(rows):
            posterior = posterior_under(fit.theta, layout_for(exact, groups, fidelities, None), model.kernel, Z, targets, None)
        return replace(self.belief, objective=posterior, output=output, hyperparameter_samples=())


@dataclass(frozen=True)
class RescaledPosterior(SurrogatePosterior):
    """A posterior with another amplitude: the same mean, the variance times a factor."""

    of: Posterior
    factor: float

    @property
    def noise(self) -> float:  # type: ignore[override]
        return self.of.noise

    def mean_and_variance(self, X: Array) -> tuple[Array, Array]:
        mean, variance = self.of.mean_and_variance(X)
        return mean, self.factor * variance

    def with_gradients(self, X: Array) -> tuple[Array, Array, Array, Array]:
        mean, variance, d_mean, d_variance = self.of.with_gradients(X)
        return mean, self.factor * variance, d_mean, self.factor * d_variance

    def covariance(self, X: Array, Y: Array | None = None) -> Array:
        return self.factor * self.of.covariance(X, Y)

    def condition(self, X: Array, y: Array, noise: float | None = None) -> RescaledPosterior:
        return replace(self, of=self.of.condition(X, y, noise))


def rescaled(posterior: Any) -> Any:
    """The posterior with the amplitude of its own values: c = (1 + sum (y - m)^2 / (s2 + noise)) / (1 + n)."""
    if not isinstance(posterior, Posterior):
        return posterior
    spread = float(((posterior.y - posterior.mean) ** 2).sum()) / (posterior.kernel.variance + posterior.noise)
    return RescaledPosterior(posterior, (1.0 + spread) / (1.0 + len(posterior.y)))


def extremes(belief: Belief, evaluated: Array, data: Dataset, beta: float, enough: float) -> tuple[float, float]:
    """min ucb over the evaluated points and min lcb over everything, in the objective's units.

    A few candidates are looked at first: where the difference is above ``enough`` there, the search ends.
    """
    root = math.sqrt(beta)
    found = [each.objective.mean_and_variance(belief.encoding.features(evaluated)) for each in belief.samples]
    upper = float(np.mean([mean + root * np.sqrt(variance) for mean, variance in found], axis=0).min())
    lower = float(np.mean([mean - root * np.sqrt(variance) for mean, variance in found], axis=0).min())

    def negative_lcb(one: Belief) -> Surface:
        return improvement_surface(
            replace(one, feasibility=None), lambda mean, deviation: negative_lower_bound(mean, deviation, root)
        )

    def difference() -> tuple[float, float]:
        high, low = belief.output.inverse(np.array([upper, lower]))
        return float(high), float(low)

    surface = average([negative_lcb(each) for each in belief.samples], log_space=False)
    rng = np.random.default_rng([RULE_STREAM, len(data.y)])
    few = candidates(belief.encoding, data, rng, FIRST_LOOK)
    lower = min(lower, -float(np.nanmax(np.concatenate([surface(part, False)[0] for part in few]))))
    high, low = difference()
    if high - low > enough:
        return high, low
    parts = candidates(belief.encoding, data, rng)
    highest, _ = search_lowest(surface, belief.encoding, parts, rng, joint_draws(belief, rng))
    lower = min(lower, -highest)
    return difference()


def best_rows(data: Dataset, top: float) -> NDArray[np.intp]:
    """The rows of the best ``top`` of the evaluations, of those at the target fidelity and of the others alike."""
    kept: list[NDArray[np.intp]] = []
    for group in (np.flatnonzero(data.at_target), np.flatnonzero(~data.at_target)):
        order = group[np.argsort(data.y[group], kind="stable")]
        kept.append(order[: max(math.ceil(top * len(group)), MIN_ROWS)])
    return np.sort(np.concatenate(kept))


def values_are_equal(history: History) -> bool:
    """Whether all finished trials have the same value."""
    table = history.table
    values = table.value[: table.count][table.having(State.DONE)]
    return bool((values == values[0]).all()) if len(values) else True


# -- cross-validation --------------------------------------------------------------------------------------------------


def check_sizes(rule: str, sizes: Sequence[int] | None, train_sizes: Sequence[int] | None = None) -> None:
    for what, given in (("fold_sizes", sizes), ("train_sizes", train_sizes)):
        if given is None:
            continue
        if len(given) < 2 or not all(isinstance(size, int | np.integer) and size >= 1 for size in given):
            raise MethodError(f"{rule}: {what} must be the numbers of rows of two folds or more, not {given!r}")
    if train_sizes is not None and (sizes is None or len(sizes) != len(train_sizes)):
        raise MethodError(f"{rule}: train_sizes needs fold_sizes of the same length")


def fold_threshold(
    history: History, sizes: Sequence[int] | None, train_sizes: Sequence[int] | None, factor: float | None, rule: str
) -> tuple[float | None, str]:
    """The uncertainty of the best trial's cross-validation, and what it is; None, and why there is none."""
    best = history.best
    try:
        error = standard_error(best.folds, sizes, train_sizes, factor) if best is not None else None
    except MethodError as wrong:  # not in the middle of a run
        return None, str(wrong)
    if error is None:
        return None, f"the best trial has no folds to take a tolerance from: tell folds=[...], or give {rule}(tolerance)"
    return error, "the best trial's cross-validation error"


def standard_error(
    folds: Sequence[float] | None, sizes: Sequence[int] | None = None, train_sizes: Sequence[int] | None = None,
    factor: float | None = None,
) -> float | None:
    """The corrected standard error of the folds' mean (equation 8); None with fewer than two finite folds.

    Folds that are not finite do not count, nor do their sizes. A ``factor`` takes the place of that of equation 8.
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
    return math.sqrt((1.0 / k + ratio if factor is None else factor) * float(np.var(values[finite])))
