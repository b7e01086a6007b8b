"""The prediction along one or two parameters, and the axes of parameters.

The prediction is that of the surrogate after the finished trials, at the target fidelity, in the user's units. What is assumed of
running and failed trials does not count. The parameters that are not drawn are as in a reference trial: the best one in which the
drawn parameters are active.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._format import value_text
from ...data.history import History
from ...data.trial import State, Trial
from ...errors import MethodError, StudyError
from ...numerics import Array, single_threaded
from ...search.base import SearchContext
from ...space.parameters import Choice
from ...space.space import Parameter, Space
from ..importance import importance
from .base import axis

IntArray = NDArray[np.intp]
BAND_DEVIATIONS = 1.96  # from the mean to either end of the band: 95 % of a normal distribution
MARGIN = 0.02  # of an axis beyond the range of the parameter, as a share of it
SCATTER = 0.5  # width over which the trials of one option are spread, so that they do not hide each other
IRRATIONAL = (math.sqrt(5.0) / 2.0, math.sqrt(2.0))  # steps of that spread, by trial: they never repeat
OPTION_CHARACTERS = 14  # of the name of an option at an axis


@dataclass(frozen=True)
class ParameterAxis:
    """One parameter as an axis of a plot. The options of a choice are at 0, 1, 2, ...; numbers are where they are."""

    name: str
    parameter: Parameter
    column: int

    @classmethod
    def of(cls, space: Space, name: str) -> ParameterAxis:
        return cls(name, space[name], space.names.index(name))

    def grid(self, points: int) -> Array:
        """Unit coordinates along the axis: all values if there are at most ``points``, else so many, evenly spaced."""
        if self.parameter.levels is not None and (isinstance(self.parameter, Choice) or self.parameter.levels <= points):
            return self.parameter.grid_units()
        return np.unique(self.parameter.snap(np.linspace(0.0, 1.0, points)))

    def positions(self, units: Array) -> Array:
        """Where unit coordinates are on the axis."""
        if isinstance(self.parameter, Choice):
            return self.parameter.index(units).astype(float)
        return self.parameter.values(units)

    def scattered(self, units: Array, numbers: IntArray, stream: int = 0) -> Array:
        """``positions`` of trials by their numbers, those of one option spread a little."""
        if not isinstance(self.parameter, Choice):
            return self.positions(units)
        return np.asarray(self.positions(units) + SCATTER * ((numbers * IRRATIONAL[stream]) % 1.0 - 0.5))

    def edges(self, units: Array) -> Array:
        """The ends of the cells around the unit coordinates of a grid, on the axis."""
        if isinstance(self.parameter, Choice):
            return np.arange(-0.5, len(units))
        between = np.concatenate([[0.0], 0.5 * (units[1:] + units[:-1]), [1.0]])
        return self.parameter.relaxed(between)

    @property
    def is_log(self) -> bool:
        return not isinstance(self.parameter, Choice) and self.parameter.log

    def limits(self) -> tuple[float, float]:
        """The ends of the axis, a little wider than the range."""
        if isinstance(self.parameter, Choice):
            return -0.5, self.parameter.levels - 0.5
        low, high = float(self.parameter.low), float(self.parameter.high)
        if self.is_log:
            factor = (high / low) ** MARGIN
            return low / factor, high * factor
        return low - MARGIN * (high - low), high + MARGIN * (high - low)

    def to_dict(self, ends: tuple[float, float] | None = None) -> dict[str, Any]:
        """The axis of a view; ``ends``: its range, if it is not that of the parameter."""
        if isinstance(self.parameter, Choice):
            return axis(self.name, [], options=[value_text(option) for option in self.parameter.options])
        return axis(self.name, [], log=self.is_log, whole=self.parameter.whole, ends=ends or self.limits())


def option_labels(parameter: Choice) -> list[str]:
    """The options as short texts."""
    texts = [value_text(option) for option in parameter.options]
    return [text if len(text) <= OPTION_CHARACTERS else text[: OPTION_CHARACTERS - 3] + "..." for text in texts]


# -- which parameters, and where -------------------------------------------------------------------------------------


def drawn_parameters(space: Space, names: Sequence[str] | str | None) -> list[str]:
    """The named parameters, all if None; a MethodError for a name that is unknown, repeated or a fidelity."""
    free = [name for name in space.names if not space[name].fidelity]
    if names is None:
        return free
    wanted = [names] if isinstance(names, str) else list(names)
    wrong = [name for name in wanted if name not in free]
    if wrong or not wanted:
        what = f"{wrong[0]!r} cannot be drawn" if wrong else "parameters=[] names nothing to draw"
        raise MethodError(f"{what}; choose from {', '.join(free)}")
    if len(set(wanted)) < len(wanted):
        raise MethodError(f"parameters={wanted} names a parameter twice; name each one once")
    return wanted


def by_importance(context: SearchContext, names: list[str]) -> list[str]:
    """The names, most important first; in the order of the space while importance is not known."""
    try:
        shares = importance(context)
    except StudyError:
        return names
    return sorted(names, key=lambda name: -shares[name])


def reference_trial(history: History, names: Sequence[str]) -> Trial | None:
    """The best finished trial in which all these parameters are active."""
    return next((trial for trial in history.ranked() if all(name in trial.config for name in names)), None)


def rows_by_kind(history: History, columns: Sequence[int]) -> dict[str, IntArray]:
    """Rows of the trials in which the parameters of these columns are active: "trial" (finished), "best", "failed", ...

    Kinds without a trial are absent. "lower fidelity" are the finished trials that are not at the target.
    """
    table, count = history.table, len(history)
    active = history.space.active(table.U[:count])[:, list(columns)].all(axis=1)
    done, target = table.having(State.DONE), table.at_target[:count]
    best = np.zeros(count, dtype=bool)
    if history.best is not None:
        best[history.best.number] = True
    kinds = {
        "lower fidelity": done & ~target, "trial": done & target, "best": best,
        "failed": table.having(State.FAILED), "running": table.having(State.RUNNING),
    }  # fmt: skip
    return {kind: np.flatnonzero(mask & active) for kind, mask in kinds.items() if (mask & active).any()}


# -- the prediction --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Prediction:
    """Mean and 95 % band of the latent function, in the user's units."""

    mean: Array
    low: Array
    high: Array


