"""Max-value entropy search: where does an observation say most about the value of the minimum?

    MES(x) = H(y) - E_m[ H(y | f(x) >= m) ]          (``max_value``), m drawn as in ``minimum``

Searched by its logarithm; log P(does not fail) is added: an evaluation that fails says nothing of the minimum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from ..errors import MethodError
from ..numerics import Array
from ..surrogate.belief import Belief
from .improvement import Surface, falling_mean, surface
from .information import Information
from .max_value import log_information_with_gradient
from .maximize import Effort, Seeker
from .minimum import minimum_values
from .representers import whole_number

HOW = ("gumbel", "sampled")
LOOK = Effort(spread=256, near=128, starts=3, rounds=1)  # for the minimum of the mean, and for points it may lie at
EFFORT = Effort(spread=384, near=192)


@dataclass(frozen=True)
class MES(Information):
    """Max-value entropy search. ``samples`` values of the minimum, by a Gumbel fit or by joint draws (``how="sampled"``)."""

    samples: int = 16
    how: Literal["gumbel", "sampled"] = "gumbel"
    effort: ClassVar[Effort] = EFFORT

    def __post_init__(self) -> None:
        whole_number("MES", "samples", self.samples, 1)
        if self.how not in HOW:
            raise MethodError(f'MES: how must be "gumbel" or "sampled", not {self.how!r}')

    def surface(self, belief: Belief, seeker: Seeker) -> Surface:
        """log MES over points, given samples of the minimum."""
        m, noise = self.minima(belief, seeker), belief.objective.noise

        def score(mean: Array, deviation: Array) -> tuple[Array, Array, Array]:
            return log_information_with_gradient(mean, deviation, noise, m)

        return surface(belief, score)

    def minima(self, belief: Belief, seeker: Seeker) -> Array:
        """Samples of the value of the minimum over all points that a search of the lowest mean comes by, and those tried."""
        falling = falling_mean(belief)
        met = replace(seeker, seen=seeker.seen[:0], effort=LOOK).highest(falling).U
        Z = belief.encoding.features(np.vstack([met, belief.tried]))
        return minimum_values(belief.objective, Z, self.how, self.samples, seeker.rng)
