"""The probability that much is left to gain: stop when it is small.

Source of the criterion: Wilson, "Stopping Bayesian optimization with probabilistic regret bounds" (2024). Stop when

    P( f(best evaluated) - min_x f(x)  >  tolerance )  <=  1 - confidence                                                     (1)

P is the model's. The regret bound of ``regret`` takes a lowest bound over the whole space and an upper bound of the best: both
must be off at once for it to be reached, and it stays high for as long as any corner of the space is a little unsure. The
probability (1) falls as soon as the model is sure, since it asks for all of the space at once.

    gain_s = y(f_s(best)) - min_i y(f_s(x_i))    of joint draws f_s of the posterior, y() in the user's units                 (2)

The points x_i are those where a minimum can be: candidates with the lowest bounds, the ends of a search for the lowest bound,
the minima of a first set of draws, and neighbours of these.

Hyperparameters are integrated out. A model that has one set of them (the most probable) is too sure of itself where few
evaluations say how far the values of a choice, or two ends of an axis, differ. Samples are drawn by Laplace's approximation

    theta_k ~ N(mode, H^-1),    weights w_k = p(theta_k | data) / N(theta_k; mode, H^-1)                                       (3)

and drawn again by their weights.

The spread of the draws is corrected by how the model's own forecasts came out. In the order of the trials, the forecast of each
from those before it has the standardised error e_i = (y_i - mu_i) / s_i: these are R (y - m), with R' R the inverse covariance.
Deviations from the mean are multiplied by c, which compares good surprises (e_i < 0) with what the model expects of them,

    c^2 = (w + 2 sum_i min(e_i, 0)^2) / (w + n)        E[min(e, 0)^2] = 1/2 for a model that is right                         (4)

over the n trials after the initial design; w is the weight of c = 1. An objective is often flat near its optimum and steep far
from it. A Gaussian process, which is as rough everywhere, then expects good surprises that never come, and no bound falls.

All of this is computed only where a first look at few candidates and draws does not rule the stop out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from .._format import rounded
from .._validation import number_between, whole_number
from ..acquisition.base import average
from ..acquisition.improvement import improvement_surface, negative_lower_bound
from ..acquisition.optimize.candidates import neighbours, unique_points
from ..acquisition.optimize.optimizer import Surface
from ..data.dataset import Dataset
from ..data.history import History
from ..numerics import Array, single_threaded
from ..surrogate.base import SurrogatePosterior
from ..surrogate.belief import Belief
from ..surrogate.gp import GP, SAMPLE_ROWS, layout_for, likelihood_of, posterior_under
from ..surrogate.marginal_likelihood import AnyLikelihood
from ..surrogate.mcmc import laplace_root
from ..surrogate.posterior import Posterior
from ..surrogate.subset import sample_by_rank
from .base import RULE_STREAM, StopRule, Verdict, belief_of
from .lower_bound import candidates, joint_draws, search_lowest
from .regret import values_are_equal

DEFAULT_MODEL = GP()  # of a rule that is called with a history alone
DRAWS = 1024
JOINT_POINTS = 256  # of the joint draws, before their minima are looked at more closely
CLOSER_POINTS = 128  # neighbours of the minima of the first draws
FIRST_DRAWS = 64
LOW_DEVIATIONS = 2.5  # candidates are ordered by mean - LOW_DEVIATIONS deviations
HYPERPARAMETER_SAMPLES = 8
PROPOSALS = 48  # of Laplace's approximation, from which the samples are drawn by weight
FIRST_LOOK = 0.25  # of the candidates: those that are looked at first
FIRST_LOOK_POINTS, FIRST_LOOK_DRAWS = 64, 256  # of the joint draws of the first look
POOL_POINTS = 640  # lowest candidates that are looked at under each hyperparameter sample
INITIAL_TRIALS = 8  # which no model has chosen
PRIOR_WEIGHT = 5.0  # w: as many trials say that the model is right
EVALUATED_POINTS = 16  # best evaluations among them


@dataclass(frozen=True)
class RegretBelow(StopRule):
    """Stop once the regret is below the tolerance, with a stated probability by the model.

    The probability that any config of the whole space is better than the best one by more than the tolerance, by joint draws
    of the study's model, hyperparameters integrated out. It comes earlier than ``SureBound``, which must be sure everywhere at
    once.

    tolerance   how much worse than the best possible value the result may be, in the objective's units
    confidence  the probability, by the model, that it is not worse than that
    after       evaluations before the first check
    roughness   what a model takes for noise may be real, in an objective that has none: so many deviations of the noise are
                added to what is left to gain. 0 for an objective that is noisy

    >>> space = st.Space(x=st.Float(0, 1))
    >>> history = st.minimize(lambda c: (c["x"] - 0.3) ** 2, space, 12, method=st.EI(), seed=0).history
    >>> st.RegretBelow(tolerance=0.1, after=12).check(history).stop
    True
    """

    tolerance: float
    confidence: float = 0.99
    after: int = 20
    roughness: float = 1.0

    def __post_init__(self) -> None:
        number_between(self.roughness, "RegretBelow: roughness", 0.0)
        number_between(self.tolerance, "RegretBelow: tolerance", 0.0, low_included=False)
        number_between(self.confidence, "RegretBelow: confidence", 0.5, 1.0, high_included=False)
        whole_number(self.after, "RegretBelow: after", 2)

    def needs_belief(self, history: History) -> bool:
        return history.evaluations >= self.after

    @single_threaded
    def check(self, history: History, belief: Belief | None = None) -> Verdict:
        found = history.evaluations
        if found < self.after:
            return Verdict(False, f"{found} of the {self.after} evaluations are there after which the regret is estimated")
        if values_are_equal(history):
            return Verdict(False, f"all {found} values are equal, which says nothing of the rest of the space")
        model = GainModel.of(history, belief, self.roughness)
        return verdict_of(model, self.tolerance, self.confidence, f"the tolerance of {rounded(self.tolerance)}")


def verdict_of(model: GainModel, tolerance: float, confidence: float, what: str) -> Verdict:
    """Equation (1), with the reason in words; ``what`` the tolerance is, with its size."""
    chance = model.chance_at_first(tolerance)
    gains, allowed = np.empty(0), 1.0 - confidence
    if exact := chance <= allowed + 2.0 * math.sqrt(confidence * allowed / FIRST_LOOK_DRAWS):
        gains = model.draws(enough=(tolerance, 1.0 - confidence))
        chance = float(np.sum(gains > tolerance)) / max(len(gains), 1)
    evidence = {"chance": chance, "tolerance": tolerance, "confidence": confidence}
    if chance > 1.0 - confidence:
        more = "" if exact else " or more"
        reason = f"the chance that more than {what} is left to gain is {percent(chance)}{more}"
        return Verdict(False, reason, evidence)
    left = float(np.quantile(gains, confidence))
    reason = f"no more than {what} is left to gain, with a probability of {percent(1.0 - chance)} by the model"
    return Verdict(True, reason, evidence | {"bound": left})


def percent(share: float) -> str:
    """A probability as a percentage that is never rounded up to certainty."""
    number = 100.0 * share
    if number > 99.0:
        return "over 99 %" if number < 99.95 else "over 99.9 %"
    return f"{number:.0f} %" if number >= 1.0 or number == 0.0 else "under 1 %"


@dataclass(frozen=True)
class GainModel:
    """What is left to gain, by a belief: draws in the user's units, lower values being better."""

    belief: Belief
    data: Dataset
    roughness: float = 0.0

    @classmethod
    def of(cls, history: History, belief: Belief | None, roughness: float = 0.0) -> GainModel:
        """Of a study's belief, or of the default model fitted to a history alone; pending points do not count."""
        belief = belief_of(history, DEFAULT_MODEL) if belief is None else belief
        samples = tuple(replace(one, objective=one.fit.posterior) for one in belief.hyperparameter_samples)
        return cls(replace(belief, objective=belief.fit.posterior, hyperparameter_samples=samples), belief.data, roughness)

    @property
    def best(self) -> Array:
        """The best evaluation (1 x D), at the target fidelity; where values are noisy, that with the lowest mean: the best value
        is partly luck.
        """
        space = self.belief.encoding.space
        if self.roughness > 0.0:
            return space.at_target(self.data.U[self.data.best(1)])
        evaluated = space.at_target(self.data.U[: self.data.finished]) if space.fidelities else self.data.U[self.data.eligible]
        means = self.belief.fitted_mean(self.belief.encoding.features(evaluated))
        return np.asarray(evaluated[[int(np.argmin(means))]])

    def chance_at_first(self, tolerance: float) -> float:
        """A first estimate of (1), mostly too low: over a few candidates, under the most probable hyperparameters."""
        belief, rng = self.belief, np.random.default_rng([RULE_STREAM, len(self.data.y)])
        points = np.vstack([self.best, *candidates(belief.encoding, self.data, rng, FIRST_LOOK)])
        each = -(-FIRST_LOOK_DRAWS // len(belief.samples))
        gains = [self.draws_among(one, points, FIRST_LOOK_POINTS, each, rng) for one in belief.samples]
        return float(np.mean(np.concatenate(gains) > tolerance))

    def draws(self, count: int = DRAWS, enough: tuple[float, float] | None = None) -> Array:
        """Draws of the gain (2), over hyperparameter samples.

        enough   (a gain, a share): fewer draws once more than this share of all of them is seen to be above this gain
        """
        rng = np.random.default_rng([RULE_STREAM, len(self.data.y), 1])
        samples = hyperparameter_samples(self.belief, HYPERPARAMETER_SAMPLES, rng)
        each, pool, found = -(-count // len(samples)), self.pool(rng), list[Array]()
        for one in samples:
            found.append(self.draws_under(one, pool, each, rng))
            if enough is not None and sum(int((part > enough[0]).sum()) for part in found) > enough[1] * each * len(samples):
                break
        return np.concatenate(found)

    def pool(self, rng: np.random.Generator) -> Array:
        """Points where a minimum may be: the lowest candidates, and the ends of a search for the lowest bound."""
        belief, space = self.belief, self.belief.encoding.space
        parts = candidates(belief.encoding, self.data, rng)

        def score(mean: Array, deviation: Array) -> tuple[Array, Array, Array]:
            return negative_lower_bound(mean, deviation, LOW_DEVIATIONS)

        surfaces = [improvement_surface(replace(one, feasibility=None), score) for one in belief.samples]
        surface: Surface = average(surfaces, log_space=False)
        _, ends = search_lowest(surface, belief.encoding, parts, rng, joint_draws(belief, rng))
        everything = np.vstack(parts)
        low = np.argsort(-surface(everything, False)[0], kind="stable")[:POOL_POINTS]
        evaluated = space.at_target(self.data.U[self.data.best(EVALUATED_POINTS)])
        return np.vstack([self.best, evaluated, ends[:JOINT_POINTS], everything[low]])

    def draws_under(self, one: Belief, pool: Array, count: int, rng: np.random.Generator) -> Array:
        """Draws of the gain under one hyperparameter sample, over a pool of points whose first is the best evaluation."""
        encoding, posterior, space = one.encoding, one.objective, one.encoding.space
        points = np.vstack([pool[:1], lowest_points(one, pool, JOINT_POINTS)])
        first = posterior.sample(encoding.features(points), FIRST_DRAWS, rng)
        minima = points[np.unique(np.argmin(first, axis=1))]
        near = neighbours(minima, CLOSER_POINTS, space, rng)
        points = unique_points(np.vstack([points, space.snap(space.at_target(near))]))
        return self.draws_among(one, points, len(points), count, rng)

    def draws_among(self, one: Belief, points: Array, most: int, count: int, rng: np.random.Generator) -> Array:
        """Draws of the gain over the ``most`` lowest of some points, the first of which is the best evaluation."""
        if len(points) > most:
            points = np.vstack([points[:1], lowest_points(one, points[1:], most)])
        Z = one.encoding.features(points)
        mean = one.objective.mean_at(Z)
        f = mean + surprise_scale(one.objective) * (one.objective.sample(Z, count, rng) - mean)  # (4)
        lowest = f.min(axis=1) - self.roughness * math.sqrt(max(one.objective.noise, 0.0))
        return np.asarray(one.output.inverse(f[:, 0]) - one.output.inverse(lowest))  # (2)


def lowest_points(one: Belief, points: Array, count: int) -> Array:
    """The points with the lowest mean - LOW_DEVIATIONS deviations."""
    mean, variance = one.objective.mean_and_variance(one.encoding.features(points))
    return points[np.argsort(mean - LOW_DEVIATIONS * np.sqrt(variance), kind="stable")[:count]]


def surprise_scale(posterior: SurrogatePosterior) -> float:
    """c of (4); 1 where a model does not tell its forecasts."""
    if not isinstance(posterior, Posterior) or len(posterior.R) != len(posterior.y):  # with gradients, R has more rows
        return 1.0
    errors = (posterior.R @ (posterior.y - posterior.mean))[INITIAL_TRIALS:]
    good = np.minimum(errors, 0.0)
    return math.sqrt((PRIOR_WEIGHT + 2.0 * float(good @ good)) / (PRIOR_WEIGHT + len(errors)))


def hyperparameter_samples(belief: Belief, count: int, rng: np.random.Generator) -> tuple[Belief, ...]:
    """Beliefs under samples of the hyperparameters: the belief's own, or for an exact GP by (3); else the belief alone."""
    model, fit = belief.model, belief.fit
    posterior = fit.posterior
    plain = isinstance(model, GP) and isinstance(posterior, Posterior) and not len(belief.gradient_columns)
    if belief.hyperparameter_samples or not plain:
        return belief.samples
    assert isinstance(model, GP)
    layout = layout_for(model, belief.encoding.groups, belief.encoding.fidelities, None)
    if len(fit.theta) != layout.size or len(posterior.y) != len(posterior.Z):
        return belief.samples
    rows = sample_by_rank(posterior.y, SAMPLE_ROWS)
    log_likelihood = likelihood_of(posterior.Z[rows], posterior.y[rows], None, layout, model.kernel)
    thetas = laplace_samples(log_likelihood, fit.theta, count, rng)
    known: dict[bytes, Belief] = {}
    for theta in thetas:
        if theta.tobytes() not in known:
            drawn = posterior_under(theta, layout, model.kernel, posterior.Z, posterior.y, None)
            known[theta.tobytes()] = replace(belief, objective=drawn)
    return tuple(known[theta.tobytes()] for theta in thetas) or belief.samples


def laplace_samples(log_likelihood: AnyLikelihood, mode: Array, count: int, rng: np.random.Generator) -> Array:
    """``count`` samples of the hyperparameters by (3); none where their posterior cannot be computed."""
    e = rng.standard_normal((PROPOSALS, len(mode)))
    thetas = log_likelihood.layout.clip(mode + e @ laplace_root(log_likelihood, mode).T)
    log_weight = np.array([log_likelihood.value(theta) for theta in thetas]) + 0.5 * (e * e).sum(axis=1)
    log_weight = np.where(np.isfinite(log_weight), log_weight, -math.inf)
    if not np.isfinite(log_weight).any():
        return thetas[:0]
    weight = np.exp(log_weight - log_weight.max())
    at = (np.arange(count) + rng.random()) / count  # systematic resampling
    return np.asarray(thetas[np.searchsorted(np.cumsum(weight) / weight.sum(), at).clip(0, PROPOSALS - 1)])
