"""Slopes told with the values, as the model wants them: with respect to features, of the modelled value.

Notation: t = g(y) the modelled value (``outputs``), z the features (``encoding``), u the unit cube: dt/dz = dt/dy dy/du du/dz.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..data.dataset import Dataset
from ..numerics import Array
from ..space.encoding import Encoding
from .covariance import DerivativeBlock
from .kernels import Kernel
from .output_transform import OutputTransform

STEEPEST = 1000.0  # modelled values have deviation 1, and the shortest length scale is a fiftieth of the cube
UNUSUAL = 50.0  # times the median of all slopes


@dataclass(frozen=True)
class GradientData:
    """Slope r is dt/dz along columns[r] at row rows[r] of the data."""

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    values: Array

    def __len__(self) -> int:
        return len(self.values)

    @classmethod
    def of(cls, seen: Dataset, encoding: Encoding, output: OutputTransform) -> GradientData | None:
        """None where nobody told a slope.

        A value above the output's cap is only known to be bad: its slopes are left out, and so are slopes that cannot be true of
        a function whose values differ by about 1 over the unit cube.
        """
        rows, parameters = np.nonzero(np.isfinite(seen.gradients) & (output.slopes(seen.y) > 0.0)[:, None])
        columns, stretch = encoding.columns_of(parameters)
        with np.errstate(over="ignore"):
            values = seen.gradients[rows, parameters] * output.slopes(seen.y)[rows] / stretch
        possible = np.abs(values) <= STEEPEST
        if possible.any():
            possible &= np.abs(values) <= UNUSUAL * max(1.0, float(np.median(np.abs(values[possible]))))
        return cls(rows[possible], columns[possible], values[possible]) if possible.any() else None

    def select(self, rows: NDArray[np.intp]) -> GradientData | None:
        """Those of some rows of the data, numbered anew."""
        place = np.full(int(max(self.rows.max(), rows.max())) + 1, -1)
        place[rows] = np.arange(len(rows))
        kept = place[self.rows] >= 0
        return GradientData(place[self.rows[kept]], self.columns[kept], self.values[kept]) if kept.any() else None

    def part(self, kernel: Kernel, Z: Array) -> DerivativeBlock:
        """As a part of a basis."""
        return DerivativeBlock.at(kernel, Z[self.rows], self.columns)


def gradient_noise(kernel: Kernel, share: float, part: DerivativeBlock) -> Array:
    """The variance of each slope's error: a share of what the slope itself may be beforehand, s2 (-2 rho'(0)) s^2."""
    steep = 1.0 if kernel.profile == "se" else 5.0 / 3.0
    return np.asarray(share * kernel.variance * steep * part.s**2)
