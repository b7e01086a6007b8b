"""Expected quantile improvement for the median: the improvement that is expected to be known after a trial with noise.

Source: Picheny, Ginsbourger, Richet and Caplin, "Quantile-based optimization of noisy computer experiments with tunable
precision" (2013), with the quantile 1/2, so that it is about the posterior mean.

Notation
    f(x) ~ N(mu, s^2)       the posterior of the objective, which is minimised
    t^2                     the variance of an observation's noise
    y*                      the incumbent: the lowest posterior mean at the target so far

After a trial at x the posterior mean there is N(mu, d^2), and EQI is the expected improvement of it:

    d = s^2 / sqrt(s^2 + t^2)           EQI = d h((y* - mu) / d)        h(z) = phi(z) + z Phi(z)
    d' = s (s^2 + 2 t^2) / (s^2 + t^2)^(3/2)                            the derivative of d by s

Without noise d = s, and this is EI. With noise EI is high wherever f may be low, also where the next noisy trial can hardly
show it: it tries the place of the best again and again. There d is much smaller than s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._validation import number_between
from ..numerics import Array
from ..surrogate.belief import Belief
from .base import Acquisition
from .cost_aware import CostWeightedEI, cost_weighted_surface
from .improvement import improvement_surface, log_expected_improvement
from .optimize.optimizer import Surface


@dataclass(frozen=True)
class EQI(CostWeightedEI):
    """Expected quantile improvement: how much better than the best a config is expected to prove after one more noisy trial.

    Use it where the same config gives different values. Without noise it is ``EI``. ``method="auto"`` uses it where learning
    curves are reported.

    alpha  how much cost counts: the improvement is divided by cost^alpha

    >>> space = st.Space(x=st.Float(0, 1))
    >>> st.minimize(lambda c: (c["x"] - 0.3) ** 2, space, 9, method=st.EQI()).best.value < 0.05
    True
    """

    alpha: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", number_between(self.alpha, "EQI: alpha", 0))

    def exponent(self, belief: Belief) -> float:
        return float(self.alpha)

    def surface(self, belief: Belief, rng: np.random.Generator) -> Surface:
        best, noise = belief.incumbent, float(belief.objective.noise)

        def score(mean: Array, deviation: Array) -> tuple[Array, Array, Array]:
            return log_quantile_improvement(mean, deviation, best, noise)

        return cost_weighted_surface(improvement_surface(belief, score), belief, self.exponent(belief))

    def averaged_surface(self, belief: Belief, rng: np.random.Generator) -> Surface:
        return Acquisition.averaged_surface(self, belief, rng)


def log_quantile_improvement(mean: Array, deviation: Array, best: float, noise: float) -> tuple[Array, Array, Array]:
    """log EQI and its derivatives by mean and deviation of f; ``noise`` is a variance."""
    total = deviation**2 + noise
    known = deviation**2 / np.sqrt(total)  # d
    value, by_mean, by_known = log_expected_improvement(mean, known, best)
    return value, by_mean, by_known * deviation * (total + noise) / total**1.5
