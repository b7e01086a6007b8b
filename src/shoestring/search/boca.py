"""BOCA: the most promising configuration, at the cheapest fidelity that still says something of it.

Source: Kandasamy, Dasarathy, Schneider, Poczos, "Multi-fidelity Bayesian optimisation with continuous approximations" (2017).

Notation: z the p fidelities, 1 their target, x the d other parameters, s(x, z) the deviation of f, c(z) the expected cost at x_t.

    x_t           minimises mu(x, 1) - sqrt(beta_t) s(x, 1)
    xi(z)         sqrt(1 - phi(z)^2), phi(z) the kernel's correlation of f(x, z) and f(x, 1): what z leaves unsaid of the target
    gamma(z)      a sqrt(k0) xi(z) (c(z) / c(1))^(1 / (p + d + 2)), k0 the kernel's variance
    open are      the z with s(x_t, z) > gamma(z) and xi(z) > max xi / sqrt(beta_t), and the target; the cheapest one is taken
    beta_t        0.5 d log(2 l t + 1), l the sum over the d parameters of 1 / length scale: the diameter of the space as the
                  kernel sees it (two options of a choice are at distance 1 too); t counts trials

Practice follows the authors' library, Dragonfly: fidelities are looked through on a fine grid, a saving of less than a tenth is
not worth it, and the factor a, 1 at first, moves a little at each choice, so that neither all nor none are at the target: up
while less than a quarter of the last 20 were, down while more than three quarters were (there: half). Dragonfly has no beta_t in
the conditions and takes d for l.
Where beta_t < 1 its condition would close everything but the target; it then leaves the fidelities of the highest xi open.

Where evaluations fail, c is what a success costs: divided by the chance of one. With several sets of hyperparameters, bounds, phi
and k0 are their means, and s is the deviation of the mixture.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from .._format import config_text
from ..acquisition.improvement import LCB
from ..acquisition.kg_fidelity import per_share
from ..acquisition.optimize.candidates import is_visited, quasi_random
from ..acquisition.optimize.optimizer import Surface
from ..cost.base import expected_log_cost
from ..data.history import History
from ..data.trial import State, Suggestion
from ..errors import MethodError
from ..numerics import Array, single_threaded
from ..space.space import Space
from ..surrogate.belief import Belief
from .base import SearchContext, fit_context_belief, optimizer_for
from .bayes import carried_warm_start, expectations, within_budget
from .initial_design import initial_suggestion

GRID = 512  # fidelities that are looked at
COARSE = 6  # with fewer values than this on each axis of a grid, quasi-random fidelities are finer
SAVING = 0.1  # of the target's cost: less is not worth a lower fidelity
WINDOW = 20  # recent choices that decide whether the factor moves
ENOUGH = 5  # of them, before it does
FEW, MANY = 0.25, 0.75  # shares of recent choices at the target between which the factor stays
STEP = 1.1
FACTOR = "threshold_factor"  # its name in what a suggestion leaves behind
LOWEST, HIGHEST = 0.1, 20.0  # the factor
NO_FIDELITY = "BOCA chooses fidelities, and this space has none; add one, such as epochs=st.Fidelity(1, 81), or use st.LCB()"


@dataclass(frozen=True)
class BOCA:
    """The lowest confidence bound at the target, evaluated at the cheapest fidelity whose outcome is still uncertain enough."""

    def suggest(self, context: SearchContext) -> Suggestion:
        space, seen = context.space, context.data
        if not space.fidelities:
            raise MethodError(NO_FIDELITY)
        begun = initial_suggestion(context, "BOCA", fidelities=True)
        if begun is not None:
            return begun
        costs = context.cost_limited or not context.costs_go_unnoticed
        belief, optimizer = fit_context_belief(context, costs=costs), optimizer_for(context)
        beta, factor = confidence(belief, context.number + 1), next_factor(context.history)
        bound = LCB(beta).averaged_surface(belief, optimizer.rng)
        options = Options.at(optimizer.maximize(bound).u, belief, optimizer.rng)
        row, why = options.choose(beta, factor, is_visited(options.U, context.visited), log_left(context))
        wanted = options.U[row]
        u = within_budget(wanted, at_target(bound, space), belief, replace(optimizer, fidelities=True), context)
        if u is not wanted:
            why = "of what fits into the budget, that of the lowest bound"
        config = space.decode(u)
        there = config_text({name: config[name] for name in space.fidelities})
        return Suggestion(
            config,
            by="BOCA",
            why=f"lowest confidence bound under a model of {seen.finished} trials; {there}: {why}",
            **expectations(u, belief, context),
            model=belief.to_warm_start(len(seen.y)) | carried_warm_start(belief) | {FACTOR: factor},
        )


@dataclass(frozen=True)
class Options:
    """One configuration at many fidelities, the target last.

    deviation   s(x_t, z);   gap  xi(z);   threshold  gamma(z) with a = 1
    log_cost    of an evaluation;   log_share  of a success, relative to the target's
    """

    U: Array
    deviation: Array
    gap: Array
    threshold: Array
    log_cost: Array
    log_share: Array

    @classmethod
    @single_threaded
    def at(cls, u: Array, belief: Belief, rng: np.random.Generator) -> Options:
        encoding, space = belief.encoding, belief.encoding.space
        U = fidelities_at(u, space, rng)
        Z, target = encoding.features(U), encoding.features(space.at_target(u[None, :]))
        phi = np.mean([correlation(each, Z, target) for each in belief.samples], axis=0)
        gap = np.sqrt(np.maximum(1.0 - phi**2, 0.0))
        log_cost = foreseen_log_cost(belief, U)
        price = log_cost if belief.feasibility is None else log_cost - belief.feasibility.log_probability(Z)
        log_share = price - price[-1]
        variance = float(np.mean([each.objective.kernel.variance for each in belief.samples]))
        exponent = 1.0 / (len(space.fidelities) + len(inputs(space)) + 2)
        threshold = math.sqrt(variance) * gap * np.exp(exponent * np.minimum(log_share, 0.0))  # dearer ones are never open
        return cls(U, np.sqrt(belief.moments(Z)[1]), gap, threshold, log_cost, log_share)

    def choose(self, beta: float, factor: float, tried: NDArray[np.bool_], limit: float) -> tuple[int, str]:
        """The row of the choice, and why; ``limit`` is the logarithm of what may be spent.

        Where the choice costs more than that: the fidelity within it that says most of the target, if there is any.
        """
        informs = self.deviation > factor * self.threshold
        differs = self.gap >= self.gap.max() / max(math.sqrt(beta), 1.0)
        free = informs & differs & ~tried & (self.log_share <= math.log(1.0 - SAVING))
        target = len(self.U) - 1
        row, why = target, f"no fidelity that saves {SAVING:.0%} of the cost still informs"
        if free.any():
            rows = np.flatnonzero(free)
            row = int(rows[np.lexsort((self.gap[rows], np.round(self.log_share[rows], 9)))[0]])  # equal costs: the nearest one
            why = (
                f"the cheapest fidelity that still informs, at {math.exp(self.log_share[row]):.2g} of the target's cost "
                f"(deviation {self.deviation[row]:.2g} > {factor * self.threshold[row]:.2g})"
            )
        fits = np.flatnonzero(~tried & (self.log_cost <= limit))
        if self.log_cost[row] > limit and len(fits):
            return int(fits[np.argmin(self.gap[fits])]), "the fidelity nearest to the target that fits into the budget"
        return row, why


def inputs(space: Space) -> list[int]:
    """The columns of parameters that are no fidelities and can vary."""
    return [j for j, parameter in enumerate(space.values()) if not parameter.fidelity and parameter.levels != 1]


def confidence(belief: Belief, t: int) -> float:
    """beta_t."""
    columns = inputs(belief.encoding.space)
    first = [int(np.argmax(belief.encoding.groups == j)) for j in columns]  # all features of a parameter have one length scale
    diameter = float(np.mean([each.objective.kernel.inverse_lengths[first].sum() for each in belief.samples]))
    return 0.5 * len(columns) * math.log(2.0 * diameter * t + 1.0)


def correlation(belief: Belief, Z: Array, target: Array) -> Array:
    """phi: of f at features Z and f at the target, which differ in the fidelities alone."""
    kernel = belief.objective.kernel
    apart = kernel.scale(Z) - kernel.scale(target)
    covariance, _ = kernel.profiled(np.einsum("ij,ij->i", apart, apart))
    return covariance / kernel.variance


def fidelities_at(u: Array, space: Space, rng: np.random.Generator) -> Array:
    """u at a grid of fidelities, at quasi-random ones where there are so many that a grid would be coarse; and at the target."""
    columns = [space.names.index(name) for name in space.fidelities]
    count = int(GRID ** (1.0 / len(columns)) + 1e-9)
    if count >= COARSE:
        axes = [values_of(space, j, count) for j in columns]
        Z = np.column_stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")])
    else:
        Z = np.vstack([np.zeros(len(columns)), quasi_random(GRID, len(columns), rng)])
    U = np.tile(u, (len(Z) + 1, 1))
    U[:-1, columns] = Z
    return np.vstack([space.snap(U[:-1]), space.at_target(u[None, :])])


def values_of(space: Space, column: int, count: int) -> Array:
    """Unit coordinates of a fidelity: all its values where they are few, else ``count`` of them with both ends."""
    parameter = space[space.names[column]]
    few = parameter.levels is not None and parameter.levels <= count
    return parameter.grid_units() if few else np.unique(parameter.snap(np.linspace(0.0, 1.0, count)))


def foreseen_log_cost(belief: Belief, U: Array) -> Array:
    """By the cost model, or while nothing is known of costs in proportion to each fidelity's share of its target."""
    if belief.cost is not None:
        return expected_log_cost(belief.cost, U)
    return -per_share(lambda points, _: (np.zeros(len(points)), None), belief.encoding.space)(U, False)[0]


