"""The hyperparameters of a GP, their prior and bounds, and the log marginal likelihood with its exact gradient.

A fit maximises log p(y | theta) + log p(theta) over theta (MAP, ``maximize_likelihood``). Almost all its time is spent in the two
likelihood classes below: ``MarginalLikelihood`` for values, ``GradientMarginalLikelihood`` for values and gradient observations.

Hyperparameters: theta = (log l_1 .. log l_G, log s2, log noise [, log a_1 .. log a_G, log b_1 .. log b_G] [, log share]) with G
parameters; a and b are the shapes of the warping, ``share`` is the noise of gradient observations as a share of their prior
variance. There is no warping where there are gradient observations. Targets are standardised first: the unit of s2 and noise is
the variance of the targets, the unit of l is the side of the unit cube.

Notation for values (see also ``kernels``)
    K = s2 rho(q) + noise I = L L'          the factor overwrites K (dpotrf), then K^-1 overwrites L (dpotri)
    m = 1'K^-1 y / (1'K^-1 1 + 1/tau^2)     the constant mean, at its maximum under a N(0, tau^2) prior
    alpha = K^-1 (y - m)
    (1)  log p(y) = -(y - m)' alpha / 2 - sum log L_ii - n log(2 pi) / 2 - m^2 / (2 tau^2)      (R&W, equation 2.30)
    (2)  G = d log p / dK = (alpha alpha' - K^-1) / 2                                           (R&W, equation 5.9)
         m counts as constant here, since log p is at its maximum over m
    (3)  W = d log p / dq = G o s2 rho'
    (4)  P = d log p / dA = 4 (diag(W 1) A - W A)       by one symmetric product: no n x n x p array
R&W is Rasmussen and Williams, Gaussian Processes for Machine Learning (2006). Only the lower triangles of K, G and W are read.
The value alone costs a third of the value with its gradient.

Notation for values and gradient observations: rows are n values and then R derivatives, each with its scaled point a; d = a - a'
of two rows, q = |d|^2; c the feature of a derivative, s = da/dz = w_c, the inverse length there. Covariances k and F = dk/dq,
without s2:

    value, value              rho                                             rho'
    derivative, value         s 2 rho' d_c                                    s 2 rho'' d_c
    derivative, derivative    s s~ (-4 rho'' d_c d_e - 2 rho' [c = e])        s s~ (-4 rho''' d_c d_e - 2 rho'' [c = e])

    (5)  An inverse length w_l enters through q, with dq = 2 d_l^2 for d log w_l = 1: sum_ij (2 G F)_ij d_l^2, by one product
         with the points.
    (6)  In rows that are derivatives along l it also enters through s and d_c: a sum over rows of G (k + the part of k with d_c).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..numerics import LOG_2PI, Array, blas, lapack
from .gradient_data import GradientData, gradient_noise
from .kernels import PROFILES, DerivativeBlock, Kernel, Warp, profile_derivatives, squared_distances

TAU2 = 1.0  # prior variance of the constant mean, in units of the standardised targets
MAX_STACKED_ROWS = 60  # data up to which many covariance matrices are factored by one call: above, the factoring takes the time
FAILED_OBJECTIVE = 1e10  # minus the likelihood where it cannot be computed: far above any that can


# -- hyperparameters ----------------------------------------------------------------------------------------------------


def clipped(theta: Array, bounds: list[tuple[float, float]]) -> Array:
    """The nearest theta within the bounds."""
    low, high = np.array(bounds).T
    return np.clip(theta, low, high)


def normal_log_prior(theta: Array, centre: Array, width: Array) -> tuple[float, Array]:
    """log p(theta) of independent normal priors, up to a constant, and its gradient."""
    off = (theta - centre) / width
    return -0.5 * float(off @ off), -off / width


@dataclass(frozen=True)
class Layout:
    """The vector theta: the place, the prior and the bounds of each hyperparameter.

    groups          the parameter that each feature belongs to
    warped          whether theta holds the shapes of a warping
    fidelities      parameters that are fidelities
    with_gradients  whether theta holds the noise of gradient observations

    All priors are normal for the logarithm: *_CENTRE is the median, *_WIDTH the standard deviation of the logarithm. Length
    scales are centred at a multiple of sqrt(G), so that a random function stays about as predictable when parameters are added.
    The numbers were chosen on the tuning set (`python -m benchmarks.defaults`).
    """

    groups: NDArray[np.intp]
    warped: bool = False
    fidelities: tuple[int, ...] = ()
    with_gradients: bool = False

    LENGTH_CENTRE = 0.5  # of the unit cube, times sqrt(G)
    LENGTH_WIDTH = 1.0
    # The prior length scale of a fidelity is longer by this factor. A fidelity is declared because low ones are believed to be
    # informative about the target. Without this prior a few data may suggest that fidelities have nothing in common, and the
    # first evaluations become expensive. Of the factors {1, 3, 6}, 3 and 6 had a third or less of the regret of 1 on two
    # functions that are not in the reports.
    FIDELITY_LENGTH_FACTOR = 4.0
    VARIANCE_WIDTH = 1.0
    NOISE_CENTRE = 1e-4  # of the variance of the targets; also of the prior variance of a gradient observation
    NOISE_WIDTH = 2.0
    WARP_WIDTH = 0.5

    @cached_property
    def count(self) -> int:
        """G, the number of parameters."""
        return int(self.groups.max()) + 1

    @cached_property
    def size(self) -> int:
        """The length of theta."""
        return self.count * (3 if self.warped else 1) + 2 + self.with_gradients

    @cached_property
    def centre(self) -> Array:
        """The mean of the prior of theta."""
        theta = np.zeros(self.size)
        theta[: self.count] = np.log(self.LENGTH_CENTRE) + 0.5 * np.log(self.count)
        theta[list(self.fidelities)] += np.log(self.FIDELITY_LENGTH_FACTOR)
        theta[self.count + 1] = np.log(self.NOISE_CENTRE)
        if self.with_gradients:
            theta[-1] = np.log(self.NOISE_CENTRE)
        return theta

    @cached_property
    def width(self) -> Array:
        """The standard deviations of the prior of theta."""
        width = np.full(self.size, self.WARP_WIDTH)
        width[: self.count] = self.LENGTH_WIDTH
        width[self.count : self.count + 2] = self.VARIANCE_WIDTH, self.NOISE_WIDTH
        if self.with_gradients:
            width[-1] = self.NOISE_WIDTH
        return width

    @cached_property
    def bounds(self) -> list[tuple[float, float]]:
        """The range of each entry of theta."""
        lengths = [(np.log(0.02), np.log(50.0) + 0.5 * np.log(self.count))] * self.count
        noise = (np.log(1e-7), np.log(2.0))
        shapes = [(-1.5, 1.5)] * (self.size - self.count - 2 - self.with_gradients)
        return lengths + [(-7.0, 7.0), noise] + shapes + [noise] * self.with_gradients

    def clip(self, theta: Array) -> Array:
        """The nearest theta within the bounds."""
        return clipped(theta, self.bounds)

    def log_prior(self, theta: Array) -> tuple[float, Array]:
        """log p(theta) up to a constant, and its gradient."""
        return normal_log_prior(theta, self.centre, self.width)

    def warp(self, theta: Array) -> Warp | None:
        """The warping, None where there is none."""
        if not self.warped:
            return None
        shapes = np.exp(theta[self.count + 2 :])
        return Warp(shapes[: self.count][self.groups], shapes[self.count :][self.groups])

    def kernel(self, theta: Array, profile: str) -> Kernel:
        """The kernel with these hyperparameters."""
        return Kernel(profile, np.exp(-theta[: self.count])[self.groups], float(np.exp(theta[self.count])), self.warp(theta))

    def noise(self, theta: Array) -> float:
        """The noise variance of a value."""
        return float(np.exp(theta[self.count + 1]))

    def gradient_noise_share(self, theta: Array) -> float:
        """The noise variance of gradient observations, as a share of their prior variance."""
        return float(np.exp(theta[-1]))

    def per_group(self, per_column: Array) -> Array:
        """Sums over the columns of each parameter."""
        return np.bincount(self.groups, per_column, minlength=self.count).astype(float)


# -- values -------------------------------------------------------------------------------------------------------------


def constant_mean(one_K_y: float, one_K_one: float) -> float:
    """m = 1'K^-1 y / (1'K^-1 1 + 1 / tau^2)."""
    return float(one_K_y / (one_K_one + 1.0 / TAU2))


@dataclass(frozen=True, kw_only=True)
class FactoredCovariance:
    """What value and gradient have in common; ``quadratic`` is (y - m)' alpha, ``value`` is log p(y)."""

    kernel: Kernel
    noise: float
    A: Array
    rho_derivative: Array  # rho'
    L: Array
    alpha: Array
    quadratic: float
    value: float


