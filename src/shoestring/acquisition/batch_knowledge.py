"""The knowledge gradient of a batch by Monte Carlo: unbiased, with an unbiased gradient.

Source: Wu and Frazier, "Continuous-fidelity Bayesian optimization with knowledge gradient" (2017), section 3.3.

Notation
    z_1:q       the batch (q points, each with fidelities where the space has them);  K(z, z) + noise I = D D'
    W           N(0, I_q), v = D'^-1 W:  mu_W(x) = mu(x) + sigma~(x, z) W = mu(x) + k' v,   k_i = cov(f(x), f(z_i))    (3.6)
    x*(W)       where mu_W is lowest, over the space at the target fidelity
    x_0         where mu is lowest

    KG(z) = E[ mu_W(x_0) - mu_W(x*(W)) ]

since E[mu_W(x_0)] = min mu: the estimator of the paper less a variate of mean zero, so that no term of it is negative. By the
envelope theorem x* is held fixed in the gradient. With k now cov(f(x*), f(z)) - cov(f(x_0), f(z)) and c = D^-1 k,

    d(k' v) = v' dk - c' dD' v,     so the derivative with respect to D is -tril(v c'),

and with respect to K(z, z), by the Cholesky factor's reverse mode (Smith 1995), the symmetric part of
D'^-1 P D^-1 with P the lower triangle, its diagonal halved, of D' times that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from ..numerics import Array, cholesky
from ..surrogate.belief import Belief
from ..surrogate.cross import Cross
from ..surrogate.posterior import VARIANCE_FLOOR
from .ascent import ascend
from .candidates import quasi_random

SPREAD = 512  # quasi-random points from which descents start where they are the lowest
STEPS = 40  # of a descent


@dataclass(frozen=True)
class BatchKnowledge:
    """A belief, and points at the target fidelity from which its future means are minimised, x_0 the first of them."""

    belief: Belief
    points: Array  # m x D
    mean: Array  # m
    cross: Cross

    @classmethod
    def of(cls, belief: Belief, rng: np.random.Generator) -> BatchKnowledge:
        space = belief.encoding.space
        spread = space.snap(space.at_target(quasi_random(SPREAD, len(space), rng)))
        alone = cls._over(belief, np.vstack([belief.tried, spread]))
        nothing = np.zeros((1, 1))  # an observation that moves nothing: the minimum of the mean itself
        order = np.argsort(alone.mean, kind="stable")[:8]
        found = alone._descend(alone.points[order], belief.encoding.features(alone.points[:1]), np.tile(nothing, (len(order), 1)))
        every = np.vstack([found, alone.points])
        lowest = int(np.argmin(belief.objective.mean_at(belief.encoding.features(every))))
        return cls._over(belief, np.vstack([every[lowest], np.delete(every, lowest, axis=0)]))

    @classmethod
    def _over(cls, belief: Belief, points: Array) -> BatchKnowledge:
        Z = belief.encoding.features(points)
        return cls(belief, points, belief.objective.mean_at(Z), Cross.between(belief.objective, Z))

    def drops(self, U: Array, W: Array, *, descend: bool = True) -> tuple[Array, Array]:
        """mu_W(x_0) - mu_W(x*) for a batch U (q x D) and each row of W (S x q), and the x* (S x D).

        Without ``descend``, x* is the lowest of the points and of the batch itself: too low a drop, and much faster.
        """
        encoding, posterior = self.belief.encoding, self.belief.objective
        Z, own = encoding.features(U), encoding.space.at_target(U)
        v = _solve(self.factor(Z).T, W.T, lower=False).T
        own_Z = encoding.features(own)
        starts, mean = np.vstack([self.points, own]), np.append(self.mean, posterior.mean_at(own_Z))
        k = np.vstack([self.cross.covariance(Z).T, posterior.covariance(own_Z, Z)])
        future = mean[:, None] + k @ v.T  # (m + q) x S
        if descend:  # two starts for each W, so that one that lies in the wrong valley does not decide
            best = np.concatenate([2 * np.argmin(future[::2], axis=0), 2 * np.argmin(future[1::2], axis=0) + 1])
            ends = self._descend(starts[best], Z, np.tile(v, (2, 1)))
            there = self._future(encoding.features(ends), Z, np.tile(v, (2, 1))).reshape(2, -1)
            side, column = np.argmin(there, axis=0), np.arange(len(W))
            x, lowest = ends.reshape(2, len(W), -1)[side, column], there[side, column]
        else:
            at = np.argmin(future, axis=0)
            x, lowest = starts[at], future[at, np.arange(len(W))]
        return future[0] - np.minimum(lowest, future[0]), np.where((lowest < future[0])[:, None], x, self.points[0])

    def slope(self, U: Array, W: Array, minimisers: Array) -> Array:
        """The gradient of the mean drop with respect to U (q x D), given the x* of each row of W."""
        encoding, posterior = self.belief.encoding, self.belief.objective
        Z = encoding.features(U)
        D = self.factor(Z)
        v = _solve(D.T, W.T, lower=False)  # q x S
        ahead = Cross.between(posterior, encoding.features(np.vstack([minimisers, self.points[:1]])))
        k = ahead.covariance(Z)
        c = _solve(D, k[:, :-1] - k[:, -1:], lower=True)
        by_factor = np.tril(-(v @ c.T) / len(W))
        P = np.tril(D.T @ by_factor)
        P[np.diag_indices(len(P))] *= 0.5
        whole = _solve(D.T, _solve(D.T, P.T, lower=False).T, lower=False)  # D'^-1 P D^-1
        by_covariance = 0.5 * (whole + whole.T)
        weights = np.column_stack([v, -v.sum(axis=1)]) / len(W)
        # every pair of the batch counts twice, and so does a point with itself: its variance moves with both
        total = ahead.pull_back(Z, weights) + Cross.between(posterior, Z).pull_back(Z, 2.0 * by_covariance)
        return -encoding.pull_back(U, total)

    def factor(self, Z: Array) -> Array:
        """D. A little noise where there is none: twice the same point, or one that was observed, teaches nothing."""
        posterior = self.belief.objective
        covariance = posterior.covariance(Z)
        covariance[np.diag_indices(len(Z))] += posterior.noise + VARIANCE_FLOOR * posterior.kernel.variance
        return cholesky(covariance)[0]

    def _future(self, X: Array, Z: Array, v: Array) -> Array:
        """mu_W at each row of X for its own row of v."""
        posterior = self.belief.objective
        moved: Array = np.einsum("ij,ij->i", posterior.covariance(X, Z), v)
        return posterior.mean_at(X) + moved

    def _descend(self, starts: Array, Z: Array, v: Array) -> Array:
        """Minimisers of mu_W, each start for its own row of v, as points of the space no higher than where they started."""
        encoding, posterior = self.belief.encoding, self.belief.objective
        free = encoding.numeric & np.array([not parameter.fidelity for parameter in encoding.space.values()])
        if not free.any():
            return starts
        batch, count = Cross.between(posterior, Z), len(starts)

        def falling(marked: Array) -> tuple[Array, Array]:
            points, mine = marked[:, :-1], v[np.rint(marked[:, -1] * count).astype(np.intp)]
            X = encoding.features(points)
            mean, _, d_mean, _ = posterior.with_gradients(X)
            moved = np.einsum("ij,ij->i", batch.covariance(X), mine)
            slope = encoding.pull_back(points, d_mean + batch.pull_back(X, mine))
            return -(mean + moved), np.column_stack([-slope, np.zeros(len(points))])

        marked = np.column_stack([starts, np.arange(count) / count])  # a last coordinate that stays says whose v it is
        ends, _ = ascend(falling, marked, np.append(free, False), steps=STEPS, tolerance=1e-9)
        points = encoding.space.snap(ends[:, :-1])
        lower = self._future(encoding.features(points), Z, v) < self._future(encoding.features(starts), Z, v)
        return np.where(lower[:, None], points, starts)


def _solve(triangle: Array, right: Array, *, lower: bool) -> Array:
    solved: Array = solve_triangular(triangle, right, lower=lower, check_finite=False)
    return solved
