"""A Gaussian process over configurations and epochs, for learning curves: the data, the hyperparameters and the likelihood.

Sources: Swersky, Snoek and Adams, "Freeze-thaw Bayesian optimization" (2014), for the kernel and for curves that are independent
given what they have in common. Here the curves share a drop as well as an asymptote.

    y_i(t) = g(x_i) + h(x_i) d(t) + r_i(t) + o_i(t) + noise                                             (1)

    t            epochs as a share of the target: t = 1 is the target
    g, h         Gaussian processes over configurations: the value at the target, and how far the curve falls on the way there
    d(t)         (b / (t + b))^a - (b / (1 + b))^a: the mean decay, 0 at the target
    r_i          deviation of a curve that dies away: covariance v_r (b / (t + t' + b))^a, a mixture of exponential decays
    o_i          deviation of a run that stays: covariance v_o exp(-|t - t'| / l_o). It is the noise that one run shares, and it
                 says how far a curve may still leave its course (plateaus, steps of the learning rate)
    kappa_i      per-curve factor of the covariance of r, o and noise; 1 unless a curve is unlike the others (see ``fit``)

r and o of different runs are independent. So a curve of any length says no more about the others than two numbers do:

    P            T x 2, columns 1 and d(t);   C = cov(r + o) + noise I = L L'
    A_i          P'(kappa C)^-1 P = S_i S_i' (2 x 2),   b_i = P'(kappa C)^-1 y_i,   u_i = S_i^-1 b_i
    K            covariance of all g and all h;   M = I + S'K S (2n x 2n)
    (2)  log p(y) = log N(u | 0, M) + sum_i (log N(y_i | 0, kappa_i C_i) - log N(u_i | 0, I))

Curves on the same grid of epochs share L, whatever their lengths: the factor of a leading block is a leading block of the factor.
So n curves of T points cost (2n)^3 + n T^2, linear in the points of a curve (a ``Chain`` is such a grid).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..numerics import LOG_2PI, Array, lapack
from .kernels import Kernel
from .marginal_likelihood import Layout, clipped, normal_log_prior

MEAN_VARIANCE = np.array([1.0, 9.0])  # prior variances of the constant means of g and h, in units of the values at the target
NO_PIVOT = 1e-10  # of A_i: below, a curve says nothing about h that it does not say about g
PROFILE = "matern52"


# -- data ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Chain:
    """Curves on one grid of epochs: each has the first ``lengths`` points of it.

    t, Y     T and T x m: the grid, and the values, 0 beyond a curve's end
    rows     the place of each curve among all curves;   mask  T x m, 1 where there is a value
    """

    t: Array
    rows: NDArray[np.intp]
    lengths: NDArray[np.intp]
    Y: Array
    mask: Array


@dataclass(frozen=True)
class Curves:
    """n learning curves: features of the configurations (n x p), rising times (1 is the target) and values."""

    Z: Array
    times: tuple[Array, ...]
    values: tuple[Array, ...]

    def __len__(self) -> int:
        return len(self.Z)

    @classmethod
    def of(cls, Z: Array, times: Sequence[Array], values: Sequence[Array]) -> Curves:
        """From sequences; every curve has a point at least."""
        return cls(np.asarray(Z, dtype=float), tuple(map(np.asarray, times)), tuple(map(np.asarray, values)))

    def select(self, rows: NDArray[np.intp]) -> Curves:
        """Some of the curves."""
        return Curves(self.Z[rows], tuple(self.times[row] for row in rows), tuple(self.values[row] for row in rows))

    @cached_property
    def lengths(self) -> NDArray[np.intp]:
        return np.array([len(each) for each in self.times], dtype=np.intp)

    @cached_property
    def last(self) -> Array:
        """The value at the end of each curve."""
        return np.array([each[-1] for each in self.values])

    @cached_property
    def chains(self) -> list[Chain]:
        """The curves by their grids: one chain where all report after every epoch."""
        owner: dict[bytes, int] = {}
        members: list[list[int]] = []
        for row in np.argsort(-self.lengths, kind="stable"):
            place = owner.get(self.times[row].tobytes())
            if place is None:
                place = len(members)
                members.append([])
                for end in range(1, len(self.times[row]) + 1):
                    owner.setdefault(self.times[row][:end].tobytes(), place)
            members[place].append(int(row))
        return [self._chain(rows) for rows in members]

    def _chain(self, rows: list[int]) -> Chain:
        t, lengths = self.times[rows[0]], self.lengths[rows]
        Y = np.zeros((len(t), len(rows)))
        for column, row in enumerate(rows):
            Y[: lengths[column], column] = self.values[row]
        mask = (np.arange(len(t))[:, None] < lengths).astype(float)
        return Chain(t, np.array(rows, dtype=np.intp), lengths, Y, mask)


# -- hyperparameters ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CurveLayout:
    """The vector theta of a model of curves, its prior and its bounds.

    theta = (log l_g (G), log var g, log l_h (G), log var h, log a, log b, log v_r, log v_o, log l_o, log noise). Units: values at
    the target have variance 1; the side of the unit cube; t = 1 is the target. All priors are normal.
    """

    groups: NDArray[np.intp]
    fidelities: tuple[int, ...] = ()

    DROP_LENGTH_FACTOR = 2.0  # the drop depends on the configuration more smoothly than the value at the target
    CURVE_CENTRE = (1.0, 0.1, 0.1, 0.02, 1.0, 1e-3)  # a, b, v_r, v_o, l_o, noise
    CURVE_WIDTH = (0.5, 1.0, 1.5, 1.5, 1.0, 2.0)
    CURVE_BOUNDS = ((0.1, 8.0), (1e-3, 20.0), (1e-6, 100.0), (1e-6, 10.0), (0.03, 30.0), (1e-6, 2.0))

    @cached_property
    def count(self) -> int:
        """G, the number of parameters."""
        return int(self.groups.max()) + 1

    @cached_property
    def _plain(self) -> Layout:
        return Layout(self.groups, fidelities=self.fidelities)

    @cached_property
    def centre(self) -> Array:
        """The mean of the prior of theta."""
        own = self._plain.centre[: self.count]
        return np.concatenate([own, [0.0], own + np.log(self.DROP_LENGTH_FACTOR), [0.0], np.log(self.CURVE_CENTRE)])

    @cached_property
    def width(self) -> Array:
        """The standard deviations of the prior of theta."""
        own = np.append(np.full(self.count, Layout.LENGTH_WIDTH), Layout.VARIANCE_WIDTH)
        return np.concatenate([own, own, self.CURVE_WIDTH])

    @cached_property
    def bounds(self) -> list[tuple[float, float]]:
        """The range of each entry of theta."""
        own = [*self._plain.bounds[: self.count], (-7.0, 7.0)]
        return [*own, *own, *((float(np.log(low)), float(np.log(high))) for low, high in self.CURVE_BOUNDS)]

    def clip(self, theta: Array) -> Array:
        """The nearest theta within the bounds."""
        return clipped(theta, self.bounds)

    def log_prior(self, theta: Array) -> tuple[float, Array]:
        """log p(theta) up to a constant, and its gradient."""
        return normal_log_prior(theta, self.centre, self.width)

    def kernels(self, theta: Array) -> tuple[Kernel, Kernel]:
        """Those of g and h, without the constant means."""
        G = self.count
        parts = theta[: G + 1], theta[G + 1 : 2 * G + 2]
        g, h = (Kernel(PROFILE, np.exp(-each[:G])[self.groups], float(np.exp(each[G]))) for each in parts)
        return g, h

    def shape(self, theta: Array) -> CurveShape:
        """What theta says about single curves."""
        return CurveShape(*np.exp(theta[2 * self.count + 2 :]).tolist())


@dataclass(frozen=True)
class CurveShape:
    """d(t) and the covariance of r and o, equation (1)."""

    a: float
    b: float
    v_r: float
    v_o: float
    l_o: float
    noise: float

    def basis(self, t: Array) -> Array:
        """P at times t (T x 2)."""
        return np.stack([np.ones_like(t), (self.b / (t + self.b)) ** self.a - (self.b / (1.0 + self.b)) ** self.a], axis=-1)

    def covariance(self, t: Array, s: Array) -> Array:
        """Of r + o at times t and s."""
        apart = np.abs(t[:, None] - s)
        return self.v_r * (self.b / (t[:, None] + s + self.b)) ** self.a + self.v_o * np.exp(-apart / self.l_o)

    def variance(self, t: Array) -> Array:
        """Of r + o at times t."""
        return np.asarray(self.v_r * (self.b / (2.0 * t + self.b)) ** self.a + self.v_o)

    def gradient(self, t: Array, by_C: Array, by_d: Array) -> Array:
        """The derivatives with respect to the logarithms of (a, b, v_r, v_o, l_o, noise), given those by C and by d(t)."""
        a, b = self.a, self.b
        ratio, apart = b / (t[:, None] + t + b), np.abs(t[:, None] - t)
        decay, stay = by_C * self.v_r * ratio**a, by_C * self.v_o * np.exp(-apart / self.l_o)
        one, end = b / (t + b), b / (1.0 + b)
        d_a = a * (one**a * np.log(one) - end**a * np.log(end))
        d_b = a * (one**a * (1.0 - one) - end**a * (1.0 - end))
        return np.array([
            a * (decay * np.log(ratio)).sum() + by_d @ d_a,
            a * (decay * (1.0 - ratio)).sum() + by_d @ d_b,
            decay.sum(), stay.sum(), (stay * apart).sum() / self.l_o, self.noise * np.trace(by_C),
        ])  # fmt: skip


# -- the likelihood -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ReducedCurves:
    """What the curves say about g and h: S and u of equation (2), and the rest of the likelihood.

    S        (S_gg, S_hg, S_hh), each n: S_i = [[S_gg, 0], [S_hg, S_hh]];   u  2 x n
    rest     the second sum of (2)
    factors  for each chain L^-1 (T x T), P and L^-1 P (T x 2)
    misfit   |L^-1 y_i|^2 / kappa_i - |u_i|^2 (n): what the basis does not explain
    """

    S: tuple[Array, Array, Array]
    u: Array
    rest: float
    misfit: Array
    factors: list[tuple[Array, Array, Array]]


def reduce_curves(curves: Curves, shape: CurveShape, kappa: Array) -> ReducedCurves | None:
    """None where a covariance cannot be factored."""
    n = len(curves)
    A, b, square, rest = np.empty((n, 2, 2)), np.empty((2, n)), np.empty(n), 0.0
    factors = []
    for chain in curves.chains:
        C = shape.covariance(chain.t, chain.t)
        C[np.diag_indices(len(C))] += shape.noise
        L, info = lapack.dpotrf(C, lower=1, clean=1)
        if info != 0:
            return None
        inverse, _ = lapack.dtrtri(L, lower=1)
        P = shape.basis(chain.t)
        V, W, scale = inverse @ P, (inverse @ chain.Y) * chain.mask, kappa[chain.rows]
        A[chain.rows] = np.cumsum(V[:, :, None] * V[:, None, :], axis=0)[chain.lengths - 1] / scale[:, None, None]
        b[:, chain.rows] = V.T @ W / scale
        square[chain.rows] = np.einsum("ti,ti->i", W, W) / scale
        log_diagonal = np.cumsum(np.log(np.diagonal(L)))[chain.lengths - 1]
        rest -= float((log_diagonal + 0.5 * chain.lengths * (np.log(scale) + LOG_2PI)).sum())
        factors.append((inverse, P, V))
    S_gg = np.sqrt(A[:, 0, 0])
    S_hg = A[:, 1, 0] / S_gg
    pivot = A[:, 1, 1] - S_hg**2
    S_hh = np.sqrt(np.where(pivot > NO_PIVOT * A[:, 1, 1] + NO_PIVOT, pivot, 0.0))
    u_g = b[0] / S_gg
    u_h = np.divide(b[1] - S_hg * u_g, S_hh, out=np.zeros(n), where=S_hh > 0.0)
    misfit = square - u_g**2 - u_h**2
    return ReducedCurves(
        S=(S_gg, S_hg, S_hh), u=np.stack([u_g, u_h]), rest=rest - 0.5 * float(misfit.sum()), misfit=misfit, factors=factors
    )


def whitened_covariance(S: tuple[Array, Array, Array], K_g: Array, K_h: Array) -> Array:
    """M = I + S'K S, the rows of u_g before those of u_h."""
    S_gg, S_hg, S_hh = S
    n = len(S_gg)
    M = np.empty((2 * n, 2 * n))
    M[:n, :n] = S_gg[:, None] * K_g * S_gg + S_hg[:, None] * K_h * S_hg
    M[n:, :n] = S_hh[:, None] * K_h * S_hg
    M[:n, n:] = M[n:, :n].T
    M[n:, n:] = S_hh[:, None] * K_h * S_hh
    M[np.diag_indices(2 * n)] += 1.0
    return M


