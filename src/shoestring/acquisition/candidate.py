"""A point under consideration, seen from both ends: what would be observed there, and what it would say of the answer.

Notation: U holds x and fidelities s; Z the features of (x, s), where an observation is made; G those of (x, 1), where the answer
is wanted. Without fidelities the two are the same.

    mean            mu at G
    variance        var f at Z
    covariance      cov(f at G, f at Z)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..encoding import Encoding
from ..numerics import Array
from ..surrogate.cross import Cross
from ..surrogate.posterior import Posterior


@dataclass(frozen=True)
class Candidates:
    """Points and their moments; the slopes (N x p) only where they were asked for.

    to_mean             d mean / dG
    to_variance         d variance / dZ
    from_here, from_there       d covariance / dZ and / dG; without fidelities all of it is in from_here
    """

    encoding: Encoding
    U: Array
    Z: Array
    G: Array
    mean: Array
    variance: Array
    covariance: Array
    to_mean: Array | None = None
    to_variance: Array | None = None
    from_here: Array | None = None
    from_there: Array | None = None

    @classmethod
    def at(cls, posterior: Posterior, encoding: Encoding, U: Array, gradient: bool) -> Candidates:
        Z = encoding.features(U)
        if not encoding.space.fidelities:
            if not gradient:
                mean, variance = posterior.mean_and_variance(Z)
                return cls(encoding, U, Z, Z, mean, variance, variance)
            mean, variance, to_mean, to_variance = posterior.with_gradients(Z)
            return cls(encoding, U, Z, Z, mean, variance, variance, to_mean, to_variance, to_variance, np.zeros_like(to_mean))
        G = encoding.features(encoding.space.at_target(U))
        if not gradient:
            _, variance = posterior.mean_and_variance(Z)
            return cls(encoding, U, Z, G, posterior.mean_at(G), variance, posterior.paired(Z, G))
        _, variance, _, to_variance = posterior.with_gradients(Z)
        mean, _, to_mean, _ = posterior.with_gradients(G)
        covariance, here, there = posterior.paired_with_gradients(Z, G)
        return cls(encoding, U, Z, G, mean, variance, covariance, to_mean, to_variance, here, there)

    def pull_back(self, here: Array, there: Array) -> Array:
        """The gradient with respect to U, given those with respect to Z and to G; the answer's fidelity does not move."""
        encoding = self.encoding
        if not encoding.space.fidelities:
            return encoding.pull_back(self.U, here + there)
        moves = np.array([not parameter.fidelity for parameter in encoding.space.values()])
        answer = encoding.space.at_target(self.U)
        return encoding.pull_back(self.U, here) + moves * encoding.pull_back(answer, there)


def slopes_of_lines(at: Candidates, cross: Cross, b: Array, observed: Array, by_b: Array, by_own: Array) -> tuple[Array, Array]:
    """From d/db of all lines and d/da of x's own (the last) to d/dZ and d/dG; b = (covariances) / sqrt(observed)."""
    assert at.to_mean is not None  # all four are there, or none
    assert at.to_variance is not None
    assert at.from_here is not None
    assert at.from_there is not None
    root = np.sqrt(observed)
    own = (by_b[:, -1] / root)[:, None]
    falling = -0.5 * np.einsum("ij,ij->i", by_b, b) / observed  # b falls with the root of var + noise everywhere
    here = cross.pull_back(at.Z, by_b[:, :-1] / root[:, None]) + falling[:, None] * at.to_variance + own * at.from_here
    return here, by_own[:, None] * at.to_mean + own * at.from_there
