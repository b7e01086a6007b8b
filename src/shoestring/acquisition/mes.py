"""Max-value entropy search (MES): the mutual information of a noisy observation and the value of the minimum, in log space.

Sources: Wang and Jegelka 2017 (for maxima; here the signs are turned round); Takeno et al. 2020 (y is observed, not f).

Notation
    f(x) ~ N(mu, s^2), y = f(x) + e, e ~ N(0, noise)        m   the value of the minimum, so that f(x) >= m
    g = (mu - m) / s                                        kappa = sqrt(noise) / s
    rho^2 = s^2 / (s^2 + noise) = 1 / (1 + kappa^2)         lambda = phi(g) / Phi(g)
    t = (y - mu) / sqrt(s^2 + noise)                        z = t / kappa + g / (kappa rho)
    p(t | f >= m) = phi(t) Phi(z) / Phi(g)

    MES(x) = E_m[ I ],   I = H(y) - H(y | f >= m)
    I = E[log Phi(z)] - log Phi(g) + rho^2 g lambda / 2,    E under p(t | f >= m)                                            (1)

Without noise E[log Phi(z)] = 0, and (1) is the formula of Wang and Jegelka. The first two terms are the divergence of p from phi:
not negative, and at most -log Phi(g). For x far from the minimum lambda is smaller than any floating-point number, so I is
written as a product of lambda and a factor of the size of g or 1 / g:

    I = lambda A,   A = rho^2 g / 2 + K,   K = u - W,   u = -log Phi(g) / lambda,   W = -E[log Phi(z)] / lambda             (2)

W is an integral, by Gaussian quadrature:

    kappa < SMALL_KAPPA     in z, with fixed nodes (Gauss-Legendre); it vanishes with kappa as it should
                            W = kappa sum_j c_j exp(z_j kappa g / rho - kappa^2 (z_j^2 + g^2) / 2),
                            c_j = -weight_j Phi(z_j) log Phi(z_j)                                                            (3)
    otherwise               in t (Gauss-Hermite): W = -sum_j weight_j Phi(z_j) log Phi(z_j) / phi(g)                         (4)

Samples of m, given points i with posterior mean mu_i and deviation s_i:

    "gumbel"    P(M > m) = prod_i Phi((mu_i - m) / s_i), as if the points were independent (Wang and Jegelka, section 3.1),
                approximated by a Gumbel distribution P(M > m) = exp(-exp((m - a) / b)) with the same quartiles m_q,
                P(M > m_q) = q:   b = (m_1/4 - m_3/4) / (log log 4 - log log 4/3),   a = m_1/2 - b log log 2                 (5)
    "sampled"   the lowest value of each joint draw of f at the points

Independence makes the minimum too low; a finite number of points makes it too high. Samples above the lowest posterior mean are
set to it: the minimum is no higher than the lowest mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import ClassVar, Literal

import numpy as np

from .._validation import whole_number
from ..errors import MethodError
from ..numerics import LOG_2PI, Array, log_Phi, special
from ..surrogate.belief import Belief
from ..surrogate.posterior import Posterior
from .base import InformationAcquisition
from .improvement import improvement_surface, negative_mean_surface
from .optimize.optimizer import AcquisitionOptimizer, OptimizerOptions, Surface

MES_OPTIMIZER_OPTIONS = OptimizerOptions(raw_samples=384, local_samples=192)
MEAN_SEARCH_OPTIONS = OptimizerOptions(raw_samples=256, local_samples=128, restarts=3, rounds=1)
SAMPLERS = ("gumbel", "sampled")
MAX_JOINT_POINTS = 256  # of a joint draw
QUARTILES = np.array([0.25, 0.5, 0.75])
BISECTION_STEPS = 30
BISECTION_RANGE = 8.0  # deviations around a mean within which the quartiles lie
MIN_Z, MAX_Z = -7.0, 6.5  # beyond these Phi(z) log Phi(z) is negligible
N_NODES = 20  # of a quadrature rule
N_NODES_LARGE_NOISE = 10
SMALL_KAPPA = 0.6  # the rule in z is the more accurate one below
LARGE_KAPPA = 1.5  # N_NODES_LARGE_NOISE are enough above
FAR_G = 5.0  # above, -log Phi(g) = Phi(-g) to seven digits
MAX_G = 1e6  # |g| is clipped to this, so that its square stays finite
MAX_EXPONENT = 300.0
ROOT_HALF_PI, ROOT_HALF = math.sqrt(0.5 * math.pi), math.sqrt(0.5)


@dataclass(frozen=True)
class MES(InformationAcquisition):
    """Max-value entropy search: what an observation tells about the value of the minimum.

    The entropy search to start with: it is the fastest, and its trials are good ones too. ``ES`` and ``PES`` ask about the
    location.

    samples  values of the minimum
    how      where they come from: "sampled" (joint draws of the posterior) or "gumbel" (a Gumbel fit, a little faster)

    >>> space = st.Space(x=st.Float(0, 1))
    >>> st.minimize(lambda c: (c["x"] - 0.3) ** 2, space, 9, method=st.MES()).best.value < 0.05
    True
    """

    samples: int = 16
    how: Literal["gumbel", "sampled"] = "sampled"
    options: ClassVar[OptimizerOptions] = MES_OPTIMIZER_OPTIONS

    def __post_init__(self) -> None:
        object.__setattr__(self, "samples", whole_number(self.samples, "MES: samples", 1))
        if self.how not in SAMPLERS:
            raise MethodError(f'MES: how must be "gumbel" or "sampled", not {self.how!r}')

    def log_information(self, belief: Belief, optimizer: AcquisitionOptimizer) -> Surface:
        """log MES over points, given samples of the minimum; the logarithm of the probability of success is added."""
        minima, noise = self.minimum_samples(belief, optimizer), belief.objective.noise

        def score(mean: Array, deviation: Array) -> tuple[Array, Array, Array]:
            return log_mes_with_gradient(mean, deviation, noise, minima)

        return improvement_surface(belief, score)

    def minimum_samples(self, belief: Belief, optimizer: AcquisitionOptimizer) -> Array:
        """Samples of the value of the minimum over the evaluated points and all points of a search for the lowest mean."""
        negative_mean = negative_mean_surface(belief)
        found = replace(optimizer, visited=optimizer.visited[:0], options=MEAN_SEARCH_OPTIONS).maximize(negative_mean).U
        Z = belief.encoding.features(np.vstack([found, belief.evaluated]))
        return sample_minimum(belief.objective, Z, self.how, self.samples, optimizer.rng)


def log_mes(mean: Array, deviation: Array, noise: float, minima: Array) -> Array:
    """log of the mean of I over ``minima``, for each x."""
    return _log_mes(mean, deviation, noise, minima, False)[0]


def log_mes_with_gradient(mean: Array, deviation: Array, noise: float, minima: Array) -> tuple[Array, Array, Array]:
    """The same, and its derivatives with respect to mean and deviation."""
    return _log_mes(mean, deviation, noise, minima, True)


def _log_mes(mean: Array, deviation: Array, noise: float, minima: Array, gradient: bool) -> tuple[Array, Array, Array]:
    unclipped = (mean[:, None] - minima) / deviation[:, None]
    g = np.clip(unclipped, -MAX_G, MAX_G)
    kappa = np.maximum(math.sqrt(noise) / deviation, 1e-12)
    rho2 = 1.0 / (1.0 + kappa * kappa)
    value, lam = log_Phi(g)
    log_lam = -0.5 * g * g - 0.5 * LOG_2PI - value
    near = np.minimum(g, FAR_G)
    near_value, near_lam = log_Phi(near)
    u = np.where(g > FAR_G, ROOT_HALF_PI * special.erfcx(np.maximum(g, FAR_G) * ROOT_HALF), -near_value / near_lam)

    W = integral(g, kappa, gradient)
    K = u - W.value
    kept = K > 0.0
    K = np.where(kept, K, 0.0)  # far out the nodes no longer reach where the integrand is, and K is negligible
    A = np.maximum(0.5 * rho2[:, None] * g + K, 1e-300)  # (2)
    top = log_lam.max(axis=1, keepdims=True)
    share = np.exp(log_lam - top) * A
    total = share.sum(axis=1)
    result = top[:, 0] + np.log(total / len(minima))
    if not gradient:
        return result, result, result

    by_g = 0.5 * rho2[:, None] + np.where(kept, u * (g + lam) - 1.0 - W.by_g, 0.0)
    by_kappa = -(rho2 * rho2 * kappa)[:, None] * g - np.where(kept, W.by_kappa, 0.0)
    weight = share / total[:, None]
    inside = unclipped == g
    log_by_g = np.where(inside, weight * (by_g / A - (g + lam)), 0.0)
    log_by_kappa = (weight * by_kappa / A).sum(axis=1)
    by_mean = log_by_g.sum(axis=1) / deviation
    by_deviation = -((log_by_g * g).sum(axis=1) + log_by_kappa * kappa) / deviation
    return result, by_mean, by_deviation


@dataclass(frozen=True)
class Integral:
    """W and its derivatives, elementwise."""

    value: Array
    by_g: Array
    by_kappa: Array


def integral(g: Array, kappa: Array, gradient: bool) -> Integral:
    """W of each g (N x M) under kappa (N), each row by the rule for its kappa."""
    columns = np.broadcast_to(kappa[:, None], g.shape)
    total = Integral(np.empty_like(g), np.empty_like(g), np.empty_like(g))
    medium_noise = partial(integral_over_t, count=N_NODES)
    large_noise = partial(integral_over_t, count=N_NODES_LARGE_NOISE)
    rules = (
        (integral_over_z, kappa < SMALL_KAPPA),
        (medium_noise, (kappa >= SMALL_KAPPA) & (kappa < LARGE_KAPPA)),
        (large_noise, kappa >= LARGE_KAPPA),
    )
    for rule, rows in rules:
        if rows.any():
            part = rule(g[rows], columns[rows], gradient)
            total.value[rows], total.by_g[rows], total.by_kappa[rows] = part.value, part.by_g, part.by_kappa
    return total


def integral_over_z(g: Array, kappa: Array, gradient: bool) -> Integral:
    """W where the noise is small, equation (3)."""
    z, log_c = legendre_nodes()
    root = np.sqrt(1.0 + kappa * kappa)
    by_power = np.stack([kappa * root * g, -0.5 * kappa * kappa, -0.5 * (kappa * g) ** 2, np.ones_like(g)], axis=-1)
    terms = by_power @ np.stack([z, z * z, np.ones_like(z), log_c])
    np.exp(terms, out=terms)
    moments = terms @ np.stack([np.ones_like(z), z, z * z], axis=1)  # one product: most of the time is spent here
    W = kappa * moments[..., 0]
    if not gradient:
        return Integral(W, W, W)
    first, second = moments[..., 1], moments[..., 2]
    by_g = kappa * kappa * (root * first - W * g)
    by_kappa = W / kappa + kappa * ((g * (1.0 + 2.0 * kappa * kappa) / root) * first - kappa * second) - kappa * g * g * W
    return Integral(W, by_g, by_kappa)


def integral_over_t(g: Array, kappa: Array, gradient: bool, count: int = N_NODES) -> Integral:
    """W where the noise is not small, equation (4)."""
    t, log_w = hermite_nodes(count)
    root = np.sqrt(1.0 + kappa * kappa)
    z = (t + (g * root)[..., None]) / kappa[..., None]
    value = special.log_ndtr(z)
    log_minus = np.log(np.maximum(-value, 1e-300))
    base = log_w + (0.5 * g * g + 0.5 * LOG_2PI)[..., None]
    W = np.exp(np.minimum(base + value + log_minus, MAX_EXPONENT)).sum(axis=-1)
    if not gradient:
        return Integral(W, W, W)
    by_z = -np.exp(np.minimum(base - 0.5 * z * z - 0.5 * LOG_2PI, MAX_EXPONENT)) * (value + 1.0)
    total = by_z.sum(axis=-1)
    by_kappa = -((by_z @ t) + total * g / root) / (kappa * kappa)
    return Integral(W, total * root / kappa + g * W, by_kappa)


@cache
def legendre_nodes() -> tuple[Array, Array]:
    """z_j, and the logarithms of c_j."""
    nodes, weights = np.polynomial.legendre.leggauss(N_NODES)
    z = 0.5 * (MAX_Z - MIN_Z) * nodes + 0.5 * (MAX_Z + MIN_Z)
    value = special.log_ndtr(z)
    return z, np.log(0.5 * (MAX_Z - MIN_Z) * weights) + value + np.log(-value)


@cache
def hermite_nodes(count: int) -> tuple[Array, Array]:
    """t_j, and the logarithms of the weights of the standard normal."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    return nodes, np.log(weights) - 0.5 * LOG_2PI


