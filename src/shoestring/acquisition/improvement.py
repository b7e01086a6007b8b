"""Improvement-based acquisitions in closed form: EI, log EI, PI, LCB.

Notation: f(x) ~ N(mu, s^2) is minimised, y* the value to beat, z = (y* - mu) / s, h(z) = phi(z) + z Phi(z).
    EI = s h(z)            d log EI / d mu = -Phi / (s h)            d log EI / d s = phi / (s h)
    PI = Phi(z)            d log PI / d z  = phi / Phi
    LCB = mu - sqrt(beta) s
Everything is maximised in log space: EI itself underflows to a flat zero a few deviations from the incumbent, where its
logarithm still points the way.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..errors import MethodError
from ..numerics import Array, log_h, log_Phi
from ..surrogate.belief import Belief
from .base import Acquisition
from .optimize.optimizer import Surface

Score = Callable[[Array, Array], tuple[Array, Array, Array]]  # (mean, deviation) -> value, d/d mean, d/d deviation


def log_expected_improvement(mean: Array, deviation: Array, best: float) -> tuple[Array, Array, Array]:
    """log EI and its derivatives with respect to mean and deviation."""
    z = (best - mean) / deviation
    value, slope = log_h(z)
    slope = slope / deviation
    return np.log(deviation) + value, -slope, 1.0 / deviation - z * slope


def log_probability_of_improvement(mean: Array, deviation: Array, best: float) -> tuple[Array, Array, Array]:
    """log PI and its derivatives."""
    z = (best - mean) / deviation
    value, slope = log_Phi(z)
    slope = slope / deviation
    return value, -slope, -z * slope


def negative_mean_surface(belief: Belief) -> Surface:
    """Minus the posterior mean, wherever evaluations may fail."""
    return improvement_surface(replace(belief, feasibility=None), lambda mean, deviation: negative_lower_bound(mean, deviation, 0.0))


def negative_lower_bound(mean: Array, deviation: Array, root_beta: float) -> tuple[Array, Array, Array]:
    """-LCB and its derivatives."""
    return root_beta * deviation - mean, np.full_like(mean, -1.0), np.full_like(mean, root_beta)


def improvement_surface(belief: Belief, score: Score) -> Surface:
    """A score of mean and deviation as a surface over points, log P(does not fail) added where trials have failed."""
    posterior, feasibility, encoding = belief.objective, belief.feasibility, belief.encoding

    def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
        Z = encoding.features(U)
        if not gradient:
            mean, variance = posterior.mean_and_variance(Z)
            total = score(mean, np.sqrt(variance))[0]
            return (total if feasibility is None else total + feasibility.log_probability(Z)), None
        mean, variance, d_mean, d_variance = posterior.with_gradients(Z)
        deviation = np.sqrt(variance)
        total, by_mean, by_deviation = score(mean, deviation)
        slope = by_mean[:, None] * d_mean + (by_deviation / (2.0 * deviation))[:, None] * d_variance
        if feasibility is not None:
            chance, d_chance = feasibility.log_probability_with_gradient(Z)
            total, slope = total + chance, slope + d_chance
        return total, encoding.pull_back(U, slope)

    return value


@dataclass(frozen=True)
class LogEI(Acquisition):
    """The logarithm of expected improvement."""

    def surface(self, belief: Belief, rng: np.random.Generator) -> Surface:
        return improvement_surface(belief, lambda mean, deviation: log_expected_improvement(mean, deviation, belief.incumbent))


@dataclass(frozen=True)
class EI(LogEI):
    """Expected improvement. Searched by its logarithm, which has the same maximum: the same suggestions as ``LogEI``."""


@dataclass(frozen=True)
class PI(Acquisition):
    """Probability of improvement by more than ``margin`` (in standard deviations of the values seen)."""

    margin: float = 0.01

    def __post_init__(self) -> None:
        if not (math.isfinite(self.margin) and self.margin >= 0):
            raise MethodError(f"PI: margin must be a number >= 0, not {self.margin!r}")

    def surface(self, belief: Belief, rng: np.random.Generator) -> Surface:
        best = belief.incumbent - self.margin
        return improvement_surface(belief, lambda mean, deviation: log_probability_of_improvement(mean, deviation, best))


@dataclass(frozen=True)
class LCB(Acquisition):
    """Lower confidence bound mu - sqrt(beta) s."""

    beta: float = 4.0
    log_space: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.beta) and self.beta >= 0):
            raise MethodError(f"LCB: beta must be a number >= 0, not {self.beta!r}")

    def surface(self, belief: Belief, rng: np.random.Generator) -> Surface:
        return improvement_surface(belief, lambda mean, deviation: negative_lower_bound(mean, deviation, math.sqrt(self.beta)))