class MarginalLikelihood:
    """log p(y | theta) + log p(theta) for given data, as a function of theta.

    known_noise  variances of the observations beside the noise of theta, one for each; None for none
    """

    def __init__(self, Z: Array, y: Array, layout: Layout, profile: str, known_noise: Array | None = None) -> None:
        self.Z, self.y, self.layout, self.profile = Z, y, layout, profile
        self.known_noise = known_noise
        self.y_and_ones = np.column_stack([y, np.ones(len(y))])
        self.A_and_ones = np.ones((len(y), Z.shape[1] + 1), order="F")  # A is written here, in the order that BLAS expects
        self.evaluations = 0

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Value and gradient; (-inf, 0) where the covariance cannot be factored."""
        self.evaluations += 1
        factored = self._factored(theta)
        if factored is None:
            return -np.inf, np.zeros_like(theta)
        n, layout, kernel, noise, A, alpha = len(self.y), self.layout, factored.kernel, factored.noise, factored.A, factored.alpha
        inverse, _ = lapack.dpotri(factored.L, lower=1, overwrite_c=1)

        prior, d_prior = layout.log_prior(theta)
        d_noise = 0.5 * noise * (float(alpha @ alpha) - float(np.trace(inverse)))
        of_known = 0.0 if self.known_noise is None else 0.5 * float(self.known_noise @ (alpha**2 - np.diagonal(inverse)))
        W = np.outer(alpha, alpha).T  # (2)
        W -= inverse
        W *= factored.rho_derivative.T  # (3): 2 W / s2
        self.A_and_ones[:, :-1] = A
        WA = blas.dsymm(0.5 * kernel.variance, W, self.A_and_ones, lower=1)
        P = 4.0 * (WA[:, -1:] * A - WA[:, :-1])  # (4)
        gradient = np.zeros_like(theta)
        G = layout.count
        gradient[:G] = -layout.per_group(np.einsum("ij,ij->j", P, A))
        gradient[G] = 0.5 * (factored.quadratic - n) - d_noise - of_known  # tr(G (K - all noise))
        gradient[G + 1] = d_noise
        if kernel.warp is not None:
            by_a, by_b = kernel.warp.shape_derivatives(self.Z)
            P *= kernel.inverse_lengths
            gradient[G + 2 : 2 * G + 2] = layout.per_group(np.einsum("ij,ij->j", P, by_a))
            gradient[2 * G + 2 :] = layout.per_group(np.einsum("ij,ij->j", P, by_b))
        return factored.value + prior, gradient + d_prior

    def value(self, theta: Array) -> float:
        """Without the gradient; -inf where the covariance cannot be factored."""
        self.evaluations += 1
        factored = self._factored(theta)
        return -np.inf if factored is None else factored.value + self.layout.log_prior(theta)[0]

    def values(self, thetas: Array) -> Array:
        """The values at several theta (rows) at once. With few data the calls take longer than the numbers, and one is enough."""
        if len(self.y) > MAX_STACKED_ROWS or self.layout.warped:
            return np.array([self.value(theta) for theta in thetas])
        self.evaluations += len(thetas)
        n, count = len(self.y), self.layout.count
        A = self.Z * np.exp(-thetas[:, :count])[:, None, self.layout.groups]
        norms = np.einsum("wij,wij->wi", A, A)
        q = norms[:, :, None] + norms[:, None, :] - 2.0 * A @ A.transpose(0, 2, 1)
        q[:, np.arange(n), np.arange(n)] = 0.0
        K, _ = PROFILES[self.profile](np.maximum(q, 0.0, out=q))
        K *= np.exp(thetas[:, count])[:, None, None]
        K[:, np.arange(n), np.arange(n)] += np.exp(thetas[:, count + 1])[:, None]
        if self.known_noise is not None:
            K[:, np.arange(n), np.arange(n)] += self.known_noise
        try:
            log_det = 2.0 * np.log(np.linalg.cholesky(K).diagonal(axis1=1, axis2=2)).sum(axis=1)
        except np.linalg.LinAlgError:  # at one of them, which is enough
            return np.array([self.value(theta) for theta in thetas])
        solved = np.linalg.solve(K, np.broadcast_to(self.y_and_ones, (len(thetas), n, 2)))
        mean = solved[:, :, 0].sum(axis=1) / (solved[:, :, 1].sum(axis=1) + 1.0 / TAU2)
        alpha = solved[:, :, 0] - mean[:, None] * solved[:, :, 1]
        quadratic = np.einsum("wi,wi->w", self.y - mean[:, None], alpha)
        off = (thetas - self.layout.centre) / self.layout.width
        prior = -0.5 * np.einsum("wi,wi->w", off, off)
        return np.asarray(prior - 0.5 * (quadratic + log_det + n * LOG_2PI + mean**2 / TAU2))

    def _factored(self, theta: Array) -> FactoredCovariance | None:
        """None where the covariance cannot be factored."""
        n, layout = len(self.y), self.layout
        kernel, noise = layout.kernel(theta, self.profile), layout.noise(theta)
        A, K, rho_derivative = kernel.correlations(self.Z)
        K *= kernel.variance
        K.reshape(-1)[:: n + 1] += noise if self.known_noise is None else noise + self.known_noise  # the diagonal
        L, info = lapack.dpotrf(K.T, lower=1, clean=0, overwrite_a=1)  # K.T: symmetric, and in the order that LAPACK expects
        if info != 0:
            return None
        log_det = 2.0 * float(np.log(np.diagonal(L)).sum())
        solved, _ = lapack.dpotrs(L, self.y_and_ones, lower=1)
        mean = constant_mean(solved[:, 0].sum(), solved[:, 1].sum())
        residual, alpha = self.y - mean, solved[:, 0] - mean * solved[:, 1]
        quadratic = float(residual @ alpha)
        value = -0.5 * (quadratic + log_det + n * LOG_2PI + mean**2 / TAU2)  # (1)
        return FactoredCovariance(
            kernel=kernel, noise=noise, A=A, rho_derivative=rho_derivative, L=L, alpha=alpha, quadratic=quadratic, value=value
        )


# -- values and gradient observations -----------------------------------------------------------------------------------


class GradientMarginalLikelihood:
    """log p(y, gradients | theta) + log p(theta), as a function of theta; the same interface as ``MarginalLikelihood``."""

    def __init__(self, Z: Array, y: Array, gradients: GradientData, layout: Layout, profile: str) -> None:
        self.Z, self.gradients, self.layout, self.profile = Z, gradients, layout, profile
        self.targets = np.concatenate([y, gradients.values])
        self.ones = np.concatenate([np.ones(len(y)), np.zeros(len(gradients))])  # the derivative of a constant mean is zero
        self.evaluations = 0

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Value and gradient; (-inf, 0) where the covariance cannot be factored."""
        self.evaluations += 1
        layout, n = self.layout, len(self.Z)
        kernel, noise, share = layout.kernel(theta, self.profile), layout.noise(theta), layout.gradient_noise_share(theta)
        block = self.gradients.block(kernel, self.Z)
        points = np.vstack([kernel.scale(self.Z), block.A])
        joint = joint_covariance(kernel, points, block, n)
        own_noise = gradient_noise(kernel, share, block)
        factored = self._factored(joint.K, np.concatenate([np.full(n, noise), own_noise]))
        if factored is None:
            return -np.inf, np.zeros_like(theta)
        value, alpha, inverse = factored
        G = 0.5 * (np.outer(alpha, alpha) - inverse)  # (2)
        diagonal = np.diag(G)
        W = 2.0 * G * joint.F
        per_column = 2.0 * (W.sum(axis=1) @ points**2 - np.einsum("ij,ij->j", points, W @ points))  # (5)
        rows = np.einsum("ij,ij->i", G[n:], joint.K[n:] + joint.with_difference) + diagonal[n:] * own_noise
        per_column += 2.0 * np.bincount(block.columns, rows, minlength=points.shape[1])  # (6)
        gradient, count = np.zeros_like(theta), layout.count
        gradient[:count] = -layout.per_group(per_column)
        gradient[count] = float(np.einsum("ij,ij->", G, joint.K)) + float(diagonal[n:] @ own_noise)
        gradient[count + 1] = noise * float(diagonal[:n].sum())
        gradient[-1] = float(diagonal[n:] @ own_noise)
        prior, d_prior = layout.log_prior(theta)
        return value + prior, gradient + d_prior

    def value(self, theta: Array) -> float:
        """Without the gradient; -inf where the covariance cannot be factored."""
        return self(theta)[0]

    def values(self, thetas: Array) -> Array:
        """The values at several theta (rows)."""
        return np.array([self.value(theta) for theta in thetas])

    def _factored(self, K: Array, noises: Array) -> tuple[float, Array, Array] | None:
        """log p, alpha and K^-1; None where K cannot be factored."""
        total = K.copy()
        total[np.diag_indices(len(total))] += noises
        L, info = lapack.dpotrf(total, lower=1, clean=1)
        if info != 0:
            return None
        solved, _ = lapack.dpotrs(L, np.column_stack([self.targets, self.ones]), lower=1)
        mean = constant_mean(float(self.ones @ solved[:, 0]), float(self.ones @ solved[:, 1]))
        alpha = solved[:, 0] - mean * solved[:, 1]
        quadratic = float((self.targets - mean * self.ones) @ alpha)
        log_det = 2.0 * float(np.log(np.diagonal(L)).sum())
        inverse, _ = lapack.dpotri(L, lower=1)
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        return -0.5 * (quadratic + log_det + len(alpha) * LOG_2PI + mean**2 / TAU2), alpha, inverse  # (1)


