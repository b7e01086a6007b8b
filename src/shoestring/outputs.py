"""How values are modelled: as they are or by their logarithm, always capped above and standardised.

Values are minimised here. A cap on the bad side costs nothing (how bad a bad value is does not matter) and keeps one
value of 1e300 from flattening all the others; the good side is never touched.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .numerics import Array

CAP = 3.0  # spreads above the median


@dataclass(frozen=True)
class Output:
    """t = (min(g(y), cap) - centre) / scale, with g the identity or the logarithm."""

    kind: str
    centre: float
    scale: float
    cap: float

    @classmethod
    def of(cls, y: Array, kind: str = "standard") -> Output:
        """The transform that gives y mean 0 and deviation 1 after the cap."""
        g = np.log(y) if kind == "log" else _halved(y)
        cap = _cap(g)
        g = np.minimum(g, cap)
        centre = float(g.mean())
        spread = float(np.abs(g - centre).max())
        scale = spread * float(np.sqrt(np.mean(((g - centre) / spread) ** 2))) if spread > 0 else 0.0  # no overflow
        floor = 1e-12 * max(abs(centre), np.finfo(float).tiny)
        return cls(kind, centre, scale if scale > floor else 1.0, cap)

    def forward(self, y: Array) -> Array:
        g = np.log(y) if self.kind == "log" else _halved(y)
        return (np.minimum(g, self.cap) - self.centre) / self.scale

    def inverse(self, t: Array) -> Array:
        g = self.centre + self.scale * np.asarray(t)
        with np.errstate(over="ignore"):
            return np.exp(np.minimum(g, 700.0)) if self.kind == "log" else g

    def log_jacobian(self, y: Array) -> float:
        """sum log dt/dy: what makes the evidence of two transforms comparable."""
        slopes = -np.log(self.scale) * len(y)
        return float(slopes - np.log(y).sum()) if self.kind == "log" else float(slopes)

    def gain(self, mean: float, deviation: float, best: float) -> float:
        """E[max(y_best - y, 0)] in the user's units for t ~ N(mean, deviation^2), by quadrature."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(40)
        gains = np.maximum(self.inverse(np.array(best)) - self.inverse(mean + deviation * nodes), 0.0)
        return float(weights @ gains / weights.sum())


def _halved(y: Array) -> Array:
    """Values near the largest float pulled in, so that differences of two of them exist."""
    return np.clip(y, -1e300, 1e300)


def _cap(g: Array) -> float:
    """CAP spreads above the median; a spread is the larger of the interquartile range and the lower half's range."""
    low, quarter, middle, upper = np.quantile(g, [0.0, 0.25, 0.5, 0.75])
    spread = max(upper - quarter, middle - low)
    if spread <= 0.0:  # most values are equal: keep the next one above them apart, and no more
        above = g[g > middle]
        return float(above.min()) if len(above) else float(middle)
    return float(middle + CAP * spread)
