"""The information that a noisy observation at x bears about the value of the minimum, given that value; in logarithms.

Sources: Wang and Jegelka 2017 (max-value entropy search); Takeno et al. 2020 (what is observed is y, not f).

Notation: f(x) ~ N(mu, s^2), y = f(x) + e, e ~ N(0, noise), m the value of the minimum, so that f(x) >= m.
    g = (mu - m) / s                                kappa = sqrt(noise) / s
    rho^2 = s^2 / (s^2 + noise) = 1 / (1 + kappa^2)         lambda = phi(g) / Phi(g)
    t = (y - mu) / sqrt(s^2 + noise)                p(t | f >= m) = phi(t) Phi(z) / Phi(g),   z = t / kappa + g / (kappa rho)

    I = H(y) - H(y | f >= m) = E[log Phi(z)] - log Phi(g) + rho^2 g lambda / 2,     E under p(t | f >= m)

The first two terms are the divergence of p from phi: not negative, and -log Phi(g) at most, which it is without noise. Written
as I = lambda A, A = rho^2 g / 2 + K, K = u - W, u = -log Phi(g) / lambda and W = -E[log Phi(z)] / lambda, all is of the size of
g or 1 / g however far x is from the minimum, where lambda is beyond any floating point number. W is an integral:

    kappa < 0.6 in z, with fixed nodes: W = kappa sum_j c_j exp(z_j kappa g / rho - kappa^2 (z_j^2 + g^2) / 2),
                c_j = -weight_j Phi(z_j) log Phi(z_j), Gauss-Legendre; it vanishes with kappa as it should
    otherwise   in t: W = -sum_j weight_j Phi(z_j) log Phi(z_j) / phi(g), Gauss-Hermite

Samples of the value of the minimum, from what is believed at many points.

Source: Wang and Jegelka 2017, section 3.1 (for maxima; here the signs are turned round).

Notation: points i with mean mu_i and deviation s_i, M the value of the minimum.
    "gumbel"    P(M > m) = prod_i Phi((mu_i - m) / s_i), as if the points were independent, made a Gumbel distribution
                P(M > m) = exp(-exp((m - a) / b)) by its quartiles: b = (m_1/4 - m_3/4) / (log log 4 - log log 4/3) and
                a = m_1/2 - b log log 2, where P(M > m_q) = q
    "sampled"   the lowest value of each joint draw of f at the points

Independence makes the minimum too low, a finite number of points makes it too high. No sample is left above the lowest mean:
the minimum is not worse than what can be had already.

Max-value entropy search: where does an observation say most about the value of the minimum?

    MES(x) = H(y) - E_m[ H(y | f(x) >= m) ]          (``max_value``), m drawn as in ``minimum``

Searched by its logarithm; log P(does not fail) is added: an evaluation that fails says nothing of the minimum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import ClassVar, Literal

import numpy as np
from scipy.special import erfcx, log_ndtr

from ..errors import MethodError
from ..numerics import LOG_2PI, Array, log_Phi
from ..surrogate.belief import Belief
from ..surrogate.posterior import Posterior
from .base import InformationAcquisition
from .entropy_search import whole_number
from .improvement import improvement_surface, negative_mean_surface
from .optimize.optimizer import AcquisitionOptimizer, OptimizerOptions, Surface

BELOW, ABOVE = -7.0, 6.5  # beyond these Phi log Phi is nothing
NODES, FEW = 20, 10
SMALL, LARGE = 0.6, 1.5  # the first rule is the better one below, and a few nodes of the second are enough above
FAR = 5.0  # from here on -log Phi(g) = Phi(-g) to seven digits
FARTHEST = 1e6  # g is held to this: its square stays finite
ROOT_HALF_PI, ROOT_HALF = math.sqrt(0.5 * math.pi), math.sqrt(0.5)


@cache
def legendre() -> tuple[Array, Array]:
    """z_j, and the logarithms of c_j."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    z = 0.5 * (ABOVE - BELOW) * nodes + 0.5 * (ABOVE + BELOW)
    value = log_ndtr(z)
    return z, np.log(0.5 * (ABOVE - BELOW) * weights) + value + np.log(-value)


