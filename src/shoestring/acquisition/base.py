"""An acquisition averaged over sets of hyperparameters: the one place where they are integrated out of a decision.

Notation: a_m(x) the acquisition under set m of M, w_m = a_m / sum a.
    a surface that is a logarithm (most are)     log (1/M sum_m a_m),    gradient sum_m w_m d log a_m
    in_logs = False: any other                   1/M sum_m a_m,          gradient 1/M sum_m d a_m

Of log EI it is thus EI that is averaged (Snoek et al. 2012): a set under which nothing can be gained does not veto what
another one hopes for. Bounds and indices are averaged as they are. For the Gittins index this is a choice, not a theorem: the
index under the mixture of all sets is another one.

Each set is a complete belief with a value to beat of its own, so that an acquisition's ``on`` knows nothing of all this. A
class whose ``choose`` looks at all sets itself says ``over_sets = True``; any other is searched by its averaged surface.

What the information-based acquisitions share: a surface that takes a while to prepare, searched with an effort of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import ClassVar, Protocol

import numpy as np

from ..numerics import Array, single_threaded
from ..surrogate.belief import Belief
from .optimize.optimizer import AcquisitionOptimizer, OptimizerOptions, Selection, Surface


def surface_of(acquisition: Acquisition, belief: Belief, rng: np.random.Generator) -> Surface:
    """The acquisition's surface, averaged over the sets of hyperparameters where there are several."""
    if not belief.hyperparameter_samples:
        return acquisition.on(belief, rng)

    @cache
    def averaged() -> Surface:  # when it is first looked at, since some surfaces take long to prepare
        return average([acquisition.on(each, rng) for each in belief.samples], in_logs=getattr(acquisition, "in_logs", True))

    return lambda U, gradient: averaged()(U, gradient)


def average(surfaces: Sequence[Surface], *, in_logs: bool) -> Surface:
    """The mean of surfaces, or the logarithm of the mean of what they are logarithms of; a single one as it is."""
    if len(surfaces) == 1:
        return surfaces[0]

    def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
        found = [surface(U, gradient) for surface in surfaces]
        values = np.array([each for each, _ in found])
        slopes = [slope for _, slope in found if slope is not None]
        if not in_logs:
            return values.mean(axis=0), np.mean(slopes, axis=0) if slopes else None
        total, shares = log_mean(values)
        return total, np.einsum("mi,mij->ij", shares, np.array(slopes)) if slopes else None

    return value


def log_mean(values: Array) -> tuple[Array, Array]:
    """log of the mean of exp (over the first axis) and each one's share of it; NaN counts as nothing."""
    values = np.where(np.isnan(values), -np.inf, values)
    top = values.max(axis=0)
    top = np.where(np.isfinite(top), top, 0.0)
    parts = np.exp(values - top)
    total = parts.sum(axis=0)
    with np.errstate(divide="ignore"):
        return top + np.log(total / len(values)), parts / np.where(total > 0.0, total, 1.0)


class InformationAcquisition(ABC):
    """An acquisition by its ``surface``, averaged over sets of hyperparameters where there are several."""

    options: ClassVar[OptimizerOptions] = OptimizerOptions()
    over_sets: ClassVar[bool] = True

    @abstractmethod
    def surface(self, belief: Belief, optimizer: AcquisitionOptimizer) -> Surface:
        """The logarithm of the information over points; ``seeker`` finds the points that it is prepared with."""

    def on(self, belief: Belief, rng: np.random.Generator) -> Surface:
        optimizer = AcquisitionOptimizer(belief.encoding, rng, belief.evaluated[:0], belief.evaluated)
        return lazy_surface(lambda: self.surface(belief, optimizer))

    @single_threaded
    def choose(self, belief: Belief, optimizer: AcquisitionOptimizer) -> Selection:
        averaged = average([self.surface(each, optimizer) for each in belief.samples], in_logs=True)
        return Selection(replace(optimizer, options=self.options).maximize(averaged).u)


def lazy_surface(build: Callable[[], Surface]) -> Surface:
    """A surface that is built when it is first asked: most searches have chosen by another one."""
    built: list[Surface] = []

    def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
        if not built:
            built.append(build())
        return built[0](U, gradient)

    return value


class Acquisition(Protocol):
    """A specification; ``on`` gives its surface for one belief, higher is better.

    A class whose surface is no logarithm says ``in_logs = False``: see ``averaging``, through which a search asks for surfaces.
    """

    def on(self, belief: Belief, rng: np.random.Generator) -> Surface: ...
