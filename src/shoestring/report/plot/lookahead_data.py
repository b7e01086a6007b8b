"""The data of the look-ahead plot: the surrogate along one parameter, now and after an imagined observation.

    x       the values of the parameter on the x axis; all others are held at the recommended config, fidelities at the target
    p_min   the probability of each x to be the minimiser, counted over joint draws of the function at all x
    H       the entropy of p_min in nats

Source: the slides on computationally expensive acquisition functions (the one-step look-ahead surrogate, the minimum of its
mean, p_min). With several hyperparameter samples, means and deviations are those over all samples, and each sample gives the
same number of draws. Pending points count as they do for an acquisition: as if they had come out a little worse than predicted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._format import config_text
from ..._validation import number_between
from ...acquisition.base import Acquisition
from ...acquisition.entropy_search import ES
from ...acquisition.improvement import EI
from ...acquisition.knowledge_gradient import KG
from ...data.trial_table import SAME_POINT
from ...errors import MethodError, OutcomeError
from ...numerics import Array, single_threaded
from ...search.base import SearchContext
from ...search.recommend import recommend
from ...space.parameters import Choice, Numeric
from ...space.space import Config, Space
from ...surrogate.belief import Belief

MAX_AXIS_POINTS = 201  # a parameter with at most so many values is evaluated at each of them
PMIN_DRAWS = 32_768  # joint draws of the function: a probability of 1 % has a relative error of 1/18
BAND_DEVIATIONS = 2.0  # from the mean to either end of the band
RNG_STREAM = 0x511CE  # the same random numbers before and after the observation, so that only the observation differs


@dataclass(frozen=True)
class SurrogateCurve:
    """The surrogate along the axis: mean and band in the user's units, and p_min.

    ``lowest`` is the index of the best mean: the lowest one, or the highest one if the study maximizes.
    """

    mean: Array
    low: Array
    high: Array
    p_min: Array
    lowest: int

    @property
    def entropy(self) -> float:
        """H(p_min) in nats: high if the location of the minimum is uncertain."""
        p = self.p_min[self.p_min > 0.0]
        return float((p * np.log(1.0 / p)).sum())


@dataclass(frozen=True)
class ProjectedTrials:
    """Trials projected onto the axis. ``values`` is empty for trials without a value; ``inside`` marks those on the slice."""

    x: Array
    values: Array
    inside: NDArray[np.bool_]


@dataclass(frozen=True)
class Slice:
    """The surrogate along the parameter ``along``, now and after the imagined observation, and the acquisitions now.

    x             the values of the parameter, in its own units
    held          the values of the other parameters
    at, outcome   the imagined observation
    acquisitions  each divided by its highest value
    """

    along: str
    parameter: Numeric
    x: Array
    held: Config
    now: SurrogateCurve
    then: SurrogateCurve
    at: Config
    outcome: float
    acquisitions: Mapping[str, Array]
    done: ProjectedTrials
    failed: ProjectedTrials
    running: ProjectedTrials


@single_threaded
def surrogate_slice(
    context: SearchContext,
    along: str | None = None,
    at: Mapping[str, Any] | None = None,
    outcome: float | None = None,
    method: Any = None,
) -> Slice | None:
    """The slice along one parameter; None if no trial has succeeded.

    along    a Float or Int; the first one that is active at the recommended config unless given
    at       the imagined observation: a config, or part of one; where the first acquisition is highest unless given
    outcome  its value, in the user's units; one deviation better than predicted unless given
    method   an acquisition or a list of them; EI, KG and ES unless given
    """
    space, encoding, seen = context.space, context.encoding, context.data
    acquisitions = read_acquisitions(method)
    candidates = possible_axes(space, along)
    if not seen.finished:
        return None
    belief = context.belief(costs=any(each.uses_cost for each in acquisitions.values()))
    recommended = recommend(context)
    assert recommended is not None  # a trial has succeeded
    best = space.snap(space.at_target(recommended.u[None, :]))[0]
    along = choose_axis(space, candidates, along, best)
    column, parameter = space.names.index(along), space[along]
    assert isinstance(parameter, Numeric)
    units = axis_units(parameter)
    U = np.repeat(best[None, :], len(units), axis=0)
    U[:, column] = units
    U = space.snap(U)
    held = {name: value for name, value in space.decode(best).items() if name != along}

    curves = {name: relative_acquisition(each, belief, U, context.rng) for name, each in acquisitions.items()}
    first = next(iter(curves.values()))
    config = space.decode(U[int(np.argmax(first))]) if at is None else imagined_config(space, space.decode(best), at)
    z = encoding.features(space.encode(config)[None, :])
    if outcome is None:
        mean, variance = belief.moments(z)
        modelled = mean - np.sqrt(variance)
        outcome = seen.sign * float(belief.output.inverse(modelled)[0])
    else:
        outcome = read_outcome(outcome, seen.sign, belief)
        modelled = belief.output.forward(np.array([seen.sign * outcome]))

    def curve(one: Belief) -> SurrogateCurve:
        rng = np.random.default_rng([context.seed, context.number, RNG_STREAM])
        return surrogate_curve(one, encoding.features(U), seen.sign, rng)

    def projected(points: Array, values: Array) -> ProjectedTrials:
        active = space.active(points)[:, column]
        elsewhere = np.delete(np.abs(points - best), column, axis=1)
        inside = (elsewhere < SAME_POINT).all(axis=1)
        x = parameter.values(points[active, column])
        return ProjectedTrials(x, values[active] if len(values) else values, inside[active])

    done = seen.without_intermediate()
    return Slice(
        along=along, parameter=parameter, x=parameter.values(units), held=held,
        now=curve(belief), then=curve(conditioned(belief, z, modelled)),
        at=config, outcome=outcome, acquisitions=curves,
        done=projected(done.U, seen.sign * done.y),
        failed=projected(seen.failed, np.empty(0)),
        running=projected(seen.pending, np.empty(0)),
    )  # fmt: skip


# -- the surrogate and the acquisitions ------------------------------------------------------------------------------


def conditioned(belief: Belief, z: Array, value: Array) -> Belief:
    """The one-step look-ahead: the belief conditioned on this value (in the model's units) at features z."""

    def condition(one: Belief) -> Belief:
        return replace(one, objective=one.objective.condition(z, value))

    return replace(condition(belief), hyperparameter_samples=tuple(condition(each) for each in belief.hyperparameter_samples))


def surrogate_curve(belief: Belief, Z: Array, sign: float, rng: np.random.Generator) -> SurrogateCurve:
    """Mean, band and p_min at features Z. The output transform is not linear, so the ends of the band are transformed."""
    mean, variance = belief.moments(Z)
    reach = BAND_DEVIATIONS * np.sqrt(variance)
    ends = sign * belief.output.inverse(np.array([mean - reach, mean + reach]))
    counts = np.zeros(len(Z))
    for each in belief.samples:
        draws = each.objective.sample(Z, math.ceil(PMIN_DRAWS / len(belief.samples)), rng)
        counts += np.bincount(np.argmin(draws, axis=1), minlength=len(Z))
    middle = sign * belief.output.inverse(mean)
    return SurrogateCurve(middle, ends.min(axis=0), ends.max(axis=0), counts / counts.sum(), int(np.argmin(mean)))


def relative_acquisition(acquisition: Acquisition, belief: Belief, U: Array, rng: np.random.Generator) -> Array:
    """The acquisition at U divided by its highest value: the exponential of the difference, since most are optimized as logs.

    Confidence bounds and indices are not logs but values in deviations: one deviation less than the highest is drawn as 1/e.
    """
    values = acquisition.averaged_surface(belief, rng)(U, False)[0]
    values = np.where(np.isnan(values), -np.inf, values)
    top = values.max()
    return np.asarray(np.exp(values - top)) if np.isfinite(top) else np.zeros(len(U))


# -- the options -----------------------------------------------------------------------------------------------------


def read_acquisitions(method: Any) -> dict[str, Acquisition]:
    """The acquisitions of ``method`` by name; with their settings where two have the same name."""
    given: list[Any] = [EI(), KG(), ES()] if method is None else list(method) if isinstance(method, list | tuple) else [method]
    if not given:
        raise MethodError("method=[] names no acquisition; give st.EI(), [st.EI(), st.KG()], ... or leave it out")
    for each in given:
        if isinstance(each, type):
            raise MethodError(f"method={each.__name__} is a class; write {each.__name__}()")
        if not isinstance(each, Acquisition) or not each.has_surface:
            raise MethodError(f"method={each!r} is no acquisition; give one such as st.EI() or st.KG(), or a list of them")
    names = [type(each).__name__ for each in given]
    return {name if names.count(name) == 1 else repr(each): each for name, each in zip(names, given, strict=True)}


def possible_axes(space: Space, along: str | None) -> list[str]:
    """The names of all Float and Int parameters; an error if there are none, or if ``along`` is not one of them."""
    numbers = [name for name, parameter in space.items() if not isinstance(parameter, Choice) and not parameter.fidelity]
    if not numbers:
        raise MethodError("this space has no parameter to draw along: that needs a Float or an Int")
    if along is not None and along not in numbers:
        raise MethodError(f"along={along!r} is not a Float or Int of this space; choose one of {', '.join(numbers)}")
    return numbers


def choose_axis(space: Space, candidates: list[str], along: str | None, best: Array) -> str:
    """``along``, or the first candidate. It must be active at the recommended config, else nothing changes along it."""
    config = space.decode(best)
    active = [name for name in candidates if name in config]
    if along in active:
        return str(along)
    if along is None and active:
        return active[0]
    fix = f"; choose one of {', '.join(active)}" if active else ""
    raise MethodError(f"{along or ', '.join(candidates)} is not active at the recommended config ({config_text(config)}){fix}")


def axis_units(parameter: Numeric) -> Array:
    """The unit coordinates along a parameter: all its values if there are at most MAX_AXIS_POINTS, else an even grid."""
    if parameter.levels is not None and parameter.levels <= MAX_AXIS_POINTS:
        return parameter.grid_units()
    return np.unique(parameter.snap(np.linspace(0.0, 1.0, MAX_AXIS_POINTS)))


def imagined_config(space: Space, recommended: Config, at: Mapping[str, Any]) -> Config:
    """``at``, completed by the active parameters of the recommended config; a ConfigError if it does not fit the space."""
    if not isinstance(at, Mapping) or any(name not in space for name in at):
        return space.check(at)  # raises the error that says what is wrong
    given = {name: space[name].check(value, name) for name, value in at.items()}
    merged = recommended | given
    active = space.decode(space.encode(merged))
    return space.check({name: value for name, value in merged.items() if name in active or name in given})


def read_outcome(outcome: Any, sign: float, belief: Belief) -> float:
    """The imagined value as a float; an error if it is not a finite number, or if the model cannot have it."""
    value = number_between(outcome, "outcome", error=OutcomeError)
    assert value is not None
    if belief.output.kind == "log" and sign * value <= 0.0:
        raise OutcomeError(f"outcome = {value!r} is not possible: the model takes logarithms of the values; give a positive one")
    return float(value)