@single_threaded
def predict(context: SearchContext, U: Array) -> Prediction:
    """The prediction at points of the unit cube. The output transform is not linear, so the ends of the band are transformed."""
    belief, sign = context.belief(costs=False), context.data.sign
    Z = context.encoding.features(U)
    found = [each.fit.posterior.mean_and_variance(Z) for each in belief.samples]
    means, variances = np.array([mean for mean, _ in found]), np.array([variance for _, variance in found])
    mean, variance = means.mean(axis=0), variances.mean(axis=0) + means.var(axis=0)  # over the hyperparameter samples
    reach = BAND_DEVIATIONS * np.sqrt(variance)
    middle, *ends = (sign * belief.output.inverse(each) for each in (mean, mean - reach, mean + reach))
    return Prediction(middle, np.minimum(*ends), np.maximum(*ends))


def points_through(space: Space, reference: Trial, axes: Sequence[ParameterAxis], units: Sequence[Array]) -> Array:
    """The points of the grid over some axes; the other parameters as in the reference trial, fidelities at their target.

    Where a parent on an axis makes another parameter active that is not active in the reference trial, that one is in the middle
    of its range.
    """
    U = np.repeat(space.at_target(space.encode(reference.config)[None, :]), math.prod(map(len, units)), axis=0)
    for each, column in zip(axes, np.meshgrid(*units, indexing="ij"), strict=True):
        U[:, each.column] = column.ravel()
    return space.snap(U)
