"""What an acquisition is, and how one is averaged over samples of the hyperparameters.

An acquisition says where to evaluate next, given a belief. To write one, derive from ``Acquisition`` and define one method:

    surface(belief, rng)        its value over points, higher is better; the optimizer finds the maximum
    select(belief, optimizer)   the choice itself, where that is not "the maximum of a surface"

Everything else has a default. What an acquisition can do or needs is declared by class variables (see ``Acquisition``).

Notation: a_m(x) the acquisition under sample m of M hyperparameters, w_m = a_m / sum a.
    log_space = True (most)      log (1/M sum_m a_m),    gradient sum_m w_m d log a_m
    log_space = False            1/M sum_m a_m,          gradient 1/M sum_m d a_m

So of log EI it is EI that is averaged (Snoek et al. 2012): a sample under which nothing can be gained does not veto what another
one hopes for. Bounds and indices are averaged as they are. For the Gittins index this is a choice, not a theorem: the index under
the mixture of all samples is another one. Each sample is a complete belief with an incumbent of its own, so ``surface`` knows
nothing of the averaging.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np

from ..errors import MethodError
from ..numerics import Array, log_mean, single_threaded
from ..surrogate.belief import Belief
from .optimize.optimizer import AcquisitionOptimizer, OptimizerOptions, Selection, Surface


class Acquisition:
    """Where to evaluate next, given a belief: the base class of acquisitions.

    Derive from it to write one of your own: define ``surface``, whose maximum is then found, or ``select``. What it needs is
    declared by class variables, each with a default.

    log_space               the surface is a logarithm: it is averaged over hyperparameter samples as one
    uses_cost               it looks at ``belief.cost``; the initial design is then a cheap one
    needs_budget            it looks at ``belief.spending``, and cannot do without
    chooses_fidelity        it chooses fidelities too; else they are at their targets
    values_batches          with pending trials its value is that of the whole batch, so that a batch can be improved jointly
    needs_gaussian_process  it needs a surrogate with covariances in closed form: st.GP(), st.VFE() or st.FITC()
    cheap_to_average        ``GP(inference="auto")`` integrates hyperparameters out for it while trials are few
    averages_samples        its ``select`` looks at all hyperparameter samples (``belief.samples``) itself
    seeks_information       its trials are asked for what they tell, not because they may be the best: this decides about pruning
    price                   what one unit of cost must gain, where it has such a price: ``stop="auto"`` uses it

    >>> class Greedy(st.Acquisition):
    ...     log_space = False
    ...     def surface(self, belief, rng):
    ...         return lambda U, gradient: (-belief.objective.mean_at(belief.encoding.features(U)), None)
    >>> space = st.Space(n=st.Int(1, 20))
    >>> st.minimize(lambda c: (c["n"] - 7) ** 2, space, 9, method=Greedy()).best.value <= 9
    True
    """

    log_space: ClassVar[bool] = True
    uses_cost: ClassVar[bool] = False
    needs_budget: ClassVar[bool] = False
    chooses_fidelity: ClassVar[bool] = False
    values_batches: ClassVar[bool] = False
    cheap_to_average: ClassVar[bool] = False
    averages_samples: ClassVar[bool] = False
    needs_gaussian_process: ClassVar[bool] = False
    seeks_information: ClassVar[bool] = False
    price: float | None = None

    def surface(self, belief: Belief, rng: np.random.Generator) -> Surface:
        """Its value over points under one set of hyperparameters: ``(points, gradient wanted) -> values, gradients or None``."""
        raise NotImplementedError(f"{type(self).__name__} has no surface: it selects in a way of its own")

    def select(self, belief: Belief, optimizer: AcquisitionOptimizer) -> Selection:
        """The point to evaluate: where the surface is highest, unless a class has a better way."""
        return Selection(optimizer.maximize(self.averaged_surface(belief, optimizer.rng)).u)

    def as_batch_member(self, gain: float, cost: float) -> Self:
        """The same for a further member of a batch whose other members gain and cost so much."""
        return self

    def averaged_surface(self, belief: Belief, rng: np.random.Generator) -> Surface:
        """The surface, averaged over the hyperparameter samples where there are several."""
        if not belief.hyperparameter_samples:
            return self.surface(belief, rng)

        @cache
        def averaged() -> Surface:  # when it is first looked at, since some surfaces take long to prepare
            return average([self.surface(each, rng) for each in belief.samples], log_space=self.log_space)

        return lambda U, gradient: averaged()(U, gradient)

    @property
    def has_surface(self) -> bool:
        """Whether it can be evaluated at a point; one that only selects cannot."""
        return type(self).surface is not Acquisition.surface


def check_acquisition(acquisition: Any) -> None:
    """A MethodError that names the method to write, unless this can be used as an acquisition."""
    name, kind = type(acquisition).__name__, type(acquisition)
    if not isinstance(acquisition, Acquisition):
        raise MethodError(
            f"{name} looks like an acquisition, but does not derive from one; write class {name}(st.Acquisition): "
            "with a method surface(self, belief, rng)"
        )
    if kind.surface is Acquisition.surface and kind.select is Acquisition.select:
        raise MethodError(
            f"{name} says nothing of where to evaluate; write surface(self, belief, rng), which returns a function "
            "(points, gradient wanted) -> values, gradients, or select(self, belief, optimizer), which returns an st.Selection"
        )


class InformationAcquisition(Acquisition, ABC):
    """An acquisition whose surface takes a while to prepare, and is searched with options of its own."""

    options: ClassVar[OptimizerOptions] = OptimizerOptions()
    averages_samples: ClassVar[bool] = True
    seeks_information: ClassVar[bool] = True

    @abstractmethod
    def log_information(self, belief: Belief, optimizer: AcquisitionOptimizer) -> Surface:
        """The logarithm of the information over points; ``optimizer`` finds the points that it is prepared with."""

    def surface(self, belief: Belief, rng: np.random.Generator) -> Surface:
        optimizer = AcquisitionOptimizer(belief.encoding, rng, belief.evaluated[:0], belief.evaluated)
        return lazy_surface(lambda: self.log_information(belief, optimizer))

    @single_threaded
    def select(self, belief: Belief, optimizer: AcquisitionOptimizer) -> Selection:
        averaged = average([self.log_information(each, optimizer) for each in belief.samples], log_space=True)
        return Selection(replace(optimizer, options=self.options).maximize(averaged).u)


def lazy_surface(build: Callable[[], Surface]) -> Surface:
    """A surface that is built when it is first evaluated: most searches have chosen by another one."""
    built: list[Surface] = []

    def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
        if not built:
            built.append(build())
        return built[0](U, gradient)

    return value


def average(surfaces: Sequence[Surface], *, log_space: bool) -> Surface:
    """The mean of surfaces, or the logarithm of the mean of what they are logarithms of; a single one as it is."""
    if len(surfaces) == 1:
        return surfaces[0]

    def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
        found = [surface(U, gradient) for surface in surfaces]
        values = np.array([each for each, _ in found])
        slopes = [slope for _, slope in found if slope is not None]
        if not log_space:
            return values.mean(axis=0), np.mean(slopes, axis=0) if slopes else None
        total, shares = log_mean(values)
        return total, np.einsum("mi,mij->ij", shares, np.array(slopes)) if slopes else None

    return value
