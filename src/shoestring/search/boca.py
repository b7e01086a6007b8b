"""BOCA: the config of the lowest confidence bound, at the cheapest fidelity that still informs about it.

Source: Kandasamy, Dasarathy, Schneider, Poczos, "Multi-fidelity Bayesian optimisation with continuous approximations" (2017).

Notation
    x, d          the parameters that are not fidelities, d of them
    z, p          the fidelities, p of them; z = 1 stands for their target
    mu, s         posterior mean and standard deviation of f(x, z)
    x_t           minimizes mu(x, 1) - sqrt(beta_t) s(x, 1)
    c(z)          expected cost at x_t
    phi(z)        the kernel's correlation of f(x, z) and f(x, 1)
    xi(z)         sqrt(1 - phi(z)^2), the information gap: what z does not tell about the target
    k0            variance of the kernel
    gamma(z)      a sqrt(k0) xi(z) (c(z) / c(1))^(1 / (p + d + 2)), the threshold; a is its factor
    Z_t           the z with s(x_t, z) > gamma(z) and xi(z) > max xi / sqrt(beta_t), and the target
    z_t           the cheapest fidelity of Z_t
    beta_t        0.5 d log(2 l t + 1), with l the sum of 1 / length scale over the d parameters and t the number of trials;
                  l is the diameter of the space as the kernel sees it (two options of a choice have distance 1 too)

Practice follows Dragonfly, the authors' library. Fidelities are searched on a fine grid. A saving of less than a tenth of the
cost does not justify a lower fidelity. The factor a starts at 1 and is adjusted a little at each suggestion, so that neither all
nor none are at the target: up while less than a quarter of the last 20 were, down while more than three quarters were (in
Dragonfly: half). Dragonfly has no beta_t in the conditions and uses d for l. Where beta_t < 1, the second condition would exclude
everything but the target; then the fidelities of the highest xi stay in Z_t.

Where evaluations fail, c is the cost of a success: the expected cost divided by the probability of feasibility. With several
hyperparameter samples, bounds, phi and k0 are their means, and s is the standard deviation of the mixture.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import islice
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from .._format import config_text
from ..acquisition.improvement import LCB
from ..acquisition.kg_fidelity import assumed_cost_weighted_surface
from ..acquisition.optimize.candidates import is_visited, quasi_random
from ..acquisition.optimize.optimizer import Surface
from ..cost.base import expected_log_cost
from ..data.history import History
from ..data.trial import State, Suggestion
from ..errors import MethodError
from ..numerics import Array, single_threaded
from ..space.space import Space
from ..surrogate.belief import Belief
from .base import SearchContext, SearchMethod
from .bayes import carried_warm_start, expectations, within_budget
from .initial_design import initial_suggestion

MAX_FIDELITIES = 512  # fidelities z that are compared
MIN_GRID_VALUES_PER_AXIS = 6  # a coarser grid is replaced by quasi-random fidelities
MIN_COST_SAVING = 0.1  # share of the target's cost that a lower fidelity must save
FACTOR_WINDOW_TRIALS = 20  # recent trials that decide whether the factor changes
MIN_TRIALS_TO_ADJUST = 5  # recent trials needed before the factor changes
MIN_TARGET_SHARE, MAX_TARGET_SHARE = 0.25, 0.75  # the factor stays while the share of trials at the target is between these
FACTOR_STEP = 1.1  # the factor is multiplied or divided by this
MIN_FACTOR, MAX_FACTOR = 0.1, 20.0
FACTOR_KEY = "threshold_factor"  # name of the factor in the stored model of a suggestion
NO_FIDELITY = "BOCA chooses fidelities, and this space has none; add one, such as epochs=st.Fidelity(1, 81), or use st.LCB()"


@dataclass(frozen=True)
class BOCA(SearchMethod):
    """The config of the lowest confidence bound at the target, at the cheapest fidelity whose value is still uncertain enough.

    Use it as a faster alternative to ``CFKG``: a suggestion takes half the time. It needs a space with a fidelity.

    >>> space = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 9))
    >>> def train(config):
    ...     return st.Outcome(config["x"] + 1 / config["epochs"], cost=config["epochs"])
    >>> len(st.minimize(train, space, 9, method=st.BOCA()).history)
    9
    """

    seeks_information: ClassVar[bool] = True

    def suggest(self, context: SearchContext) -> Suggestion:
        space, data = context.space, context.data
        if not space.fidelities:
            raise MethodError(NO_FIDELITY)
        if context.in_initial_design:
            return initial_suggestion(context, "BOCA", fidelities=True)
        costs = context.cost_limited or not context.costs_go_unnoticed
        belief, optimizer = context.belief(costs=costs), context.optimizer()
        beta, factor = confidence(belief, context.number + 1), next_factor(context.history)
        bound = LCB(beta).averaged_surface(belief, optimizer.rng)
        candidates = FidelityCandidates.at(optimizer.maximize(bound).u, belief, optimizer.rng)
        row, why = candidates.choose(beta, factor, is_visited(candidates.U, context.visited), log_budget_left(context))
        wanted = candidates.U[row]
        u = within_budget(wanted, at_target(bound, space), belief, replace(optimizer, fidelities=True), context)
        if u is not wanted:
            why = "of what fits into the budget, that of the lowest bound"
        config = space.decode(u)
        there = config_text({name: config[name] for name in space.fidelities})
        return Suggestion(
            config,
            by="BOCA",
            why=f"lowest confidence bound under a model of {data.finished} trials; {there}: {why}",
            **expectations(u, belief, context),
            model=belief.to_warm_start(len(data.y)) | carried_warm_start(belief) | {FACTOR_KEY: factor},
        )


@dataclass(frozen=True)
class FidelityCandidates:
    """One config at many fidelities, the target last.

    deviation   s(x_t, z);   gap  xi(z);   threshold  gamma(z) with a = 1
    log_cost    of an evaluation;   log_share  log of c(z) / c(1), where c is the cost of a success
    """

    U: Array
    deviation: Array
    gap: Array
    threshold: Array
    log_cost: Array
    log_share: Array

    @classmethod
    @single_threaded
    def at(cls, u: Array, belief: Belief, rng: np.random.Generator) -> FidelityCandidates:
        """The candidates for the config of a point u."""
        encoding, space = belief.encoding, belief.encoding.space
        U = fidelities_at(u, space, rng)
        Z, target = encoding.features(U), encoding.features(space.at_target(u[None, :]))
        phi = np.mean([correlation(each, Z, target) for each in belief.samples], axis=0)
        gap = np.sqrt(np.maximum(1.0 - phi**2, 0.0))  # xi(z)
        log_cost = predicted_log_cost(belief, U)
        price = log_cost if belief.feasibility is None else log_cost - belief.feasibility.log_probability(Z)
        log_share = price - price[-1]
        variance = float(np.mean([each.objective.kernel.variance for each in belief.samples]))
        exponent = 1.0 / (len(space.fidelities) + len(input_columns(space)) + 2)
        # gamma(z) with a = 1; fidelities that cost more than the target are never in Z_t
        threshold = math.sqrt(variance) * gap * np.exp(exponent * np.minimum(log_share, 0.0))
        return cls(U, np.sqrt(belief.moments(Z)[1]), gap, threshold, log_cost, log_share)

    def choose(self, beta: float, factor: float, visited: NDArray[np.bool_], limit: float) -> tuple[int, str]:
        """The row of z_t, and why; ``limit`` is the logarithm of the cost that may be spent.

        If z_t costs more than that, the fidelity within the limit that tells most about the target, if there is any.
        """
        informs = self.deviation > factor * self.threshold  # the first condition of Z_t
        differs = self.gap >= self.gap.max() / max(math.sqrt(beta), 1.0)  # the second condition of Z_t
        allowed = informs & differs & ~visited & (self.log_share <= math.log(1.0 - MIN_COST_SAVING))
        target = len(self.U) - 1
        row, why = target, f"no fidelity that saves {MIN_COST_SAVING:.0%} of the cost still informs"
        if allowed.any():
            rows = np.flatnonzero(allowed)
            row = int(rows[np.lexsort((self.gap[rows], np.round(self.log_share[rows], 9)))[0]])  # equal costs: the smallest gap
            why = (
                f"the cheapest fidelity that still informs, at {math.exp(self.log_share[row]):.2g} of the target's cost "
                f"(deviation {self.deviation[row]:.2g} > {factor * self.threshold[row]:.2g})"
            )
        fits = np.flatnonzero(~visited & (self.log_cost <= limit))
        if self.log_cost[row] > limit and len(fits):
            return int(fits[np.argmin(self.gap[fits])]), "the fidelity nearest to the target that fits into the budget"
        return row, why


def input_columns(space: Space) -> list[int]:
    """The columns of x: parameters that are not fidelities and have more than one value."""
    return [j for j, parameter in enumerate(space.parameters) if not parameter.fidelity and parameter.levels != 1]


def confidence(belief: Belief, t: int) -> float:
    """beta_t, the confidence parameter."""
    columns = input_columns(belief.encoding.space)
    first = [int(np.argmax(belief.encoding.groups == j)) for j in columns]  # the features of a parameter share a length scale
    diameter = float(np.mean([each.objective.kernel.inverse_lengths[first].sum() for each in belief.samples]))
    return 0.5 * len(columns) * math.log(2.0 * diameter * t + 1.0)


def correlation(belief: Belief, Z: Array, target: Array) -> Array:
    """phi: of f at features Z and f at the target, which differ in the fidelities alone."""
    kernel = belief.objective.kernel
    difference = kernel.scale(Z) - kernel.scale(target)
    covariance, _ = kernel.covariance_at_distance(np.einsum("ij,ij->i", difference, difference))
    return covariance / kernel.variance


def fidelities_at(u: Array, space: Space, rng: np.random.Generator) -> Array:
    """u at a grid of fidelities, or at quasi-random ones where a grid would be too coarse; and last at the target."""
    columns = [space.names.index(name) for name in space.fidelities]
    count = int(MAX_FIDELITIES ** (1.0 / len(columns)) + 1e-9)
    if count >= MIN_GRID_VALUES_PER_AXIS:
        axes = [fidelity_axis(space, j, count) for j in columns]
        Z = np.column_stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")])
    else:
        Z = np.vstack([np.zeros(len(columns)), quasi_random(MAX_FIDELITIES, len(columns), rng)])
    U = np.tile(u, (len(Z) + 1, 1))
    U[:-1, columns] = Z
    return np.vstack([space.snap(U[:-1]), space.at_target(u[None, :])])


def fidelity_axis(space: Space, column: int, count: int) -> Array:
    """Unit coordinates of one fidelity: all its values if there are at most ``count``, else that many with both ends."""
    parameter = space.parameters[column]
    few = parameter.levels is not None and parameter.levels <= count
    return parameter.grid_units() if few else np.unique(parameter.snap(np.linspace(0.0, 1.0, count)))


def predicted_log_cost(belief: Belief, U: Array) -> Array:
    """By the cost model; while there is none, costs are assumed proportional to each fidelity's share of its target."""
    if belief.cost is not None:
        return expected_log_cost(belief.cost, U)
    return -assumed_cost_weighted_surface(lambda points, _: (np.zeros(len(points)), None), belief.encoding.space)(U, False)[0]


