"""Feasibility: the probability that an evaluation succeeds, learnt from finished and failed trials.

A GP is fitted to the labels 1 (finished) and 0 (failed) like to any other target. The marginal likelihood then decides whether
failures depend on the config (little noise, probabilities near 0 or 1) or are random (much noise, the same probability
everywhere, which changes no decision).

Notation: m(x), v(x) the mean and variance of the latent label; Q = K^-1 the inverse covariance of the labels.
    (1)  P(x) = Phi((m(x) - 1/2) / sqrt(v(x) + noise))      the probability that a new label is above one half
    (2)  without label i:  mean y_i - alpha_i / Q_ii, variance 1 / Q_ii         (Rasmussen and Williams 2006, equation 5.12)
All is computed in logarithms, since P underflows far inside a region of failures.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..numerics import Array, log_Phi
from .base import Fit
from .gp import GP
from .posterior import Posterior


@dataclass(frozen=True)
class Feasibility:
    """A fit to standardised labels.

    threshold  the label 1/2 on that scale
    failures   the number of failed trials, the last rows of the posterior's data
    """

    fit: Fit
    threshold: float
    failures: int

    @property
    def posterior(self) -> Posterior:
        posterior: Posterior = self.fit.posterior
        return posterior

    def predicted_failures(self) -> NDArray[np.bool_]:
        """For each failure, whether the other trials predict it (leave-one-out): random failures are not predicted."""
        posterior = self.posterior
        diagonal = np.einsum("ij,ij->j", posterior.R, posterior.R)
        leave_one_out = posterior.y - posterior.alpha / diagonal  # (2)
        return np.asarray(leave_one_out[len(leave_one_out) - self.failures :] < self.threshold)

    def log_probability(self, Z: Array) -> Array:
        """log P of success at features Z."""
        mean, variance = self.posterior.mean_and_variance(Z)
        return log_Phi((mean - self.threshold) / np.sqrt(variance + self.posterior.noise))[0]  # (1)

    def is_likely(self, Z: Array) -> NDArray[np.bool_]:
        """Where success is at least as likely as failure."""
        return np.asarray(self.log_probability(Z) >= np.log(0.5))

    def log_probability_with_gradient(self, Z: Array) -> tuple[Array, Array]:
        """log P of success at features Z, and its gradient with respect to them."""
        mean, variance, d_mean, d_variance = self.posterior.with_gradients(Z)
        deviation = np.sqrt(variance + self.posterior.noise)
        z = (mean - self.threshold) / deviation
        value, derivative = log_Phi(z)
        dz = d_mean / deviation[:, None] - (0.5 * z / deviation**2)[:, None] * d_variance
        return value, derivative[:, None] * dz


def fit_feasibility(
    finished: Array, failed: Array, groups: NDArray[np.intp], *, start: Array | None = None, cold: bool = True
) -> Feasibility | None:
    """Fit to the features of finished and failed trials; None while one of the two is empty."""
    if not len(failed) or not len(finished):
        return None
    labels = np.concatenate([np.ones(len(finished)), np.zeros(len(failed))])
    centre, scale = labels.mean(), labels.std()
    fit = GP().fit(np.vstack([finished, failed]), (labels - centre) / scale, groups, start=start, cold=cold)
    return Feasibility(fit, float((0.5 - centre) / scale), len(failed))
