"""A normal vector given which of its components is the lowest: moments by expectation propagation.

Sources: Minka 2001; Hernandez-Lobato et al. 2014, section 2.1 (the same constraints in predictive entropy search).

Notation: f = mu + L w, w ~ N(0, I); case i: d_j = f_j - f_i = (mu_j - mu_i) + h_j'w >= 0 for all j, h_j = L_j - L_i.
    w | i ~ N(m, T) approximately, T^-1 = I + sum_j tau_j h_j h_j'
Each constraint is replaced by a normal factor with precision tau_j and shift nu_j. By turns, each factor is taken out of d_j's
normal (precision 1 / v - tau_j, the cavity), the constraint is put in its place, and the factor is set so that the moments of
d_j are those of the truncated normal: with g = mean / deviation in the cavity and lambda = phi(g) / Phi(g),

    mean + deviation lambda,    variance (1 - lambda (lambda + g))

T and m follow by a rank-one update. All cases go through this together.

Predictive entropy search: how much narrower would y be if one knew where the minimum lies?

Source: Hernandez-Lobato, Hoffman and Ghahramani 2014. PES(x) = H(y) - E_k[ H(y | the minimum lies at x_k) ], the same mutual
information as entropy search, by closed forms in place of draws. That the minimum lies at the representer x_k says

    f(x_k) <= f(r) for every other representer r, tried points among them     (``lowest``: w | k ~ N(m_k, I - D_k))
    f(x_k) <= f(x)                                                            (one more truncation, below)

Notation (see ``representers``; index k left out): a = (I - D) L_k, the covariance of w with f(x_k)
    v_x = s^2 - b'D b       variance of f(x) after the first         c_k = b'a      its covariance with f(x_k)
    delta = mu + b'm - E[f(x_k)],   v_d = v_x + var(f(x_k)) - 2 c_k + SLACK s^2     mean and variance of f(x) - f(x_k)
    alpha = delta / sqrt(v_d),  lambda = phi(alpha) / Phi(alpha),  beta = lambda (lambda + alpha),  c = v_x - c_k
    V = v_x - (c^2 / v_d) beta                      variance of f(x) after the second
    I(x) = 1/2 sum_k p_k log((s^2 + noise) / (V_k + noise))

SLACK keeps the second truncation smooth where x meets x_k, where it says nothing new. p_k is the share of joint draws in which
x_k is the lowest; the likeliest are kept. Derivatives: lambda' = -beta, beta' = lambda - beta (2 lambda + alpha), chain rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..numerics import Array, log_Phi
from ..surrogate.belief import Belief
from .base import InformationAcquisition
from .entropy_search import EFFORT, Representers, log_total, log_total_with_gradient, representers, whole_number
from .optimize.optimizer import AcquisitionOptimizer, OptimizerOptions, Surface

SWEEPS = 3
RESOLVED = 1e-10  # a difference with a smaller share of its variance left is settled


@dataclass(frozen=True)
class Lowest:
    """Moments of w for each case: m (K x R), T (K x R x R)."""

    m: Array
    T: Array


def given_lowest(mean: Array, factor: Array, cases: NDArray[np.intp], sweeps: int = SWEEPS) -> Lowest:
    """For each i in ``cases``, the moments of w given that f_i is the lowest."""
    K, R = len(cases), len(mean)
    H = factor[None, :, :] - factor[cases][:, None, :]
    offset = mean - mean[cases][:, None]
    least = RESOLVED * np.einsum("kjr,kjr->kj", H, H)
    m, T = np.zeros((K, R)), np.tile(np.eye(R), (K, 1, 1))
    tau, nu = np.zeros((K, R)), np.zeros((K, R))
    for _ in range(sweeps):
        for j in range(R):
            h = H[:, j]
            Th = np.einsum("kab,kb->ka", T, h)
            v, centre = np.einsum("ka,ka->k", h, Th), offset[:, j] + np.einsum("ka,ka->k", h, m)
            open_ = (cases != j) & (v > least[:, j])
            v = np.where(open_, v, 1.0)
            left = 1.0 / v - tau[:, j]
            open_ &= left > RESOLVED / v
            left = np.where(open_, left, 1.0)
            new_tau, new_nu = _matched(1.0 / left, (centre / v - nu[:, j]) / left)
            d_tau = np.where(open_, new_tau - tau[:, j], 0.0)
            d_nu = np.where(open_, new_nu - nu[:, j], 0.0)
            tau[:, j] += d_tau
            nu[:, j] += d_nu
            shrink = 1.0 + d_tau * v
            m += ((d_nu - d_tau * centre) / shrink)[:, None] * Th
            T -= (d_tau / shrink)[:, None, None] * Th[:, :, None] * Th[:, None, :]
    return Lowest(m, T)


def _matched(variance: Array, mean: Array) -> tuple[Array, Array]:
    """Precision and shift of the factor that gives N(mean, variance) the moments it has above zero."""
    deviation = np.sqrt(variance)
    g = mean / deviation
    lam = log_Phi(g)[1]
    kept = np.maximum(1.0 - lam * (lam + g), 1e-8)
    precision = (1.0 / kept - 1.0) / variance
    return precision, (mean + deviation * lam) / (kept * variance) - mean / variance


SLACK = 0.01
DRAWS = 2048


@dataclass(frozen=True)
class Minimisers:
    """Places of the minimum, and what each would say of f at the representers."""

    known: Representers
    p: Array  # K
    m: Array  # K x R
    D: Array  # K x R x R
    a: Array  # K x R
    mean: Array  # K, of f(x_k)
    variance: Array  # K

    @classmethod
    def among(cls, known: Representers, count: int, rng: np.random.Generator) -> Minimisers:
        draws = known.mean + rng.standard_normal((DRAWS, len(known))) @ known.factor.T
        times = np.bincount(np.argmin(draws, axis=1), minlength=len(known))
        cases = np.argsort(-times, kind="stable")[:count]
        cases = cases[times[cases] > 0]
        given = given_lowest(known.mean, known.factor, cases)
        L = known.factor[cases]
        a = np.einsum("kab,kb->ka", given.T, L)
        return cls(
            known, times[cases] / times[cases].sum(), given.m, np.eye(len(known)) - given.T, a,
            known.mean[cases] + np.einsum("ka,ka->k", L, given.m), np.einsum("ka,ka->k", L, a),
        )

    def surface(self) -> Surface:
        """log(I + FLOOR EI) over points (see ``entropy``)."""
        known, belief = self.known, self.known.belief
        posterior = belief.objective

        def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
            Z = belief.encoding.features(U)
            b = known.loadings(Z)
            moments = posterior.with_gradients(Z) if gradient else None
            mean, variance = posterior.mean_and_variance(Z) if moments is None else moments[:2]
            S, narrowed = variance + posterior.noise, self.narrowed(b, mean, variance)
            observed = narrowed.V + posterior.noise
            gain = 0.5 * np.log(S[:, None] / observed) @ self.p
            if moments is None:
                return log_total(gain, mean, variance, belief, Z), None
            by_b, by_mean, by_variance = self.pulled(narrowed, -0.5 * self.p / observed)
            slope = known.pull_back(Z, by_b) + by_mean[:, None] * moments[2] + (by_variance + 0.5 / S)[:, None] * moments[3]
            total, slope = log_total_with_gradient(gain, slope, moments, belief, Z)
            return total, belief.encoding.pull_back(U, slope)

        return value

    def narrowed(self, b: Array, mean: Array, variance: Array) -> Narrowed:
        """V for each x and k (N x K), and what its derivatives need."""
        Db = (b @ self.D.reshape(-1, b.shape[1]).T).reshape(len(b), len(self.p), -1)
        v_x = np.maximum(variance[:, None] - np.einsum("nkr,nr->nk", Db, b), 0.0)
        c_k = b @ self.a.T
        v_d = np.maximum(v_x + self.variance - 2.0 * c_k, 0.0) + SLACK * variance[:, None]
        alpha = (mean[:, None] + b @ self.m.T - self.mean) / np.sqrt(v_d)
        lam = log_Phi(alpha)[1]
        beta, c = np.minimum(lam * (lam + alpha), 1.0), v_x - c_k
        return Narrowed(v_x - c * c / v_d * beta, Db, v_d, alpha, lam, beta, c)

    def pulled(self, at: Narrowed, weight: Array) -> tuple[Array, Array, Array]:
        """Derivatives of sum_k weight_k V_k with respect to b (N x R), mu and s^2 (N each)."""
        bend = at.lam - at.beta * (2.0 * at.lam + at.alpha)  # beta'
        ratio = at.c / at.v_d
        by_c = 2.0 * ratio * at.beta
        by_v_d = -(ratio**2) * (at.beta + 0.5 * at.alpha * bend)
        by_delta = ratio * at.c * bend / np.sqrt(at.v_d)
        by_v_x, by_c_k = weight * (1.0 - by_c - by_v_d), weight * (by_c + 2.0 * by_v_d)
        by_delta = -weight * by_delta
        by_b = -2.0 * np.einsum("nk,nkr->nr", by_v_x, at.Db) + by_c_k @ self.a + by_delta @ self.m
        return by_b, by_delta.sum(axis=1), (by_v_x - SLACK * weight * by_v_d).sum(axis=1)


@dataclass(frozen=True)
class Narrowed:
    """What is in the module's notation, each N x K; Db is N x K x R."""

    V: Array
    Db: Array
    v_d: Array
    alpha: Array
    lam: Array
    beta: Array
    c: Array


@dataclass(frozen=True)
class PES(InformationAcquisition):
    """Predictive entropy search: the likeliest ``minimisers`` of ``representers`` points where the minimum may lie."""

    representers: int = 50
    minimisers: int = 32
    options: ClassVar[OptimizerOptions] = EFFORT

    def __post_init__(self) -> None:
        whole_number("PES", "representers", self.representers, 2)
        whole_number("PES", "minimisers", self.minimisers, 1)

    def log_information(self, belief: Belief, optimizer: AcquisitionOptimizer) -> Surface:
        known = representers(belief, optimizer, self.representers)
        return Minimisers.among(known, self.minimisers, optimizer.rng).surface()
