"""The hyperparameters of a GP as one vector of logarithms, with bounds and a prior.

theta = (log l_1 .. log l_G, log s2, log noise [, log a_1 .. log a_G, log b_1 .. log b_G] [, log share of slopes' noise]),
G parameters; axes are not bent where slopes were told. Targets are standardised first, so the numbers below are in units of the
targets' standard deviation and of the unit cube.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..numerics import Array
from .kernels import Kernel, Warp


@dataclass(frozen=True)
class Layout:
    """Where each hyperparameter stands in theta, what is believed of it beforehand, and how far it may go."""

    groups: NDArray[np.intp]
    warped: bool = False
    fidelities: tuple[int, ...] = ()  # parameters that are expected to matter little: fidelities
    with_gradients: bool = False  # whether slopes are among the data

    # Length scales: log-normal around a multiple of sqrt(G), so that a random function stays about as predictable when
    # parameters are added. The numbers were chosen on the tuning set (`python -m benchmarks.defaults`).
    LENGTH_CENTRE = 0.5
    LENGTH_WIDTH = 1.0
    # A fidelity is declared because low ones are believed to say something of the target. Told so, the model spends its first
    # evaluations there; without it a handful of data may suggest that fidelities have nothing in common, at great cost. Of
    # {1, 3, 6} times the length of others, 3 and 6 had a third or less of the regret of 1 on two functions outside the reports.
    FAR = 4.0
    VARIANCE_WIDTH = 1.0
    NOISE_CENTRE = 1e-4
    NOISE_WIDTH = 2.0
    WARP_WIDTH = 0.5

    @cached_property
    def count(self) -> int:
        """G."""
        return int(self.groups.max()) + 1

    @cached_property
    def size(self) -> int:
        return self.count * (3 if self.warped else 1) + 2 + self.with_gradients

    @cached_property
    def centre(self) -> Array:
        theta = np.zeros(self.size)
        theta[: self.count] = np.log(self.LENGTH_CENTRE) + 0.5 * np.log(self.count)
        theta[list(self.fidelities)] += np.log(self.FAR)
        theta[self.count + 1] = np.log(self.NOISE_CENTRE)
        if self.with_gradients:
            theta[-1] = np.log(self.NOISE_CENTRE)
        return theta

    @cached_property
    def width(self) -> Array:
        width = np.full(self.size, self.WARP_WIDTH)
        width[: self.count] = self.LENGTH_WIDTH
        width[self.count : self.count + 2] = self.VARIANCE_WIDTH, self.NOISE_WIDTH
        if self.with_gradients:
            width[-1] = self.NOISE_WIDTH
        return width

    @cached_property
    def bounds(self) -> list[tuple[float, float]]:
        lengths = [(np.log(0.02), np.log(50.0) + 0.5 * np.log(self.count))] * self.count
        noise = (np.log(1e-7), np.log(2.0))
        shapes = [(-1.5, 1.5)] * (self.size - self.count - 2 - self.with_gradients)
        return lengths + [(-7.0, 7.0), noise] + shapes + [noise] * self.with_gradients

    def clip(self, theta: Array) -> Array:
        low, high = np.array(self.bounds).T
        return np.clip(theta, low, high)

    def log_prior(self, theta: Array) -> tuple[float, Array]:
        """Up to a constant, and its gradient."""
        off = (theta - self.centre) / self.width
        return -0.5 * float(off @ off), -off / self.width

    def warp(self, theta: Array) -> Warp | None:
        if not self.warped:
            return None
        shapes = np.exp(theta[self.count + 2 :])
        return Warp(shapes[: self.count][self.groups], shapes[self.count :][self.groups])

    def kernel(self, theta: Array, profile: str) -> Kernel:
        return Kernel(profile, np.exp(-theta[: self.count])[self.groups], float(np.exp(theta[self.count])), self.warp(theta))

    def noise(self, theta: Array) -> float:
        return float(np.exp(theta[self.count + 1]))

    def gradient_noise_share(self, theta: Array) -> float:
        """The noise of slopes, as a share of their prior variance."""
        return float(np.exp(theta[-1]))

    def per_group(self, per_column: Array) -> Array:
        """Sums over the columns of each parameter."""
        return np.bincount(self.groups, per_column, minlength=self.count).astype(float)
