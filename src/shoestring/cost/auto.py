"""The default cost model: a linear model while data are few, then a mixture of models, then the best of them.

The linear model has every hyperparameter. Its weights start from what their names say about cost (``name_priors``). A name may
mislead, so the same model without names is fitted too, and the two are weighted by their evidence. Where no name is known to
drive cost, there is only the second one.

The parts are the linear model, the linear model with a GP on its residuals, and a GP alone. Below MIN_COSTS_FOR_MIXTURE
observations only the linear one is used. Below MIN_COSTS_FOR_SELECTION the three are mixed, since a selection by a score of so
few data is mostly chance: on the HPOBench tables the mixture was ahead of selection by 6 to 11 % of RMSE at 8 to 20 evaluations,
and of every part at 10 or more. With more data the best part is selected, for speed.

Notation: part k predicts N(m_k, v_k) with weight w_k
    (1)  m = sum_k w_k m_k,    v = sum_k w_k (v_k + (m_k - m)^2)
         The mixture is taken as the normal with its mean and variance: where the parts disagree, the cost is less known and
         expected to be higher.
    m_i, v_i                                the leave-one-out mean and variance of log cost gamma_i, in closed form in every model
    (2)  c = (1 + sum e_i^2 / v_i) / (1 + n)    how far a model underestimates its variance, e_i = gamma_i - m_i
    (3)  score = sum_i log N(gamma_i; m_i, c v_i)
    (4)  weight of a model, proportional to prior * exp(score / SCORE_TEMPERATURE)
    (5)  weight of the names, proportional to NAMES_ODDS p(gamma | names), against p(gamma | no names); ``linear``, equation (7)

With c, models are compared by where they predict, and by how well they know where they are uncertain, not by how cautious their
priors are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..numerics import LOG_2PI, Array, single_threaded
from ..space.encoding import Encoding
from ..surrogate.gp import cold_start_due
from .base import CostModel, CostObservations, CostPosterior, WarmStart, theta_of
from .features import CostFeatures
from .linear import ALL_FEATURES_STRENGTH, LinearPosterior
from .log_gp import LogGPCost, with_residuals
from .name_priors import named_prior, names_say_something

MIN_COSTS_FOR_MIXTURE = 7  # observations
MIN_COSTS_FOR_SELECTION = 40  # observations
MIN_EXACT_COSTS_FOR_SCORE = 5  # observations: with as many exact costs, the score ignores censored ones
SCORE_TEMPERATURE = 5.0  # nats by which a model must be ahead for its weight to be e times the other's
PRIOR_WEIGHTS = (1.0, 3.0, 1.0)  # of the parts before any score: the one in the middle contains the other two
SELECTION_MARGIN = 3.0  # nats by which a more flexible model must be ahead to be selected: its own fit raises its score
MIN_WEIGHT = 0.02  # parts of a mixture with less weight are dropped

NAMES_ODDS = 3.0  # that names say what they seem to, before any cost

KINDS = ("LinearPosterior", "ResidualPosterior", "GPCostPosterior")  # classes of the parts' posteriors, from the simplest on


@dataclass(frozen=True)
class AutoCost(CostModel):
    """What ``cost_model="auto"`` is: linear while data are few, then a mixture of three models, then the one that predicts best.

    It starts from what names say: more rounds, trees, epochs or layers cost more. The costs that come in then decide.
    Leave it unless you know the form of the costs: then ``LinearCost`` or ``KnownCost`` learns from fewer trials.

    >>> study = st.Study(st.Space(depth=st.Int(1, 16)), method=st.EIpu(), cost_model=st.AutoCost())
    >>> for depth in (1, 2, 4, 8, 16):
    ...     _ = study.add({"depth": depth}, value=0.1, cost=3.0 * depth)
    >>> study.context.cost.name
    '98% linear with priors by name and 2% linear'
    """

    @single_threaded
    def fit(self, costs: CostObservations, encoding: Encoding, warm_start: WarmStart | None = None) -> CostPosterior:
        last = warm_start or {}
        if len(costs) < MIN_COSTS_FOR_MIXTURE:
            return mix(*linear_models(costs, encoding))
        kind = last.get("kind", "")
        if kind in KINDS and len(costs) > MIN_COSTS_FOR_SELECTION and not cold_start_due(len(costs), int(last["trials"])):
            return fit_parts((kind,), costs, encoding, {kind: last})[0]
        by_kind = {entry["kind"]: entry for entry in last.get("parts", ())} or {kind: last}
        fitted = fit_parts(KINDS, costs, encoding, by_kind)
        scores = np.array([score(posterior, costs) for posterior in fitted])
        if len(costs) < MIN_COSTS_FOR_SELECTION:
            return mix(fitted, np.log(PRIOR_WEIGHTS) + scores / SCORE_TEMPERATURE)  # (4)
        best = 0
        for i in range(1, len(fitted)):
            if scores[i] > scores[best] + SELECTION_MARGIN:
                best = i
        return fitted[best]


@dataclass(frozen=True)
class NamedLinearCost(CostModel):
    """The linear part of ``AutoCost`` alone, at any number of costs: for a cheap prediction that does not swing."""

    @single_threaded
    def fit(self, costs: CostObservations, encoding: Encoding, warm_start: WarmStart | None = None) -> CostPosterior:
        return mix(*linear_models(costs, encoding))


def linear_models(costs: CostObservations, encoding: Encoding) -> tuple[list[LinearPosterior], Array]:
    """The linear models with and without the prior by names, and the logarithms of their weights, equation (5)."""
    features = CostFeatures(encoding)
    F, everything = features(costs.U), list(range(len(encoding.space)))
    plain = LinearPosterior.given(features, everything, ALL_FEATURES_STRENGTH, F, costs.log_cost)
    if not names_say_something(features):
        return [plain], np.zeros(1)
    named = LinearPosterior.given(features, everything, named_prior(features), F, costs.log_cost, "linear with priors by name")
    return [named, plain], np.array([math.log(NAMES_ODDS) + named.ridge.log_evidence, plain.ridge.log_evidence])


def fit_parts(
    kinds: Sequence[str], costs: CostObservations, encoding: Encoding, last: Mapping[str, WarmStart]
) -> list[CostPosterior]:
    """Some of the three parts; ``last``: their warm starts. The linear model in the first two is the likelier one of its kind."""
    fitted: list[CostPosterior] = []
    if kinds != ("GPCostPosterior",):
        models, log_weights = linear_models(costs, encoding)
        linear = models[int(np.argmax(log_weights))]
    for kind in kinds:
        if kind == "GPCostPosterior":
            fitted.append(LogGPCost().fit(costs, encoding, last.get(kind)))
        elif kind == "ResidualPosterior":
            fitted.append(with_residuals(linear, costs, encoding, theta_of(last.get(kind), kind)))
        else:
            fitted.append(linear)
    return fitted


def score(posterior: CostPosterior, costs: CostObservations) -> float:
    """Leave-one-out log predictive density with corrected variances, equation (3); -inf if it is not finite."""
    mean, variance = posterior.leave_one_out()
    exact = ~costs.censored
    seen = exact if exact.sum() >= MIN_EXACT_COSTS_FOR_SCORE else np.ones(len(costs), dtype=bool)
    off = ((costs.log_cost - mean) ** 2 / variance)[seen]
    corrected = variance[seen] * (1.0 + off.sum()) / (1.0 + len(off))  # (2)
    value = float(log_density(costs.log_cost[seen], mean[seen], corrected).sum())
    return value if np.isfinite(value) else -np.inf


def log_density(gamma: Array, mean: Array, variance: Array) -> Array:
    """log N(gamma; mean, variance), elementwise."""
    return np.asarray(-0.5 * ((gamma - mean) ** 2 / variance + np.log(variance) + LOG_2PI))


def mix(posteriors: Sequence[CostPosterior], log_weights: Array) -> CostPosterior:
    """The mixture with these weights, or the part itself if only one has weight."""
    if not np.isfinite(log_weights).any():
        return posteriors[0]
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    order = [int(k) for k in np.argsort(-weights, kind="stable") if weights[k] >= MIN_WEIGHT]
    if len(order) == 1:
        return posteriors[order[0]]
    return Mixture(tuple(posteriors[k] for k in order), weights[order] / weights[order].sum())


@dataclass(frozen=True)
class Mixture(CostPosterior):
    """Posteriors and their weights, the largest weight first; equation (1)."""

    parts: tuple[CostPosterior, ...] = field()
    weights: Array
    name: str = field(init=False)

    def __post_init__(self) -> None:
        named = (f"{weight:.0%} {part.name}" for part, weight in zip(self.parts, self.weights, strict=True))
        object.__setattr__(self, "name", " and ".join(named))

    def log_cost(self, U: Array) -> tuple[Array, Array]:
        return self._moments([part.log_cost(U) for part in self.parts])

    def log_cost_with_gradient(self, U: Array) -> tuple[Array, Array, Array, Array]:
        found = [part.log_cost_with_gradient(U) for part in self.parts]
        mean, variance = self._moments([entry[:2] for entry in found])
        d_mean = sum(weight * entry[2] for weight, entry in zip(self.weights, found, strict=True))
        d_variance = sum(  # the derivative of m itself cancels, since sum_k w_k (m_k - m) = 0
            weight * (entry[3] + 2.0 * (entry[0] - mean)[:, None] * entry[2])
            for weight, entry in zip(self.weights, found, strict=True)
        )
        return mean, variance, np.asarray(d_mean), np.asarray(d_variance)

    def leave_one_out(self) -> tuple[Array, Array]:
        return self._moments([part.leave_one_out() for part in self.parts])

    def _moments(self, found: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
        """Equation (1) for the means and variances of the parts."""
        means, variances = np.array([entry[0] for entry in found]), np.array([entry[1] for entry in found])
        mean = self.weights @ means
        return mean, self.weights @ (variances + (means - mean) ** 2)
