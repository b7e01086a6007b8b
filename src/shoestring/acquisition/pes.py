"""Predictive entropy search (PES): how much narrower the prediction of y would be if the minimiser were known.

Sources: Hernandez-Lobato, Hoffman and Ghahramani 2014; Minka 2001 (expectation propagation).

    PES(x) = H(y) - E_k[ H(y | the minimum lies at x_k) ]

This is the mutual information of entropy search (``entropy_search``, equation 1), by closed forms in the place of draws. That the
minimum lies at the representer x_k means

    (a) f(x_k) <= f(r) for all other representers r, evaluated points among them    (w | k ~ N(m_k, T_k): expectation propagation)
    (b) f(x_k) <= f(x)                                                              (one more truncation, in closed form)

Notation for (a): f = mu + L w at the representers, w ~ N(0, I)
    d_j                 f_j - f_k = (mu_j - mu_k) + h_j'w >= 0 for all j,   h_j = L_j - L_k
    w | k               N(m, T) approximately,   T^-1 = I + sum_j tau_j h_j h_j'
    tau_j, nu_j         precision and shift of the normal factor that replaces constraint j
Expectation propagation takes each factor in turn out of the normal of d_j (the cavity: precision 1 / v - tau_j), puts the
constraint in its place, and sets the factor so that d_j has the moments of the truncated normal. With g = mean / deviation in the
cavity and lambda = phi(g) / Phi(g) these are

    mean + deviation lambda,    variance (1 - lambda (lambda + g))                                        (1)

T and m follow by a rank-one update. All k are updated together.

Notation for (b) (see ``entropy_search`` for b(x), s^2, noise; the index k is omitted): D = I - T, a = T L_k = cov(w, f(x_k))
    v_x = s^2 - b'D b       variance of f(x) after (a)               c_k = b'a      its covariance with f(x_k)
    delta = mu + b'm - E[f(x_k)],   v_d = v_x + var(f(x_k)) - 2 c_k + RELATIVE_SLACK s^2     mean and variance of f(x) - f(x_k)
    alpha = delta / sqrt(v_d),  lambda = phi(alpha) / Phi(alpha),  beta = lambda (lambda + alpha),  c = v_x - c_k
    V = v_x - (c^2 / v_d) beta                      variance of f(x) after (b)                            (2)
    PES(x) = 1/2 sum_k p_k log((s^2 + noise) / (V_k + noise))                                             (3)

The slack keeps (b) smooth where x meets x_k, where it says nothing new. p_k is the share of joint draws in which x_k is the
lowest; only the most probable are kept. Derivatives: lambda' = -beta, beta' = lambda - beta (2 lambda + alpha), chain rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from .._validation import whole_number
from ..numerics import Array, log_Phi
from ..surrogate.belief import Belief
from .base import InformationAcquisition
from .entropy_search import (
    ES_OPTIMIZER_OPTIONS,
    Representers,
    log_information_and_ei,
    log_information_and_ei_with_gradient,
    select_representers,
)
from .optimize.optimizer import AcquisitionOptimizer, OptimizerOptions, Surface

EP_SWEEPS = 3  # passes of expectation propagation over all constraints
MIN_VARIANCE_LEFT = 1e-10  # share of its prior variance below which a difference d_j counts as known
MIN_TRUNCATED_VARIANCE = 1e-8  # share of the variance that a truncation leaves, at least
RELATIVE_SLACK = 0.01  # of s^2, added to v_d
PMIN_DRAWS = 2048  # joint draws for p_k


@dataclass(frozen=True)
class PES(InformationAcquisition):
    """Predictive entropy search: what an observation tells about the location of the minimum, by closed forms in place of draws.

    The quantity of ``ES`` by expectation propagation. Use either where the location of the minimum is wanted; compare them on
    your problem if it matters.

    representers  points where the minimum may lie
    minimisers    the most probable of them, which are looked at

    >>> space = st.Space(x=st.Float(0, 1))
    >>> result = st.minimize(lambda c: (c["x"] - 0.3) ** 2, space, 9, method=st.PES(representers=20, minimisers=8))
    >>> abs(result.recommended.config["x"] - 0.3) < 0.1
    True
    """

    representers: int = 50
    minimisers: int = 32
    needs_gaussian_process: ClassVar[bool] = True
    options: ClassVar[OptimizerOptions] = ES_OPTIMIZER_OPTIONS

    def __post_init__(self) -> None:
        object.__setattr__(self, "representers", whole_number(self.representers, "PES: representers", 2))
        object.__setattr__(self, "minimisers", whole_number(self.minimisers, "PES: minimisers", 1))

    def log_information(self, belief: Belief, optimizer: AcquisitionOptimizer) -> Surface:
        representers = select_representers(belief, optimizer, self.representers)
        return Minimisers.among(representers, self.minimisers, optimizer.rng).surface()


@dataclass(frozen=True)
class Minimisers:
    """The most probable minimisers x_k, and the moments of f at the representers given each of them."""

    representers: Representers
    p: Array  # K
    m: Array  # K x R
    D: Array  # K x R x R
    a: Array  # K x R
    mean: Array  # K, of f(x_k)
    variance: Array  # K

    @classmethod
    def among(cls, representers: Representers, count: int, rng: np.random.Generator) -> Minimisers:
        draws = representers.mean + rng.standard_normal((PMIN_DRAWS, len(representers))) @ representers.factor.T
        times = np.bincount(np.argmin(draws, axis=1), minlength=len(representers))
        cases = np.argsort(-times, kind="stable")[:count]
        cases = cases[times[cases] > 0]
        m, T = moments_given_lowest(representers.mean, representers.factor, cases)
        L = representers.factor[cases]
        a = np.einsum("kab,kb->ka", T, L)
        return cls(
            representers, times[cases] / times[cases].sum(), m, np.eye(len(representers)) - T, a,
            representers.mean[cases] + np.einsum("ka,ka->k", L, m), np.einsum("ka,ka->k", L, a),
        )

    def surface(self) -> Surface:
        """log(PES + EI_WEIGHT EI) over points (see ``entropy_search``)."""
        representers, belief = self.representers, self.representers.belief
        posterior = belief.objective

        def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
            Z = belief.encoding.features(U)
            b = representers.loadings(Z)
            predicted = posterior.with_gradients(Z) if gradient else None
            mean, variance = posterior.mean_and_variance(Z) if predicted is None else predicted[:2]
            S, truncated = variance + posterior.noise, self.truncated(b, mean, variance)
            observed = truncated.V + posterior.noise
            information = 0.5 * np.log(S[:, None] / observed) @ self.p  # (3)
            if predicted is None:
                return log_information_and_ei(information, mean, variance, belief, Z), None
            by_b, by_mean, by_variance = self.derivatives(truncated, -0.5 * self.p / observed)
            slope = representers.pull_back(Z, by_b) + by_mean[:, None] * predicted[2]
            slope = slope + (by_variance + 0.5 / S)[:, None] * predicted[3]
            total, slope = log_information_and_ei_with_gradient(information, slope, predicted, belief, Z)
            return total, belief.encoding.pull_back(U, slope)

        return value

    def truncated(self, b: Array, mean: Array, variance: Array) -> TruncatedVariance:
        """V by (2) for each x and k (N x K), and what its derivatives need."""
        Db = (b @ self.D.reshape(-1, b.shape[1]).T).reshape(len(b), len(self.p), -1)
        v_x = np.maximum(variance[:, None] - np.einsum("nkr,nr->nk", Db, b), 0.0)
        c_k = b @ self.a.T
        v_d = np.maximum(v_x + self.variance - 2.0 * c_k, 0.0) + RELATIVE_SLACK * variance[:, None]
        alpha = (mean[:, None] + b @ self.m.T - self.mean) / np.sqrt(v_d)
        lam = log_Phi(alpha)[1]
        beta, c = np.minimum(lam * (lam + alpha), 1.0), v_x - c_k
        return TruncatedVariance(v_x - c * c / v_d * beta, Db, v_d, alpha, lam, beta, c)

    def derivatives(self, at: TruncatedVariance, weight: Array) -> tuple[Array, Array, Array]:
        """Derivatives of sum_k weight_k V_k with respect to b (N x R), mu and s^2 (N each)."""
        d_beta = at.lam - at.beta * (2.0 * at.lam + at.alpha)  # beta'
        ratio = at.c / at.v_d
        by_c = 2.0 * ratio * at.beta
        by_v_d = -(ratio**2) * (at.beta + 0.5 * at.alpha * d_beta)
        by_delta = ratio * at.c * d_beta / np.sqrt(at.v_d)
        by_v_x, by_c_k = weight * (1.0 - by_c - by_v_d), weight * (by_c + 2.0 * by_v_d)
        by_delta = -weight * by_delta
        by_b = -2.0 * np.einsum("nk,nkr->nr", by_v_x, at.Db) + by_c_k @ self.a + by_delta @ self.m
        return by_b, by_delta.sum(axis=1), (by_v_x - RELATIVE_SLACK * weight * by_v_d).sum(axis=1)


@dataclass(frozen=True)
class TruncatedVariance:
    """V of equation (2) and its parts in the module's notation, each N x K; Db is N x K x R."""

    V: Array
    Db: Array
    v_d: Array
    alpha: Array
    lam: Array
    beta: Array
    c: Array


