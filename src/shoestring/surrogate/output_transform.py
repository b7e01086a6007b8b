"""How values are modelled: as they are, by their logarithm, or bent; always capped above and standardised.

Values are minimised here. A cap on the bad side costs nothing (how bad a bad value is does not matter) and keeps one
value of 1e300 from flattening all the others; the good side is never touched.

    standard   g(y) = y
    log        g(y) = log y, for positive values
    bent       g(y) = YJ((y - median) / spread), the Yeo-Johnson transform with lambda = 0: log(1 + x) above the
               median, -((1 - x)^2 - 1) / 2 below it, so that a heavy tail of bad values does not drown the good ones

The model sees t = (min(g(y), cap) - centre) / scale.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from ..numerics import Array

KINDS = ("standard", "log", "bent")
CAP_SPREADS = 3.0  # spreads above the median


@dataclass(frozen=True)
class OutputTransform:
    """One transform, its constants set."""

    kind: str
    middle: float
    spread: float
    cap: float
    centre: float
    scale: float

    @classmethod
    def of(cls, y: Array, kind: str = "standard") -> OutputTransform:
        """The transform that gives y mean 0 and deviation 1 after the cap."""
        y = _tamed(y)
        middle, spread = (0.0, 1.0) if kind != "bent" else middle_and_spread(y)
        plain = cls(kind, middle, spread, np.inf, 0.0, 1.0)
        g = plain.bend(y)
        cap = _cap(g)
        g = np.minimum(g, cap)
        centre = float(g.mean())
        reach = float(np.abs(g - centre).max())
        scale = reach * float(np.sqrt(np.mean(((g - centre) / reach) ** 2))) if reach > 0 else 0.0  # no overflow
        floor = 1e-12 * max(abs(centre), np.finfo(float).tiny)
        return cls(kind, middle, spread, cap, centre, scale if scale > floor else max(1.0, abs(centre)))

    def bend(self, y: Array) -> Array:
        """g(y)."""
        if self.kind == "log":
            return np.log(y)
        if self.kind == "standard":
            return y
        x = np.minimum(y - self.middle, 1e290 * min(self.spread, 1e10)) / self.spread
        low = np.minimum(x, 0.0)
        return np.where(x < 0.0, low - 0.5 * low * low, np.log1p(np.maximum(x, 0.0)))

    def forward(self, y: Array) -> Array:
        return (np.minimum(self.bend(_tamed(y)), self.cap) - self.centre) / self.scale

    def inverse(self, t: Array) -> Array:
        g = self.centre + self.scale * np.asarray(t)
        if self.kind == "log":
            return np.exp(np.minimum(g, 700.0))
        if self.kind == "standard":
            return g
        x = np.where(g < 0.0, 1.0 - np.sqrt(1.0 - 2.0 * np.minimum(g, 0.0)), np.expm1(np.clip(g, 0.0, 600.0)))
        return self.middle + self.spread * x

    def slope(self, t: float) -> float:
        """dt/dy at a modelled value: how many model units one unit of the user's is there."""
        step = 1e-4
        up, down = self.inverse(np.array([t + step, t - step]))
        return 2.0 * step / max(float(up - down), 1e-300)

    def slopes(self, y: Array) -> Array:
        """dt/dy at values; zero above the cap."""
        y = _tamed(y)
        g = self.bend(y)
        if self.kind == "log":
            steep = 1.0 / y
        elif self.kind == "standard":
            steep = np.ones_like(y)
        else:
            x = (y - self.middle) / self.spread
            steep = np.where(x < 0.0, 1.0 + np.maximum(-x, 0.0), 1.0 / (1.0 + np.maximum(x, 0.0))) / self.spread
        return np.where(g <= self.cap, steep, 0.0) / self.scale

    def log_jacobian(self, y: Array) -> float:
        """sum log dt/dy: what makes the evidence of two transforms comparable."""
        cap = self.inverse(np.array((self.cap - self.centre) / self.scale))
        y = np.minimum(_tamed(y), cap)  # a capped value counts as the cap
        total = -float(np.log(self.scale)) * len(y)
        if self.kind == "log":
            return total - float(np.log(y).sum())
        if self.kind == "standard":
            return total
        x = (_tamed(y) - self.middle) / self.spread
        bends = np.where(x < 0.0, np.log1p(np.maximum(-x, 0.0)), -np.log1p(np.maximum(x, 0.0)))
        return total - float(np.log(self.spread)) * len(y) + float(bends.sum())

    def gain(self, mean: float, deviation: float, best: float) -> float:
        """E[max(y_best - y, 0)] in the user's units for t ~ N(mean, deviation^2), by quadrature."""
        nodes, weights = _quadrature()
        gains = np.maximum(self.inverse(np.array(best)) - self.inverse(mean + deviation * nodes), 0.0)
        return float(weights @ gains / weights.sum())


@functools.cache
def _quadrature() -> tuple[Array, Array]:
    return np.polynomial.hermite_e.hermegauss(40)


def _tamed(y: Array) -> Array:
    """Values near the largest float pulled in, so that differences of two of them exist."""
    return np.clip(y, -1e300, 1e300)


def middle_and_spread(g: Array) -> tuple[float, float]:
    """The median, and the larger of the interquartile range and the lower half's range."""
    low, quarter, middle, upper = np.quantile(g, [0.0, 0.25, 0.5, 0.75])
    spread = float(max(upper - quarter, middle - low))
    return float(middle), spread if spread > 0.0 else 1.0


def _cap(g: Array) -> float:
    """CAP spreads above the median; where most values are equal, the next one above them."""
    middle, spread = middle_and_spread(g)
    if np.quantile(g, 0.75) > g.min():
        return middle + CAP_SPREADS * spread
    above = g[g > middle]
    return float(above.min()) if len(above) else middle
