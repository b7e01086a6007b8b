"""Gradient observations in the model's units: derivatives of the modelled value with respect to the features.

Notation: t = g(y) the modelled value (``output_transform``), z the features (``encoding``), u the unit cube:
dt/dz = dt/dy dy/du du/dz.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..data.dataset import Dataset
from ..numerics import Array
from ..space.encoding import Encoding
from .kernels import DerivativeBlock, Kernel
from .output_transform import OutputTransform

# |dt/dz|: modelled values have standard deviation 1, and the shortest length scale is a fiftieth of the unit cube.
MAX_DERIVATIVE = 1000.0
MAX_RATIO_TO_MEDIAN = 50.0  # of |dt/dz| to the median of all: above it the derivative is an outlier


@dataclass(frozen=True)
class GradientData:
    """Observed derivatives: the r-th is dt/dz with respect to feature columns[r] at row rows[r] of the data."""

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    values: Array

    def __len__(self) -> int:
        return len(self.values)

    @classmethod
    def of(cls, seen: Dataset, encoding: Encoding, output: OutputTransform) -> GradientData | None:
        """The derivatives that were reported and are usable; None where there are none.

        A value above the output's cap is only known to be bad, so its derivatives are not used. Nor are derivatives that cannot
        be true of a function whose values differ by about 1 over the unit cube.
        """
        reported = np.isfinite(seen.gradients)
        if not reported.any():
            return None
        dt_dy = output.derivatives(seen.y)
        rows, parameters = np.nonzero(reported & (dt_dy > 0.0)[:, None])
        columns, dz_du = encoding.columns_of(parameters)
        with np.errstate(over="ignore"):
            values = seen.gradients[rows, parameters] * dt_dy[rows] / dz_du
        usable = np.abs(values) <= MAX_DERIVATIVE
        if usable.any():
            usable &= np.abs(values) <= MAX_RATIO_TO_MEDIAN * max(1.0, float(np.median(np.abs(values[usable]))))
        return cls(rows[usable], columns[usable], values[usable]) if usable.any() else None

    def select(self, rows: NDArray[np.intp]) -> GradientData | None:
        """The derivatives at some rows of the data, with the rows renumbered; None where there are none."""
        place = np.full(int(max(self.rows.max(), rows.max())) + 1, -1)
        place[rows] = np.arange(len(rows))
        kept = place[self.rows] >= 0
        return GradientData(place[self.rows[kept]], self.columns[kept], self.values[kept]) if kept.any() else None

    def block(self, kernel: Kernel, Z: Array) -> DerivativeBlock:
        """As a block of a basis; Z are the features of the data."""
        return DerivativeBlock.at(kernel, Z[self.rows], self.columns)


def gradient_noise(kernel: Kernel, share: float, block: DerivativeBlock) -> Array:
    """The noise variance of each derivative: a share of its prior variance s2 (-2 rho'(0)) s^2."""
    minus_twice_rho = 1.0 if kernel.profile == "se" else 5.0 / 3.0  # -2 rho'(0)
    return np.asarray(share * kernel.variance * minus_twice_rho * block.s**2)
