"""Expected improvement, probability of improvement and the lower confidence bound, in closed form.

Sources: Jones, Schonlau and Welch 1998 (EI); Ament et al. 2023 (log EI).

Notation
    f(x) ~ N(mu, s^2)       the posterior of the objective, which is minimised
    y*                      the incumbent: the value to improve on
    z = (y* - mu) / s       h(z) = phi(z) + z Phi(z)
    M(z) = Phi(z) / phi(z)  Mills' ratio, sqrt(pi/2) erfcx(-z / sqrt 2)

    EI = s h(z)             d log EI / d mu = -Phi / (s h)          d log EI / d s = phi / (s h)
    PI = Phi(z)             d log PI / d z  = phi / Phi
    LCB = mu - sqrt(beta) s

In the user's units, y the inverse of the output transform of t (``log_improvement_in_units``):

    EI_y = E[max(y(y*) - y(f), 0)] = integral of y'(t) Phi((t - mu) / s) dt up to y*
         = s integral over q >= 0 of y'(y* - s q) Phi(z - q) dq

EI is maximised in the model's units. In the user's units the trials are as good and a suggestion takes a third longer: on the 15
tuning problems of ``benchmarks.regret``, 14 seeds each, the regret after 20 and 40 trials differs by -.003 (s.e. .013) and +.004
(.010). Where a share or an amount of EI is promised or shown (CEI, the Pareto front, the gain of a suggestion), it is EI_y.

EI and PI are maximised by their logarithms. EI itself underflows to zero a few standard deviations from the incumbent and has no
gradient there; its logarithm has one everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

import numpy as np

from .._validation import number_between
from ..numerics import LOG_2PI, Array, log_mean, log_Phi, special
from ..surrogate.belief import Belief
from ..surrogate.output_transform import OutputTransform
from ..surrogate.posterior import StackedPosteriors
from .base import Acquisition, average
from .optimize.optimizer import Surface

QUADRATURE_NODES = 24  # for EI in the user's units
SERIES_FROM = 1e6  # z^2 from which on 1 + z M(z) is taken from its series: the difference has lost too many digits
_ROOT_HALF = math.sqrt(0.5)
_ROOT_HALF_PI = math.sqrt(math.pi / 2)
_ROOT_INVERSE_2PI = 1.0 / math.sqrt(2 * math.pi)

Score = Callable[[Array, Array], tuple[Array, Array, Array]]  # (mean, deviation) -> value, d/d mean, d/d deviation


@dataclass(frozen=True)
class LogEI(Acquisition):
    """Expected improvement, maximised by its logarithm: how much better than the best value so far a trial is expected to be.

    What ``method="auto"`` uses where nothing else is special. Choose it yourself to leave costs out of account.

    >>> space = st.Space(x=st.Float(0, 1))
    >>> st.minimize(lambda c: (c["x"] - 0.3) ** 2, space, 9, method=st.LogEI()).best.value < 0.05
    True
    """

    cheap_to_average: ClassVar[bool] = True

    def surface(self, belief: Belief, rng: np.random.Generator) -> Surface:
        return improvement_surface(belief, lambda mean, deviation: log_expected_improvement(mean, deviation, belief.incumbent))

    def averaged_surface(self, belief: Belief, rng: np.random.Generator) -> Surface:
        stacked = StackedPosteriors.of([each.objective for each in belief.samples]) if belief.hyperparameter_samples else None
        return super().averaged_surface(belief, rng) if stacked is None else stacked_log_ei(belief, stacked)


@dataclass(frozen=True)
class EI(LogEI):
    """Expected improvement under its usual name: it is maximised by its logarithm, so the suggestions are those of ``LogEI``.

    Use either; with costs that differ, see ``EIpu`` and ``CEI``.

    >>> space = st.Space(x=st.Float(0, 1))
    >>> st.minimize(lambda c: (c["x"] - 0.3) ** 2, space, 9, method=st.EI()).best.value < 0.05
    True
    """


@dataclass(frozen=True)
class PI(Acquisition):
    """Probability of improvement: how likely a trial is to be better than the best value so far, by however little.

    It stays nearer to known good configs than ``EI``. Use it for comparisons with other work; ``EI`` is the better default.

    margin  improvement that counts, in standard deviations of the observed values

    >>> space = st.Space(x=st.Float(0, 1))
    >>> st.minimize(lambda c: (c["x"] - 0.3) ** 2, space, 9, method=st.PI(margin=0.05)).best.value < 0.05
    True
    """

    cheap_to_average: ClassVar[bool] = True
    margin: float = 0.01

    def __post_init__(self) -> None:
        object.__setattr__(self, "margin", number_between(self.margin, "PI: margin", 0))

    def surface(self, belief: Belief, rng: np.random.Generator) -> Surface:
        best = belief.incumbent - self.margin
        return improvement_surface(belief, lambda mean, deviation: log_probability_of_improvement(mean, deviation, best))


@dataclass(frozen=True)
class LCB(Acquisition):
    """Lower confidence bound mu - sqrt(beta) s: the best value that a config may plausibly have.

    Use it where you want to set by hand how much the search explores; GP-UCB is its name for maximisation.

    beta  the weight of uncertainty: 0 takes the best prediction, 4 is two standard deviations

    >>> space = st.Space(x=st.Float(0, 1))
    >>> st.minimize(lambda c: (c["x"] - 0.3) ** 2, space, 9, method=st.LCB(beta=4)).best.value < 0.05
    True
    """

    cheap_to_average: ClassVar[bool] = True
    beta: float = 4.0
    log_space: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "beta", number_between(self.beta, "LCB: beta", 0))

    def surface(self, belief: Belief, rng: np.random.Generator) -> Surface:
        return improvement_surface(belief, lambda mean, deviation: negative_lower_bound(mean, deviation, math.sqrt(self.beta)))


def improvement_surface(belief: Belief, score: Score) -> Surface:
    """A function of posterior mean and deviation as a surface over points.

    Where trials have failed, the logarithm of the probability of success is added.
    """
    posterior, feasibility, encoding = belief.objective, belief.feasibility, belief.encoding

    def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
        Z = U if encoding.identity else encoding.features(U)
        if not gradient:
            mean, variance = posterior.mean_and_variance(Z)
            total = score(mean, np.sqrt(variance))[0]
            return (total if feasibility is None else total + feasibility.log_probability(Z)), None
        mean, variance, d_mean, d_variance = posterior.with_gradients(Z)
        deviation = np.sqrt(variance)
        total, by_mean, by_deviation = score(mean, deviation)
        slope = by_mean[:, None] * d_mean + (by_deviation / (2.0 * deviation))[:, None] * d_variance
        if feasibility is not None:
            chance, d_chance = feasibility.log_probability_with_gradient(Z)
            total, slope = total + chance, slope + d_chance
        return total, slope if encoding.identity else encoding.pull_back(U, slope)

    return value


def log_ei_in_units(belief: Belief) -> Surface:
    """log EI in the user's units as a surface, averaged over the hyperparameter samples where there are several."""

    def of(one: Belief) -> Surface:
        return improvement_surface(
            one, lambda mean, deviation: log_improvement_in_units(one.output, mean, deviation, one.incumbent)
        )

    return average([of(each) for each in belief.samples], log_space=True)


