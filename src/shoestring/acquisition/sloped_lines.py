"""What a value and its slopes, observed together, would do to the mean elsewhere.

Notation: o_n the observations at candidate n, its value and the slopes that are told with values (1 + r of them), with noise;
S = D D' their covariance, w ~ N(0, I). Observing them moves the mean at p by cov(f(p), o_n) D^-T w. With running trials, whose
outcomes come first, the same after those: cov and S are then conditioned on them, and their own w moves the mean beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..numerics import Array, cholesky
from ..surrogate.basis import Slopes, Values, covariance
from ..surrogate.belief import Belief
from ..surrogate.gradients import slope_noise
from ..surrogate.kernels import Kernel
from ..surrogate.posterior import Posterior

JITTER = 1e-9


@dataclass(frozen=True)
class Told:
    """What trials tell: a value with noise, and slopes along ``columns`` with a share of noise."""

    posterior: Posterior
    columns: NDArray[np.intp]
    share: float

    def parts(self, Z: Array) -> tuple[Values, Slopes]:
        """Values at Z, and slopes, those of one point together."""
        kernel, r = self.posterior.kernel, len(self.columns)
        return Values(kernel.scale(Z)), Slopes.at(kernel, np.repeat(Z, r, axis=0), np.tile(self.columns, len(Z)))

    def moves(self, Z: Array, P: Array, G: Array, active: NDArray[np.bool_] | None = None) -> tuple[Array, Array]:
        """cov D^-T of each candidate Z[n] with all of P (N x m x (1 + r)), and with its own answer G[n] (N x (1 + r)).

        ``active`` (N x r) says which parameters count at a candidate: the others tell no slope there.
        """
        posterior, kernel, count, r = self.posterior, self.posterior.kernel, len(Z), len(self.columns)
        values, slopes = self.parts(Z)

        def grouped(of_values: Array, of_slopes: Array) -> Array:
            of_slopes = of_slopes.reshape(*of_slopes.shape[:-1], count, r)
            if active is not None:
                of_slopes = of_slopes * active
            return np.concatenate([of_values[..., None], of_slopes], axis=-1)

        V = grouped(posterior.R @ posterior.basis.to(values), posterior.R @ posterior.basis.to(slopes))  # n x N x (1 + r)
        S = -np.einsum("knp,knq->npq", V, V)
        S[:, 0, 0] += kernel.variance + posterior.noise
        inner = np.arange(1, r + 1)
        steep = slope_noise(kernel, 1.0, slopes).reshape(count, r)  # what a slope may be beforehand
        S[:, inner, inner] += (1.0 + self.share) * steep
        S[:, np.arange(r + 1), np.arange(r + 1)] += JITTER * np.concatenate([np.full((count, 1), kernel.variance), steep], axis=1)
        inverse = np.linalg.inv(np.linalg.cholesky(S))
        fixed = Values(kernel.scale(P))
        there = grouped(covariance(kernel, fixed, values), covariance(kernel, fixed, slopes))  # m x N x (1 + r)
        there = there - np.einsum("km,knp->mnp", posterior.R @ posterior.basis.to(fixed), V)
        own = paired_prior(kernel, values, slopes, kernel.scale(G), r)
        if active is not None:
            own[:, 1:] *= active
        own = own - np.einsum("kn,knp->np", posterior.R @ posterior.basis.to_values(kernel.scale(G)), V)
        return np.einsum("mnp,nqp->nmq", there, inverse), np.einsum("np,nqp->nq", own, inverse)


def paired_prior(kernel: Kernel, values: Values, slopes: Slopes, answers: Array, r: int) -> Array:
    """Prior covariances of f at each answer with the value and slopes at its own candidate (N x (1 + r))."""
    apart = values.A - answers
    k, slope = kernel.profiled(np.einsum("ij,ij->i", apart, apart))
    along = np.take_along_axis(apart, slopes.columns.reshape(len(answers), r), axis=1)
    return np.column_stack([k, 2.0 * slope[:, None] * along * slopes.s.reshape(len(answers), r)])


@dataclass(frozen=True)
class Running:
    """What running trials will tell, and the posterior once they have: cov with them times C^-T moves the mean."""

    before: Posterior
    after: Posterior
    parts: tuple[Values, Slopes]
    inverse: Array  # C^-1

    @classmethod
    def of(cls, belief: Belief) -> Running:
        before = belief.settled
        assert before is not None
        told = Told(before, belief.sloped, belief.slope_share)
        values, slopes = told.parts(belief.waiting)
        encoding = belief.encoding
        if encoding.conditional and len(belief.running):  # what is not active there tells no slope
            active = encoding.space.active(belief.running)[:, encoding.groups[belief.sloped]].ravel()
            slopes = Slopes(slopes.A[active], slopes.columns[active], slopes.s[active])
        noise = slope_noise(before.kernel, belief.slope_share, slopes) + JITTER * slope_noise(before.kernel, 1.0, slopes)
        noises = np.concatenate([np.full(len(values), before.noise), noise])
        joint = np.block([
            [before.covariance_of(values, values), before.covariance_of(values, slopes)],
            [before.covariance_of(slopes, values), before.covariance_of(slopes, slopes)],
        ])
        joint[np.diag_indices(len(joint))] += noises
        factor, _ = cholesky(joint)
        after = before.condition_on(values, before.expected(values), noises[: len(values)])
        after = after.condition_on(slopes, after.expected(slopes), noise)
        return cls(before, after, (values, slopes), np.asarray(np.linalg.inv(factor), dtype=float))

    def moves(self, X: Array) -> Array:
        """At features X (m x all that they tell)."""
        there = Values(self.before.kernel.scale(X))
        return np.hstack([self.before.covariance_of(there, part) for part in self.parts]) @ self.inverse.T