def log_left(context: SearchContext) -> float:
    """Of a budget in cost; infinite where costs have no limit."""
    if context.spending is None or not context.cost_limited:
        return math.inf
    left = context.spending.left - context.reserved
    return math.log(left) if left > 0.0 else -math.inf


def at_target(surface: Surface, space: Space) -> Surface:
    """The surface at the target fidelities, whatever those of a point are."""
    moves = np.array([not parameter.fidelity for parameter in space.values()])

    def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
        found, slope = surface(space.at_target(U), gradient)
        return found, None if slope is None else slope * moves

    return value


def next_factor(history: History) -> float:
    """The factor of the threshold at the next choice, from that of the last one and where recent ones were made."""
    chosen = (
        trial
        for trial in reversed(history)
        if FACTOR in (trial.suggestion.get("model") or {}) and trial.state is not State.ABANDONED
    )
    own = list(islice(chosen, WINDOW))  # the last one first
    if not own:
        return 1.0
    last = float(own[0].suggestion["model"][FACTOR])
    recent = [history.at_target(trial) for trial in own]
    share = sum(recent) / len(recent)
    if len(recent) < ENOUGH or FEW <= share <= MANY:
        return last
    return min(max(last * STEP if share < FEW else last / STEP, LOWEST), HIGHEST)