class CurveLikelihood:
    """log p(y | theta) + log p(theta) with its gradient, for given curves."""

    def __init__(self, curves: Curves, layout: CurveLayout, kappa: Array | None = None) -> None:
        self.curves, self.layout = curves, layout
        self.kappa = np.ones(len(curves)) if kappa is None else kappa
        self.evaluations = 0

    def value(self, theta: Array) -> float:
        """Without the gradient; -inf where a covariance cannot be factored."""
        return self(theta, gradient=False)[0]

    def __call__(self, theta: Array, gradient: bool = True) -> tuple[float, Array]:
        """Value and gradient; (-inf, 0) where a covariance cannot be factored."""
        self.evaluations += 1
        layout, n, nothing = self.layout, len(self.curves), np.zeros_like(theta)
        shape = layout.shape(theta)
        reduced = reduce_curves(self.curves, shape, self.kappa)
        if reduced is None:
            return -np.inf, nothing
        kernels = layout.kernels(theta)
        scaled, K, slopes = [], [], []
        for kernel, constant in zip(kernels, MEAN_VARIANCE, strict=True):
            points, rho, slope = kernel.correlations(self.curves.Z)
            scaled.append(points)
            K.append(kernel.variance * rho + constant)
            slopes.append(kernel.variance * slope)
        M, u = whitened_covariance(reduced.S, K[0], K[1]), reduced.u.ravel()
        L, info = lapack.dpotrf(M.T, lower=1, clean=0, overwrite_a=1)
        if info != 0:
            return -np.inf, nothing
        alpha, _ = lapack.dpotrs(L, u, lower=1)
        prior, d_prior = layout.log_prior(theta)
        value = reduced.rest - 0.5 * float(u @ alpha) - float(np.log(np.diagonal(L)).sum()) + prior  # (2)
        if not gradient:
            return value, nothing
        inverse, _ = lapack.dpotri(L, lower=1)
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        total, G = d_prior, layout.count
        S_gg, S_hg, S_hh = reduced.S
        D = 0.5 * (np.outer(alpha, alpha) - inverse)  # d log p / dM
        D_gg, D_hg, D_hh = D[:n, :n], D[n:, :n], D[n:, n:]
        cross = S_hh[:, None] * D_hg * S_hg
        by_K = (S_gg[:, None] * D_gg * S_gg, S_hg[:, None] * D_gg * S_hg + cross + cross.T + S_hh[:, None] * D_hh * S_hh)
        for place, points in enumerate(scaled):
            W = by_K[place] * slopes[place]
            moved = 4.0 * (W.sum(axis=1)[:, None] * points - W @ points)
            start = place * (G + 1)
            total[start : start + G] -= np.bincount(layout.groups, np.einsum("ij,ij->j", moved, points), minlength=G)
            total[start + G] += float(np.einsum("ij,ij->", by_K[place], K[place] - MEAN_VARIANCE[place]))
        w = np.stack([K[0] @ (S_gg * alpha[:n]), K[1] @ (S_hg * alpha[:n] + S_hh * alpha[n:])])  # posterior mean of g, h
        total[2 * G + 2 :] += self._by_shape(shape, reduced, w, own_covariances(reduced.S, K, inverse))
        return value, total

    def _by_shape(self, shape: CurveShape, reduced: ReducedCurves, w: Array, own: Array) -> Array:
        """The derivatives with respect to the hyperparameters of single curves; ``own``: posterior covariances of (g, h)."""
        total = np.zeros(6)
        for chain, (inverse, P, V) in zip(self.curves.chains, reduced.factors, strict=True):
            scale, mean = self.kappa[chain.rows], w[:, chain.rows]
            beta = inverse.T @ (chain.mask * (inverse @ (chain.mask * (chain.Y - P @ mean))))  # kappa (total covariance)^-1 y
            counts = chain.mask.sum(axis=1)
            # of the curves that are longer than t, the sum of their posterior covariances
            later = np.einsum("ti,iab->tab", chain.mask / scale, own[chain.rows])
            T = len(chain.t)
            both = np.maximum(np.arange(T)[:, None], np.arange(T))
            inner = np.einsum("sa,stab,tb->st", V, later[both], V) - np.diag(counts)
            by_C = 0.5 * ((beta / scale) @ beta.T + inverse.T @ inner @ inverse)
            by_P = (beta / scale) @ mean.T - inverse.T @ np.einsum("ta,tab->tb", V, later)
            total += shape.gradient(chain.t, by_C, by_P[:, 1])
        return total


def own_covariances(S: tuple[Array, Array, Array], K: Sequence[Array], inverse: Array) -> Array:
    """The posterior covariance of (g, h) of each curve (n x 2 x 2), from M^-1.

    From S'(posterior covariance) = M^-1 S'K, whose diagonal blocks cost n^2. Where S_hh is 0, the curve says nothing about the
    variance of h, and no result here depends on it: it is set to 0.
    """
    S_gg, S_hg, S_hh = S
    n = len(S_gg)
    top, low, bottom = inverse[:n, :n], inverse[n:, :n], inverse[n:, n:]
    N_gh = ((top * S_hg + low.T * S_hh) * K[1]).sum(axis=1)
    N_hh = ((low * S_hg + bottom * S_hh) * K[1]).sum(axis=1)
    N_gg = (top * S_gg * K[0]).sum(axis=1)
    hh = np.divide(N_hh, S_hh, out=np.zeros(n), where=S_hh > 0.0)
    gh = (N_gh - S_hg * hh) / S_gg
    gg = (N_gg - S_hg * gh) / S_gg
    return np.stack([np.stack([gg, gh], axis=1), np.stack([gh, hh], axis=1)], axis=1)
