"""Where evaluations fail: the chance that one succeeds, learnt from those that did and did not.

A GP is fitted to the labels 1 (finished) and 0 (failed) like to any other target, so the evidence decides whether failures
have a place (short noise, a chance near 0 or 1) or strike at random (long noise, the same chance everywhere, which changes
no decision). The chance that a new label lies above one half is

    P(x) = Phi((m(x) - 1/2) / sqrt(v(x) + noise))

with m, v the mean and variance of the latent label. Worked with in logarithms: deep inside a failing region P underflows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..numerics import Array, log_Phi
from .gp import GP, Fit
from .posterior import Posterior


@dataclass(frozen=True)
class Feasibility:
    """A posterior on standardised labels, and the value between "failed" and "finished" on that scale."""

    fit: Fit
    threshold: float

    failures: int  # the last rows of the posterior's data

    @property
    def posterior(self) -> Posterior:
        return self.fit.posterior

    def predicted_failures(self) -> NDArray[np.bool_]:
        """Which failures the other trials would have foretold: those with a place, not those that struck at random.

        Leave-one-out in closed form: without row i its label has mean y_i - alpha_i / Q_ii and variance 1 / Q_ii, Q = K^-1.
        """
        diagonal = np.einsum("ij,ij->j", self.posterior.R, self.posterior.R)
        leave_one_out = self.posterior.y - self.posterior.alpha / diagonal
        return np.asarray(leave_one_out[len(leave_one_out) - self.failures :] < self.threshold)

    def log_probability(self, Z: Array) -> Array:
        mean, variance = self.posterior.mean_and_variance(Z)
        return log_Phi((mean - self.threshold) / np.sqrt(variance + self.posterior.noise))[0]

    def is_likely(self, Z: Array) -> NDArray[np.bool_]:
        """Where an evaluation is likelier to succeed than not."""
        return np.asarray(self.log_probability(Z) >= np.log(0.5))

    def log_probability_with_gradient(self, Z: Array) -> tuple[Array, Array]:
        mean, variance, d_mean, d_variance = self.posterior.with_gradients(Z)
        deviation = np.sqrt(variance + self.posterior.noise)
        z = (mean - self.threshold) / deviation
        value, slope = log_Phi(z)
        dz = d_mean / deviation[:, None] - (0.5 * z / deviation**2)[:, None] * d_variance
        return value, slope[:, None] * dz


def fit_feasibility(
    finished: Array, failed: Array, groups: NDArray[np.intp], *, start: Array | None = None, cold: bool = True
) -> Feasibility | None:
    """From the features of finished and failed trials; None while nothing has failed or nothing has finished."""
    if not len(failed) or not len(finished):
        return None
    labels = np.concatenate([np.ones(len(finished)), np.zeros(len(failed))])
    centre, scale = labels.mean(), labels.std()
    fit = GP().fit(np.vstack([finished, failed]), (labels - centre) / scale, groups, start=start, cold=cold)
    return Feasibility(fit, float((0.5 - centre) / scale), len(failed))