@dataclass(frozen=True)
class JointCovariance:
    """Covariances K of all rows without noise, F, and the part of the derivatives' covariances with d_c; s2 and s included."""

    K: Array
    F: Array
    with_difference: Array  # R x (n + R)


def joint_covariance(kernel: Kernel, points: Array, block: DerivativeBlock, n: int) -> JointCovariance:
    """The table in the module's docstring: ``points`` are the scaled points of the n values and of the derivatives."""
    q = squared_distances(points)
    first, second, third = profile_derivatives(kernel.profile, q)
    d_c = block.differences(points)  # of each derivative and every row
    d_e = -d_c[:, n:].T  # for the derivative in the column
    same = block.columns[:, None] == block.columns
    K, F = PROFILES[kernel.profile](q)
    with_difference = np.zeros_like(d_c)
    with_difference[:, :n] = 2.0 * first[n:, :n] * d_c[:, :n]
    with_difference[:, n:] = -4.0 * second[n:, n:] * d_c[:, n:] * d_e
    K[n:, :n], F[n:, :n] = with_difference[:, :n], 2.0 * second[n:, :n] * d_c[:, :n]
    K[n:, n:] = with_difference[:, n:] - 2.0 * first[n:, n:] * same
    F[n:, n:] = -4.0 * third[n:, n:] * d_c[:, n:] * d_e - 2.0 * second[n:, n:] * same
    K[:n, n:], F[:n, n:] = K[n:, :n].T, F[n:, :n].T
    s = kernel.variance * np.concatenate([np.ones(n), block.s])
    scale = np.outer(s, s) / kernel.variance
    return JointCovariance(K * scale, F * scale, with_difference * scale[n:])


AnyLikelihood = MarginalLikelihood | GradientMarginalLikelihood


def maximize_likelihood(log_likelihood: AnyLikelihood, theta: Array) -> tuple[float, Array]:
    """The end of an L-BFGS-B search from theta, and its value; (-inf, theta) where the likelihood can nowhere be computed."""

    from scipy.optimize import minimize  # here, since it is slow to import

    def negative(point: Array) -> tuple[float, Array]:
        value, gradient = log_likelihood(point)
        return (-value, -gradient) if np.isfinite(value) else (FAILED_OBJECTIVE, np.zeros_like(point))

    end = minimize(
        negative, theta, jac=True, method="L-BFGS-B", bounds=log_likelihood.layout.bounds,
        options={"maxiter": 60, "maxfun": 90, "ftol": 1e-6, "gtol": 0.02},  # a smaller gain matters for no decision
    )  # fmt: skip
    return (-float(end.fun), np.asarray(end.x)) if end.fun < FAILED_OBJECTIVE else (-np.inf, theta)