@cache
def hermite(count: int) -> tuple[Array, Array]:
    """t_j, and the logarithms of the weights of the standard normal."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    return nodes, np.log(weights) - 0.5 * LOG_2PI


@dataclass(frozen=True)
class Integral:
    """W and its derivatives, elementwise."""

    value: Array
    by_g: Array
    by_kappa: Array


def over_z(g: Array, kappa: Array, gradient: bool) -> Integral:
    """W where the noise is small."""
    z, log_c = legendre()
    root = np.sqrt(1.0 + kappa * kappa)
    by_power = np.stack([kappa * root * g, -0.5 * kappa * kappa, -0.5 * (kappa * g) ** 2, np.ones_like(g)], axis=-1)
    terms = by_power @ np.stack([z, z * z, np.ones_like(z), log_c])
    np.exp(terms, out=terms)
    moments = terms @ np.stack([np.ones_like(z), z, z * z], axis=1)  # one product: this is where the time goes
    W = kappa * moments[..., 0]
    if not gradient:
        return Integral(W, W, W)
    first, second = moments[..., 1], moments[..., 2]
    by_g = kappa * kappa * (root * first - W * g)
    by_kappa = W / kappa + kappa * ((g * (1.0 + 2.0 * kappa * kappa) / root) * first - kappa * second) - kappa * g * g * W
    return Integral(W, by_g, by_kappa)


def over_t(g: Array, kappa: Array, gradient: bool, count: int = NODES) -> Integral:
    """W where the noise is not small."""
    t, log_w = hermite(count)
    root = np.sqrt(1.0 + kappa * kappa)
    z = (t + (g * root)[..., None]) / kappa[..., None]
    value = log_ndtr(z)
    log_minus = np.log(np.maximum(-value, 1e-300))
    base = log_w + (0.5 * g * g + 0.5 * LOG_2PI)[..., None]
    W = np.exp(np.minimum(base + value + log_minus, 300.0)).sum(axis=-1)
    if not gradient:
        return Integral(W, W, W)
    by_z = -np.exp(np.minimum(base - 0.5 * z * z - 0.5 * LOG_2PI, 300.0)) * (value + 1.0)
    total = by_z.sum(axis=-1)
    by_kappa = -((by_z @ t) + total * g / root) / (kappa * kappa)
    return Integral(W, total * root / kappa + g * W, by_kappa)


def log_information(mean: Array, deviation: Array, noise: float, minima: Array) -> Array:
    """log of the mean of I over ``minima``, for each x."""
    return _log_information(mean, deviation, noise, minima, False)[0]


def log_information_with_gradient(mean: Array, deviation: Array, noise: float, minima: Array) -> tuple[Array, Array, Array]:
    """The same, and its derivatives with respect to mean and deviation."""
    return _log_information(mean, deviation, noise, minima, True)


def _log_information(mean: Array, deviation: Array, noise: float, minima: Array, gradient: bool) -> tuple[Array, Array, Array]:
    free = (mean[:, None] - minima) / deviation[:, None]
    g = np.clip(free, -FARTHEST, FARTHEST)
    kappa = np.maximum(math.sqrt(noise) / deviation, 1e-12)
    rho2 = 1.0 / (1.0 + kappa * kappa)
    value, lam = log_Phi(g)
    log_lam = -0.5 * g * g - 0.5 * LOG_2PI - value
    near = np.minimum(g, FAR)
    near_value, near_lam = log_Phi(near)
    u = np.where(g > FAR, ROOT_HALF_PI * erfcx(np.maximum(g, FAR) * ROOT_HALF), -near_value / near_lam)

    W = _integral(g, kappa, gradient)
    K = u - W.value
    kept = K > 0.0
    K = np.where(kept, K, 0.0)  # far out the nodes no longer reach where the integrand is, and K is next to nothing
    A = np.maximum(0.5 * rho2[:, None] * g + K, 1e-300)
    top = log_lam.max(axis=1, keepdims=True)
    share = np.exp(log_lam - top) * A
    total = share.sum(axis=1)
    result = top[:, 0] + np.log(total / len(minima))
    if not gradient:
        return result, result, result

    by_g = 0.5 * rho2[:, None] + np.where(kept, u * (g + lam) - 1.0 - W.by_g, 0.0)
    by_kappa = -(rho2 * rho2 * kappa)[:, None] * g - np.where(kept, W.by_kappa, 0.0)
    weight = share / total[:, None]
    inside = free == g
    log_by_g = np.where(inside, weight * (by_g / A - (g + lam)), 0.0)
    log_by_kappa = (weight * by_kappa / A).sum(axis=1)
    by_mean = log_by_g.sum(axis=1) / deviation
    by_deviation = -((log_by_g * g).sum(axis=1) + log_by_kappa * kappa) / deviation
    return result, by_mean, by_deviation


def _integral(g: Array, kappa: Array, gradient: bool) -> Integral:
    """W of each g (N x M) under kappa (N), by the rule that suits it."""
    columns = np.broadcast_to(kappa[:, None], g.shape)
    both = Integral(np.empty_like(g), np.empty_like(g), np.empty_like(g))
    many = partial(over_t, count=NODES)
    few = partial(over_t, count=FEW)
    for rule, rows in ((over_z, kappa < SMALL), (many, (kappa >= SMALL) & (kappa < LARGE)), (few, kappa >= LARGE)):
        if rows.any():
            part = rule(g[rows], columns[rows], gradient)
            both.value[rows], both.by_g[rows], both.by_kappa[rows] = part.value, part.by_g, part.by_kappa
    return both


JOINT = 256  # points of a joint draw
HALVINGS = 30
REACH = 8.0  # deviations below the lowest value within which the quartiles are looked for
QUARTILES = np.array([0.25, 0.5, 0.75])


def minimum_values(posterior: Posterior, Z: Array, how: str, count: int, rng: np.random.Generator) -> Array:
    """``count`` samples of the lowest value of f at the points with features Z."""
    mean, variance = posterior.mean_and_variance(Z)
    deviation = np.sqrt(variance)
    if how == "sampled":
        low = np.argsort(mean - 2.0 * deviation, kind="stable")[:JOINT]
        values = posterior.sample(Z[low], count, rng).min(axis=1)
    else:
        a, b = gumbel_fit(mean, deviation)
        # one draw from each of ``count`` equally probable strata, all shifted by the same random share of one
        above = (np.arange(count) + rng.random()) / count
        values = a + b * np.log(-np.log(np.clip(above, 1e-12, 1.0 - 1e-12)))
    return np.asarray(np.minimum(values, mean.min()))


def gumbel_fit(mean: Array, deviation: Array) -> tuple[float, float]:
    """a and b."""
    low = np.full(3, float((mean - REACH * deviation).min()))  # here M > m is sure, and above the lowest mean it is not likely
    high = np.full(3, float((mean + REACH * deviation).min()))
    wanted = np.log(QUARTILES)
    near = mean - REACH * deviation < high[0]  # the others are above for sure
    mean, deviation = mean[near], deviation[near]
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        sure = log_ndtr((mean - middle[:, None]) / deviation).sum(axis=1) > wanted
        low, high = np.where(sure, middle, low), np.where(sure, high, middle)
    quarter, half, three = 0.5 * (low + high)
    b = max((quarter - three) / (math.log(math.log(4.0)) - math.log(math.log(4.0 / 3.0))), 1e-12)
    return float(half - b * math.log(math.log(2.0))), float(b)


HOW = ("gumbel", "sampled")
LOOK = OptimizerOptions(raw_samples=256, local_samples=128, restarts=3, rounds=1)  # for the minimum of the mean, and for points it may lie at
EFFORT = OptimizerOptions(raw_samples=384, local_samples=192)


@dataclass(frozen=True)
class MES(InformationAcquisition):
    """Max-value entropy search. ``samples`` values of the minimum, by a Gumbel fit or by joint draws (``how="sampled"``)."""

    samples: int = 16
    how: Literal["gumbel", "sampled"] = "gumbel"
    options: ClassVar[OptimizerOptions] = EFFORT

    def __post_init__(self) -> None:
        whole_number("MES", "samples", self.samples, 1)
        if self.how not in HOW:
            raise MethodError(f'MES: how must be "gumbel" or "sampled", not {self.how!r}')

    def log_information(self, belief: Belief, optimizer: AcquisitionOptimizer) -> Surface:
        """log MES over points, given samples of the minimum."""
        m, noise = self.minima(belief, optimizer), belief.objective.noise

        def score(mean: Array, deviation: Array) -> tuple[Array, Array, Array]:
            return log_information_with_gradient(mean, deviation, noise, m)

        return improvement_surface(belief, score)

    def minima(self, belief: Belief, optimizer: AcquisitionOptimizer) -> Array:
        """Samples of the value of the minimum over all points that a search of the lowest mean comes by, and those tried."""
        falling = negative_mean_surface(belief)
        met = replace(optimizer, visited=optimizer.visited[:0], options=LOOK).maximize(falling).U
        Z = belief.encoding.features(np.vstack([met, belief.evaluated]))
        return minimum_values(belief.objective, Z, self.how, self.samples, optimizer.rng)