def sample_minimum(posterior: Posterior, Z: Array, how: str, count: int, rng: np.random.Generator) -> Array:
    """``count`` samples of the lowest value of f at the points with features Z."""
    mean, variance = posterior.mean_and_variance(Z)
    deviation = np.sqrt(variance)
    if how == "sampled":
        low = np.argsort(mean - 2.0 * deviation, kind="stable")[:MAX_JOINT_POINTS]
        values = posterior.sample(Z[low], count, rng).min(axis=1)
    else:
        a, b = gumbel_fit(mean, deviation)
        # stratified: one draw from each of ``count`` equally probable strata, all at the same random place of theirs
        above = (np.arange(count) + rng.random()) / count
        values = a + b * np.log(-np.log(np.clip(above, 1e-12, 1.0 - 1e-12)))
    return np.asarray(np.minimum(values, mean.min()))


def gumbel_fit(mean: Array, deviation: Array) -> tuple[float, float]:
    """a and b of equation (5), the quartiles by bisection."""
    low = np.full(3, float((mean - BISECTION_RANGE * deviation).min()))  # here P(M > m) is 1, and at ``high`` it is 0
    high = np.full(3, float((mean + BISECTION_RANGE * deviation).min()))
    wanted = np.log(QUARTILES)
    near = mean - BISECTION_RANGE * deviation < high[0]  # the other points are certainly above
    mean, deviation = mean[near], deviation[near]
    for _ in range(BISECTION_STEPS):
        middle = 0.5 * (low + high)
        below = special.log_ndtr((mean - middle[:, None]) / deviation).sum(axis=1) > wanted
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    quarter, half, three_quarters = 0.5 * (low + high)
    b = max((quarter - three_quarters) / (math.log(math.log(4.0)) - math.log(math.log(4.0 / 3.0))), 1e-12)
    return float(half - b * math.log(math.log(2.0))), float(b)