def log_budget_left(context: SearchContext) -> float:
    """The logarithm of what is left of a budget in cost; infinite without such a budget."""
    if context.spending is None or not context.cost_limited:
        return math.inf
    left = context.affordable
    return math.log(left) if left > 0.0 else -math.inf


def at_target(surface: Surface, space: Space) -> Surface:
    """The surface with the fidelities of every point moved to the target."""
    free = np.array([not parameter.fidelity for parameter in space.parameters])

    def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
        values, gradients = surface(space.at_target(U), gradient)
        return values, None if gradients is None else gradients * free

    return value


def next_factor(history: History) -> float:
    """The factor a of the next suggestion: the last one, adjusted by the share of recent trials at the target."""
    own = (
        trial
        for trial in reversed(history)
        if FACTOR_KEY in (trial.suggestion.get("model") or {}) and trial.state is not State.ABANDONED
    )
    recent = list(islice(own, FACTOR_WINDOW_TRIALS))  # the last one first
    if not recent:
        return 1.0
    last = float(recent[0].suggestion["model"][FACTOR_KEY])
    share = sum(history.at_target(trial) for trial in recent) / len(recent)
    if len(recent) < MIN_TRIALS_TO_ADJUST or MIN_TARGET_SHARE <= share <= MAX_TARGET_SHARE:
        return last
    return min(max(last * FACTOR_STEP if share < MIN_TARGET_SHARE else last / FACTOR_STEP, MIN_FACTOR), MAX_FACTOR)