def stacked_log_ei(belief: Belief, posteriors: StackedPosteriors) -> Surface:
    """The logarithm of EI averaged over the hyperparameter samples, all of them evaluated together."""
    feasibility, encoding = belief.feasibility, belief.encoding
    best = np.array([each.incumbent for each in belief.samples])[:, None]

    def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
        Z = U if encoding.identity else encoding.features(U)
        if not gradient:
            mean, variance = posteriors.mean_and_variance(Z)
            total, _ = log_mean(log_expected_improvement(mean, np.sqrt(variance), best)[0])
            return (total if feasibility is None else total + feasibility.log_probability(Z)), None
        mean, variance, d_mean, d_variance = posteriors.with_gradients(Z)
        deviation = np.sqrt(variance)
        each, by_mean, by_deviation = log_expected_improvement(mean, deviation, best)
        total, shares = log_mean(each)
        slope = np.einsum("sm,smp->mp", shares * by_mean, d_mean)
        slope += np.einsum("sm,smp->mp", shares * by_deviation / (2.0 * deviation), d_variance)
        if feasibility is not None:
            chance, d_chance = feasibility.log_probability_with_gradient(Z)
            total, slope = total + chance, slope + d_chance
        return total, slope if encoding.identity else encoding.pull_back(U, slope)

    return value


