"""The knowledge gradient while other trials are running: averaged over what those may bring. Greedily, a batch: q-KG.

Notation (see ``knowledge``): P the pending points (p), C C' the covariance of their observations, z_s ~ N(0, I) quasi-random and
the same for every x (common random numbers), w_s = C^-T z_s. If they come out as y_s = mu_P + C z_s, then

    mu_s(x) = mu(x) + cov(x, P) w_s             and the variance falls by the same amount whatever they bring
    KG(x | pending) = 1/S sum_s KG_s(x),        KG_s with mu_s in the place of mu

The value of a batch is KG of its first points plus KG(x | those pending), so maximising this over one point with the others
pending is a step of block ascent of the joint q-KG; ``search.batch`` takes the steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, ndtri

from ..numerics import Array, cholesky
from ..surrogate.belief import Belief
from ..surrogate.cross import Cross
from ..surrogate.posterior import Posterior
from .candidate import Candidates, slopes_of_lines
from .candidates import quasi_random
from .envelope import log_expected_drop, log_expected_drop_with_gradient
from .improvement import Surface

SCENARIOS = 8


@dataclass(frozen=True)
class Scenarios:
    """What pending trials may bring: ``weights`` (S x p) are w_s."""

    settled: Posterior
    cross: Cross  # settled, and the pending points
    weights: Array

    @classmethod
    def of(cls, belief: Belief, count: int = SCENARIOS) -> Scenarios:
        settled, waiting = belief.settled, belief.waiting
        assert settled is not None
        covariance = settled.covariance(waiting)
        covariance[np.diag_indices(len(waiting))] += settled.noise
        factor, _ = cholesky(covariance)
        z = ndtri(np.clip(quasi_random(count, len(waiting), np.random.default_rng(count)), 1e-6, 1 - 1e-6))
        z -= z.mean(axis=0)  # so that on average they bring what is expected
        weights: Array = np.linalg.solve(factor.T, z.T).T.astype(float)
        return cls(settled, Cross.between(settled, waiting), weights)

    def means(self, Z: Array) -> Array:
        """mu_s at features Z (N x S)."""
        return self.settled.mean_at(Z)[:, None] + self.cross.covariance(Z) @ self.weights.T


def averaged_surface(belief: Belief, points: Array, count: int = SCENARIOS) -> Surface:
    """log KG with pending trials, the future mean minimised over ``points``.

    The variances are those of ``belief.objective``, in which the pending trials are counted; only its means are supposed.
    """
    encoding, posterior, viability = belief.encoding, belief.objective, belief.viability
    scenarios = Scenarios.of(belief, count)
    P = encoding.features(points)
    cross, there = Cross.between(posterior, P), scenarios.means(P).T  # S x m

    def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
        at = Candidates.at(posterior, encoding, U, gradient)
        N, S = len(U), len(there)
        observed = at.variance + posterior.noise
        b = np.column_stack([cross.covariance(at.Z), at.covariance]) / np.sqrt(observed)[:, None]
        a = np.concatenate([np.broadcast_to(there, (N, *there.shape)), scenarios.means(at.G)[:, :, None]], axis=2)
        a, b_all = a.reshape(N * S, -1), np.repeat(b, S, axis=0)
        if not gradient:
            total = logsumexp(log_expected_drop(a, b_all).reshape(N, S), axis=1) - math.log(S)
            return (total if viability is None else total + viability.log_chance(at.Z)), None
        drop = log_expected_drop_with_gradient(a, b_all)
        each = drop.value.reshape(N, S)
        total = logsumexp(each, axis=1) - math.log(S)
        share = np.exp(each - logsumexp(each, axis=1, keepdims=True))
        by_b = np.einsum("ns,nsm->nm", share, drop.by_b.reshape(N, S, -1))
        by_own = share * drop.by_a[:, -1].reshape(N, S)
        here, to_answer = slopes_of_lines(at, cross, b, observed, by_b, np.zeros(N))
        _, _, d_mean, _ = scenarios.settled.with_gradients(at.G)  # the means are those of the scenarios, not the supposed ones
        to_answer = to_answer + by_own.sum(axis=1)[:, None] * d_mean + scenarios.cross.pull_back(at.G, by_own @ scenarios.weights)
        if viability is not None:
            chance, d_chance = viability.log_chance_with_gradient(at.Z)
            total, here = total + chance, here + d_chance
        return total, at.pull_back(here, to_answer)

    return value
