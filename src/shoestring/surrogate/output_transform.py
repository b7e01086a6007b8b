"""Output transforms: how values are transformed before they are modelled. All are capped above and standardised.

Values are minimised here. A cap on the bad side loses nothing, since it does not matter how bad a bad value is. It keeps one
value of 1e300 from flattening all the others. The good side is never changed.

Notation: y the values, t the modelled values, x = (y - median) / spread.
    (1)  t = (min(g(y), cap) - centre) / scale

    standard       g(y) = y
    log            g(y) = log y, for positive values
    yeo-johnson    g(y) = the Yeo-Johnson transform of x with lambda = 0 (Yeo and Johnson 2000): log(1 + x) above the median,
                   -((1 - x)^2 - 1) / 2 below it, so that a heavy tail of bad values does not hide the differences of good ones
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from ..numerics import Array

KINDS = ("standard", "log", "yeo-johnson")
OLD_NAMES = {"bent": "yeo-johnson"}  # in studies and programs from before the rename
CAP_SPREADS = 3.0  # spreads between the median and the cap
QUADRATURE_NODES = 40
LARGEST_VALUE = 1e300  # values beyond are clipped, so that the difference of two of them is finite
MIN_RELATIVE_SCALE = 1e-12  # as a share of the centre: a smaller spread of values is rounding
DERIVATIVE_STEP = 1e-4  # in modelled units, for central differences


def read_kind(name: str | None) -> str | None:
    """The present name of a kind: older studies say ``"bent"`` for ``"yeo-johnson"``. Other names stay as they are."""
    return OLD_NAMES.get(name, name) if isinstance(name, str) else name


@dataclass(frozen=True)
class OutputTransform:
    """One transform with its constants: see the module's docstring; ``middle`` is the median."""

    kind: str
    middle: float
    spread: float
    cap: float
    centre: float
    scale: float

    @classmethod
    def of(cls, y: Array, kind: str = "standard") -> OutputTransform:
        """The transform that gives y mean 0 and standard deviation 1 after the cap."""
        y = _clipped(y)
        middle, spread = (0.0, 1.0) if kind != "yeo-johnson" else middle_and_spread(y)
        uncapped = cls(kind, middle, spread, np.inf, 0.0, 1.0)
        g = uncapped.unscaled(y)
        cap = _cap(g)
        g = np.minimum(g, cap)
        centre = float(g.mean())
        reach = float(np.abs(g - centre).max())
        scale = reach * float(np.sqrt(np.mean(((g - centre) / reach) ** 2))) if reach > 0 else 0.0  # no overflow
        floor = MIN_RELATIVE_SCALE * max(abs(centre), np.finfo(float).tiny)
        return cls(kind, middle, spread, cap, centre, scale if scale > floor else max(1.0, abs(centre)))

    def unscaled(self, y: Array) -> Array:
        """g(y)."""
        if self.kind == "log":
            return np.log(y)
        if self.kind == "standard":
            return y
        x = np.minimum(y - self.middle, 1e290 * min(self.spread, 1e10)) / self.spread
        low = np.minimum(x, 0.0)
        return np.where(x < 0.0, low - 0.5 * low * low, np.log1p(np.maximum(x, 0.0)))

    def forward(self, y: Array) -> Array:
        """t(y), equation (1)."""
        return (np.minimum(self.unscaled(_clipped(y)), self.cap) - self.centre) / self.scale

    def inverse(self, t: Array) -> Array:
        """y(t), below the cap."""
        g = self.centre + self.scale * np.asarray(t)
        if self.kind == "log":
            return np.exp(np.minimum(g, 700.0))
        if self.kind == "standard":
            return g
        x = np.where(g < 0.0, 1.0 - np.sqrt(1.0 - 2.0 * np.minimum(g, 0.0)), np.expm1(np.clip(g, 0.0, 600.0)))
        return self.middle + self.spread * x

    def derivative(self, t: float) -> float:
        """dt/dy at a modelled value: how many of the model's units one of the user's units is there."""
        up, down = self.inverse(np.array([t + DERIVATIVE_STEP, t - DERIVATIVE_STEP]))
        return 2.0 * DERIVATIVE_STEP / max(float(up - down), 1e-300)

    def derivatives(self, y: Array) -> Array:
        """dt/dy at values; zero above the cap."""
        y = _clipped(y)
        g = self.unscaled(y)
        if self.kind == "log":
            dg_dy = 1.0 / y
        elif self.kind == "standard":
            dg_dy = np.ones_like(y)
        else:
            x = (y - self.middle) / self.spread
            dg_dy = np.where(x < 0.0, 1.0 + np.maximum(-x, 0.0), 1.0 / (1.0 + np.maximum(x, 0.0))) / self.spread
        return np.where(g <= self.cap, dg_dy, 0.0) / self.scale

    def log_slope(self, t: Array) -> Array:
        """log dy/dt at modelled values, below the cap."""
        if self.kind == "standard":
            return np.full_like(t, np.log(self.scale))
        g = self.centre + self.scale * t
        if self.kind == "log":
            return np.asarray(np.minimum(g, 700.0) + np.log(self.scale))
        below = -0.5 * np.log1p(-2.0 * np.minimum(g, 0.0))
        return np.asarray(np.where(g < 0.0, below, np.minimum(g, 600.0)) + np.log(self.scale) + np.log(self.spread))

    def log_jacobian(self, y: Array) -> float:
        """sum log dt/dy: it makes the likelihoods under two transforms comparable."""
        cap = self.inverse(np.array((self.cap - self.centre) / self.scale))
        y = np.minimum(_clipped(y), cap)  # a capped value counts as the cap
        total = -float(np.log(self.scale)) * len(y)
        if self.kind == "log":
            return total - float(np.log(y).sum())
        if self.kind == "standard":
            return total
        x = (_clipped(y) - self.middle) / self.spread
        log_dg_dx = np.where(x < 0.0, np.log1p(np.maximum(-x, 0.0)), -np.log1p(np.maximum(x, 0.0)))
        return total - float(np.log(self.spread)) * len(y) + float(log_dg_dx.sum())

    def gain(self, mean: float, deviation: float, best: float) -> float:
        """Expected improvement E[max(y_best - y, 0)] in the user's units for t ~ N(mean, deviation^2), by quadrature."""
        nodes, weights = _quadrature()
        gains = np.maximum(self.inverse(np.array(best)) - self.inverse(mean + deviation * nodes), 0.0)
        return float(weights @ gains / weights.sum())


@functools.cache
def _quadrature() -> tuple[Array, Array]:
    """Gauss-Hermite nodes and weights."""
    return np.polynomial.hermite_e.hermegauss(QUADRATURE_NODES)


def _clipped(y: Array) -> Array:
    """Values within the range in which differences are finite."""
    return np.clip(y, -LARGEST_VALUE, LARGEST_VALUE)


def middle_and_spread(g: Array) -> tuple[float, float]:
    """The median, and the larger of the interquartile range and the range of the lower half."""
    low, quarter, middle, upper = np.quantile(g, [0.0, 0.25, 0.5, 0.75])
    spread = float(max(upper - quarter, middle - low))
    return float(middle), spread if spread > 0.0 else 1.0


def _cap(g: Array) -> float:
    """CAP_SPREADS spreads above the median; where most values are equal, the next value above them."""
    middle, spread = middle_and_spread(g)
    if np.quantile(g, 0.75) > g.min():
        return middle + CAP_SPREADS * spread
    above = g[g > middle]
    return float(above.min()) if len(above) else middle