def negative_mean_surface(belief: Belief) -> Surface:
    """Minus the posterior mean; the probability of success is not counted."""
    alone = replace(belief, feasibility=None)
    return improvement_surface(alone, lambda mean, deviation: negative_lower_bound(mean, deviation, 0.0))


def log_expected_improvement(mean: Array, deviation: Array, best: float | Array) -> tuple[Array, Array, Array]:
    """log EI and its derivatives with respect to mean and deviation."""
    z = (best - mean) / deviation
    value, slope = log_h(z)
    slope = slope / deviation
    return np.log(deviation) + value, -slope, 1.0 / deviation - z * slope


def log_improvement_in_units(output: OutputTransform, mean: Array, deviation: Array, best: float) -> tuple[Array, Array, Array]:
    """log EI in the user's units and its derivatives with respect to mean and deviation, to about 1e-7 by quadrature over q."""
    if output.kind == "standard":
        value, by_mean, by_deviation = log_expected_improvement(mean, deviation, best)
        return value + math.log(output.scale), by_mean, by_deviation
    nodes, weights = _improvement_nodes()
    z = (best - mean) / deviation
    # Far below the incumbent the integrand decays like exp(z q), else like the normal density beyond z.
    reach = np.where(z > -1.0, np.maximum(z, 0.0) + 6.0, 14.0 / np.maximum(-z, 1.0))
    q = reach[:, None] * nodes
    u = z[:, None] - q
    log_chance = special.log_ndtr(u)
    parts = log_chance + output.log_slope(best - deviation[:, None] * q)
    top = parts.max(axis=1, keepdims=True)
    parts = weights * np.exp(parts - top)
    total = parts.sum(axis=1)
    ratio = parts * np.exp(-0.5 * (u * u + LOG_2PI) - log_chance)  # times phi / Phi
    scale = total * deviation
    value = np.log(deviation * reach * total) + top[:, 0]
    return value, -ratio.sum(axis=1) / scale, -np.einsum("ij,ij->i", ratio, u) / scale


@cache
def _improvement_nodes() -> tuple[Array, Array]:
    """Gauss-Legendre nodes and weights of [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(QUADRATURE_NODES)
    return 0.5 * (nodes + 1.0), 0.5 * weights


def log_probability_of_improvement(mean: Array, deviation: Array, best: float) -> tuple[Array, Array, Array]:
    """log PI and its derivatives with respect to mean and deviation."""
    z = (best - mean) / deviation
    value, slope = log_Phi(z)
    slope = slope / deviation
    return value, -slope, -z * slope


def negative_lower_bound(mean: Array, deviation: Array, root_beta: float) -> tuple[Array, Array, Array]:
    """-LCB and its derivatives with respect to mean and deviation."""
    return root_beta * deviation - mean, np.full_like(mean, -1.0), np.full_like(mean, root_beta)


def log_h(z: Array) -> tuple[Array, Array]:
    """log h(z) and its derivative Phi(z) / h(z), finite for every |z| up to 1e150 (Ament et al. 2023, equation 9).

    Above -1 by the definition. Below, h = phi (1 + z M). The difference 1 + z M tends to 1 / z^2 - 3 / z^4, and is taken from
    this series where it loses digits.
    """
    z = np.asarray(z, dtype=float)
    near = np.maximum(z, -1.0)
    cumulative = special.ndtr(near)
    h = np.exp(-0.5 * near * near) * _ROOT_INVERSE_2PI + near * cumulative
    far = np.minimum(z, -1.0)
    mills = _ROOT_HALF_PI * special.erfcx(far * -_ROOT_HALF)
    square = far * far
    rest = np.where(square > SERIES_FROM, (1.0 - 3.0 / square) / square, 1.0 + far * mills)
    below = z < -1.0
    value = np.where(below, -0.5 * square - 0.5 * LOG_2PI + np.log(rest), np.log(h))
    return value, np.where(below, mills / rest, cumulative / h)