def moments_given_lowest(mean: Array, factor: Array, cases: NDArray[np.intp], sweeps: int = EP_SWEEPS) -> tuple[Array, Array]:
    """m (K x R) and T (K x R x R), the moments of w given that f_k is the lowest, for each k in ``cases``."""
    K, R = len(cases), len(mean)
    H = factor[None, :, :] - factor[cases][:, None, :]
    offset = mean - mean[cases][:, None]
    least = MIN_VARIANCE_LEFT * np.einsum("kjr,kjr->kj", H, H)
    m, T = np.zeros((K, R)), np.tile(np.eye(R), (K, 1, 1))
    tau, nu = np.zeros((K, R)), np.zeros((K, R))
    for _ in range(sweeps):
        for j in range(R):
            h = H[:, j]
            Th = np.einsum("kab,kb->ka", T, h)
            v, centre = np.einsum("ka,ka->k", h, Th), offset[:, j] + np.einsum("ka,ka->k", h, m)
            applies = (cases != j) & (v > least[:, j])
            v = np.where(applies, v, 1.0)
            cavity = 1.0 / v - tau[:, j]  # precision
            applies &= cavity > MIN_VARIANCE_LEFT / v
            cavity = np.where(applies, cavity, 1.0)
            new_tau, new_nu = _moment_matched_factor(1.0 / cavity, (centre / v - nu[:, j]) / cavity)
            d_tau = np.where(applies, new_tau - tau[:, j], 0.0)
            d_nu = np.where(applies, new_nu - nu[:, j], 0.0)
            tau[:, j] += d_tau
            nu[:, j] += d_nu
            shrink = 1.0 + d_tau * v
            m += ((d_nu - d_tau * centre) / shrink)[:, None] * Th
            T -= (d_tau / shrink)[:, None, None] * Th[:, :, None] * Th[:, None, :]
    return m, T


def _moment_matched_factor(variance: Array, mean: Array) -> tuple[Array, Array]:
    """Precision and shift of the factor that gives N(mean, variance) the moments (1) of its truncation to positive numbers."""
    deviation = np.sqrt(variance)
    g = mean / deviation
    lam = log_Phi(g)[1]
    kept = np.maximum(1.0 - lam * (lam + g), MIN_TRUNCATED_VARIANCE)
    precision = (1.0 / kept - 1.0) / variance
    return precision, (mean + deviation * lam) / (kept * variance) - mean / variance
