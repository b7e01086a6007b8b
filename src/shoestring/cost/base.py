"""What a cost model is: from observed costs to a distribution of log cost, anywhere, with gradient.

Costs are positive and span orders of magnitude, so every model works on gamma = log c. Its answer is normal,
gamma(x) ~ N(m(x), v(x)), so c is log-normal with mean E[c] = exp(m + v / 2): a cost that is not known well is expected to
be higher, never lower, and can not become negative.

Notation: U (n x D) points of the unit cube (fidelities among the coordinates), gamma (n) logarithms of costs; a censored
cost is a lower bound (the evaluation was cut off).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..numerics import Array
from ..space.encoding import Encoding


@dataclass(frozen=True)
class CostObservations:
    """What is known of costs: finished and failed trials alike; trials without a cost are left out."""

    U: Array
    log_cost: Array
    censored: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.log_cost)

    def with_gamma(self, gamma: Array) -> CostObservations:
        return CostObservations(self.U, gamma, self.censored)


class CostPosterior(Protocol):
    """Log cost as believed after the data; frozen."""

    @property
    def name(self) -> str:
        """For people: "linear in max_depth, rounds"."""
        ...

    def log_cost(self, U: Array) -> tuple[Array, Array]:
        """Mean and variance of log cost (of a new evaluation, noise included) at points."""
        ...

    def log_cost_with_gradient(self, U: Array) -> tuple[Array, Array, Array, Array]:
        """The same with the gradients of both with respect to U (m x D; zero for choices and inactive parameters)."""
        ...

    def leave_one_out(self) -> tuple[Array, Array]:
        """Mean and variance of log cost at each observation, predicted from the others (closed form)."""
        ...


class CostModel(Protocol):
    """A specification; ``fit`` returns a posterior, from one observation on.

    ``known`` is what the last fit left behind (``remember``): where to start from, or what was chosen; it may be ignored.
    """

    def fit(self, costs: CostObservations, encoding: Encoding, known: Mapping[str, Any] | None = None) -> CostPosterior: ...


def remember(posterior: CostPosterior, trials: int) -> dict[str, Any]:
    """What the next fit may start from, JSON-ready."""
    known = {"kind": type(posterior).__name__, "trials": trials, "theta": list(getattr(posterior, "theta", ()))}
    if parts := getattr(posterior, "parts", ()):
        known["parts"] = [remember(part, trials) for part in parts]
    return known


def start_from(known: Mapping[str, Any] | None, kind: str) -> Array | None:
    """The hyperparameters of the last fit, if it was of this kind."""
    return np.array(known["theta"], dtype=float) if known and known.get("kind") == kind and known.get("theta") else None


def expected_log_cost(posterior: CostPosterior, U: Array) -> Array:
    """log E[c] = m + v / 2."""
    mean, variance = posterior.log_cost(U)
    return mean + 0.5 * variance


def expected_log_cost_with_gradient(posterior: CostPosterior, U: Array) -> tuple[Array, Array]:
    mean, variance, d_mean, d_variance = posterior.log_cost_with_gradient(U)
    return mean + 0.5 * variance, d_mean + 0.5 * d_variance
