"""The knowledge gradient where trials tell slopes too: the expectation over the value and the gradient observed together.

Source: "Continuous-fidelity Bayesian optimization with knowledge gradient", section 3.4 (cf-d-KG); Wu et al. 2017 (d-KG).

    d-KG(x) = min mu - E[ min_i (mu(p_i) + sigma_i(x)' w) ],    w ~ N(0, I) with one entry for the value and each slope

over the same set of points P as ``knowledge``. In so many dimensions there is no closed form: SAMPLES quasi-random w, the same
for every x, in pairs w and -w, so that the estimate is never negative while no trial runs. The gradient is by differences: the
samples are fixed, and a difference costs no more than a derivative of S's factor would. What is left to gain may be too little
for any sample to show; there the value alone, whose KG is exact in logarithms, stands in, which is never more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np
from scipy.special import ndtri

from ..numerics import Array
from ..surrogate.posterior import Posterior
from .ascent import ascend
from .candidates import quasi_random
from .fidelity_knowledge import CFKG
from .improvement import Surface
from .knowledge import KG, LookAhead, imagined_minimisers
from .sloped_lines import Running, Told

SAMPLES = 64
IMAGINED = 6  # outcomes, value and slopes, after which the mean is minimised again
STEP = 1e-5  # of differences, in the unit cube
DESCENT = 15


@dataclass(frozen=True)
class SlopedLookAhead(LookAhead):
    """A belief whose next observation is a value with slopes."""

    def surface(self) -> Surface:
        """log d-KG over points."""
        exact, encoding = super().surface(), self.belief.encoding
        if not len(self.belief.sloped):
            return exact
        sampled = self.sampled()
        moving = np.flatnonzero(encoding.numeric)

        def alone(U: Array) -> Array:
            return np.maximum(exact(U, False)[0], sampled(U))

        def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
            if not gradient:
                return alone(U), None
            steps = STEP * np.eye(U.shape[1])[moving]
            stacked = alone(np.vstack([U, *(U + step for step in steps), *(U - step for step in steps)]))
            found = stacked.reshape(-1, len(U))
            slope = np.zeros_like(U)
            slope[:, moving] = ((found[1 : len(moving) + 1] - found[len(moving) + 1 :]) / (2.0 * STEP)).T
            return found[0], slope

        return value

    def imagined(self, candidates: Array) -> Array:
        return minimisers_with_slopes(self, candidates)

    def sampled(self) -> Callable[[Array], Array]:
        """log d-KG by the fixed samples, as a function of points; -inf where none of them shows a gain."""
        belief, encoding = self.belief, self.belief.encoding
        P = encoding.features(self.points)
        running = Running.of(belief) if len(belief.waiting) else None
        posterior = belief.objective if running is None else running.after
        told = Told(posterior, belief.sloped, belief.slope_share)
        first = 0 if running is None else len(running.inverse)
        w = normals(first + 1 + len(belief.sloped))
        mean = posterior.mean_at(P)
        before = mean[:, None] + (0.0 if running is None else running.moves(P) @ w[:, :first].T)  # m x S

        def value(U: Array) -> Array:
            Z, G = encoding.features(U), encoding.features(encoding.space.at_target(U))
            active = encoding.space.active(U)[:, encoding.groups[belief.sloped]] if encoding.conditional else None
            there, own = told.moves(Z, P, G, active)
            offset = posterior.mean_at(G)[:, None] + (0.0 if running is None else running.moves(G) @ w[:, :first].T)
            after = np.minimum(
                (before + there @ w[:, first:].T).min(axis=1), offset + own @ w[:, first:].T
            )  # N x S
            now = np.minimum(before.min(axis=0), offset) if running is not None else np.minimum(mean.min(), offset)
            gain = (now - after).mean(axis=1)
            with np.errstate(divide="ignore"):
                total = np.log(np.maximum(gain, 0.0))
            return np.asarray(total if belief.viability is None else total + belief.viability.log_chance(Z))

        return value


@cache
def normals(dimensions: int) -> Array:
    """SAMPLES quasi-random normal vectors, or more in many dimensions, in pairs w, -w, with second moments exactly those of
    N(0, I): so few have others by chance, and each deviation that is too wide is knowledge that is not there.
    """
    count = max(SAMPLES // 2, 4 * dimensions)
    half = ndtri(np.clip(quasi_random(count, dimensions, np.random.default_rng(dimensions)), 1e-6, 1 - 1e-6))
    factor = np.linalg.cholesky(half.T @ half / count)
    half = np.linalg.solve(factor, half.T).T
    return np.asarray(np.vstack([half, -half]))


def minimisers_with_slopes(ahead: LookAhead, candidates: Array) -> Array:
    """Where the mean would be lowest after imagined values at the candidates, and after imagined values with slopes."""
    belief, encoding = ahead.belief, ahead.belief.encoding
    alone = imagined_minimisers(ahead, candidates)
    numbers = encoding.numeric & np.array([not parameter.fidelity for parameter in encoding.space.values()])
    if not len(belief.sloped) or not numbers.any():
        return alone
    told, ends = Told(belief.objective, belief.sloped, belief.slope_share), [alone]
    for u in candidates:
        Z = encoding.features(u[None, :])
        (values, slopes), answer = told.parts(Z), encoding.space.at_target(u[None, :])
        outcomes = normals(1 + len(belief.sloped))
        for w in outcomes[:: max(len(outcomes) // IMAGINED, 1)]:
            root = np.sqrt(float(belief.objective.mean_and_variance(Z)[1][0]) + belief.objective.noise)
            one = belief.objective.condition_on(
                values, belief.objective.expected(values) + root * w[:1], np.array([belief.objective.noise])
            )
            spread = np.sqrt(np.maximum(np.diag(one.covariance_of(slopes, slopes)), 0.0))
            future = one.condition_on(slopes, one.expected(slopes) + spread * w[1:], 1e-6 * np.maximum(spread**2, 1e-12))

            def falling(points: Array, posterior: Posterior = future) -> tuple[Array, Array]:
                mean, _, slope, _ = posterior.with_gradients(encoding.features(points))
                return -mean, -encoding.pull_back(points, slope)

            low = ahead.points[int(np.argmin(future.mean_at(encoding.features(ahead.points))))]
            ends.append(encoding.space.snap(ascend(falling, np.vstack([answer, low]), numbers, steps=DESCENT, tolerance=1e-6)[0]))
    return np.vstack(ends)


@dataclass(frozen=True)
class DKG(KG):
    """The knowledge gradient of a value and its slopes. While no slopes are told: KG."""

    ahead: ClassVar[type[LookAhead]] = SlopedLookAhead


@dataclass(frozen=True)
class CFDKG(CFKG):
    """Knowledge per unit of cost from values and slopes, over configurations and fidelities together."""

    ahead: ClassVar[type[LookAhead]] = SlopedLookAhead
