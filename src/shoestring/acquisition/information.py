"""What the information-based acquisitions share: a surface that takes a while to prepare, searched with an effort of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

import numpy as np

from ..numerics import Array, single_threaded
from ..surrogate.belief import Belief
from .averaging import average
from .improvement import Surface
from .maximize import Chosen, Effort, Seeker


class Information(ABC):
    """An acquisition by its ``surface``, averaged over sets of hyperparameters where there are several."""

    effort: ClassVar[Effort] = Effort()
    over_sets: ClassVar[bool] = True

    @abstractmethod
    def surface(self, belief: Belief, seeker: Seeker) -> Surface:
        """The logarithm of the information over points; ``seeker`` finds the points that it is prepared with."""

    def on(self, belief: Belief, rng: np.random.Generator) -> Surface:
        seeker = Seeker(belief.encoding, rng, belief.tried[:0], belief.tried)
        return lazily(lambda: self.surface(belief, seeker))

    @single_threaded
    def choose(self, belief: Belief, seeker: Seeker) -> Chosen:
        averaged = average([self.surface(each, seeker) for each in belief.sets], in_logs=True)
        return Chosen(replace(seeker, effort=self.effort).highest(averaged).u)


def lazily(build: Callable[[], Surface]) -> Surface:
    """A surface that is built when it is first asked: most searches have chosen by another one."""
    built: list[Surface] = []

    def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
        if not built:
            built.append(build())
        return built[0](U, gradient)

    return value
