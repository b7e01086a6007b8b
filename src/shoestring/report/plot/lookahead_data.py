"""From what the user wrote of a slice (``along=``, ``at=``, ``outcome=``, ``method=``) to what it is cut with.

A belief along one parameter, now and after an imagined observation: the numbers behind ``plot.lookahead``.

Source: the slides on computationally expensive acquisition functions (the one-step look-ahead surrogate, the minimum of its
mean, p_min). The other parameters are held at the recommended config, fidelities at their target. Where hyperparameters are
integrated out, means and deviations are those over all sets, and draws are taken from each set alike. Running trials count as
they do for an acquisition: as if they had come out a little worse than expected.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._format import config_text
from ..._validation import plain
from ...acquisition.base import Acquisition
from ...acquisition.entropy_search import ES
from ...acquisition.improvement import EI
from ...acquisition.knowledge_gradient import KG
from ...data.visited import SAME_POINT
from ...errors import MethodError, OutcomeError
from ...numerics import Array, single_threaded
from ...search.base import SearchContext
from ...search.recommend import lowest_mean, negative_mean
from ...space.parameters import Choice, Numeric
from ...space.space import Config, Space
from ...surrogate.belief import Belief


def read_acquisitions(method: Any) -> dict[str, Acquisition]:
    """An acquisition or several, by name; with their settings where two have the same name."""
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


def read_numbers(space: Space, along: str | None) -> list[str]:
    """The parameters that can be an axis; an error if there are none, or if the one that was asked for is none of them."""
    numbers = [name for name, parameter in space.items() if not isinstance(parameter, Choice) and not parameter.fidelity]
    if not numbers:
        raise MethodError("this space has no axis to draw along: that takes a Float or an Int")
    if along is not None and along not in numbers:
        raise MethodError(f"along={along!r} is no Float or Int of this space; choose one of {', '.join(numbers)}")
    return numbers


def choose_axis(space: Space, numbers: list[str], along: str | None, best: Array) -> str:
    """The parameter asked for, or the first; active at the recommended config, or nothing would change along it."""
    config = space.decode(best)
    active = [name for name in numbers if name in config]
    if along in active:
        return str(along)
    if along is None and active:
        return active[0]
    mend = f"; choose one of {', '.join(active)}" if active else ""
    raise MethodError(f"{along or ', '.join(numbers)} is not active at the recommended config ({config_text(config)}){mend}")


def imagined_config(space: Space, held: Config, at: Mapping[str, Any]) -> Config:
    """``at``, completed by what of the recommended config is active there; a ConfigError if it does not fit."""
    if not isinstance(at, Mapping) or any(name not in space for name in at):
        return space.check(at)  # says what is wrong
    given = {name: space[name].check(value, name) for name, value in at.items()}
    merged = held | given
    active = space.decode(space.encode(merged))
    return space.check({name: value for name, value in merged.items() if name in active or name in given})


def read_outcome(outcome: Any, sign: float, belief: Belief) -> float:
    value = plain(outcome)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise OutcomeError(f"outcome must be a finite number, not {outcome!r}")
    if belief.output.kind == "log" and sign * value <= 0.0:
        raise OutcomeError(f"outcome = {value!r} cannot be: the model takes the logarithm of all values; give a positive one")
    return float(value)


POINTS = 201  # along the axis; a parameter with fewer values is looked at in each of them
DRAWS = 32_768  # of the function, for p_min: a chance of 1 % is known to an 18th of itself
BAND = 2.0  # deviations to either side of the mean
STREAM = 0x511CE  # the draws have randomness of their own, the same now and then: what differs is what was learnt


@dataclass(frozen=True)
class View:
    """A surrogate along the axis: mean and band in the user's units, and each point's chance of being the minimiser.

    ``lowest`` is the number of the point with the best mean: the lowest one, or the highest where the user maximizes.
    """

    mean: Array
    low: Array
    high: Array
    p_min: Array
    lowest: int

    @property
    def entropy(self) -> float:
        """H(p_min) in nats: how little is known of where the minimum lies."""
        p = self.p_min[self.p_min > 0.0]
        return float((p * np.log(1.0 / p)).sum())


@dataclass(frozen=True)
class Shadows:
    """Trials as seen along the axis; values are empty for those that have none, ``inside`` says which lie on the slice itself."""

    x: Array
    values: Array
    inside: NDArray[np.bool_]


@dataclass(frozen=True)
class Slice:
    """``x`` along the parameter ``along`` in its own units, the surrogate there now and then, and the acquisitions now.

    held          what the other parameters are held at
    at, outcome   the imagined observation
    acquisitions  each between 0 and 1, its highest value
    """

    along: str
    parameter: Numeric
    x: Array
    held: Config
    now: View
    then: View
    at: Config
    outcome: float
    acquisitions: Mapping[str, Array]
    done: Shadows
    failed: Shadows
    running: Shadows


@single_threaded
def look_along(
    context: SearchContext,
    along: str | None = None,
    at: Mapping[str, Any] | None = None,
    outcome: float | None = None,
    method: Any = None,
) -> Slice | None:
    """The slice along one parameter; None while nothing has succeeded.

    along    a Float or Int; the first one that is active at the recommended config unless given
    at       where an observation is imagined: a config, or part of one; where the first acquisition is highest unless given
    outcome  what it gives, in the user's units; one deviation better than predicted unless given
    method   an acquisition or a list of them; EI, KG and ES unless given
    """
    space, encoding, seen = context.space, context.encoding, context.data
    acquisitions = read_acquisitions(method)
    numbers = read_numbers(space, along)
    if not seen.finished:
        return None
    belief = context.belief(costs=any(each.uses_cost for each in acquisitions.values()))
    best = lowest_mean(belief, negative_mean(belief), context.optimizer())
    best = space.snap(space.at_target(best[None, :]))[0]
    along = choose_axis(space, numbers, along, best)
    column, parameter = space.names.index(along), space[along]
    assert isinstance(parameter, Numeric)
    units = axis_units(parameter)
    U = np.repeat(best[None, :], len(units), axis=0)
    U[:, column] = units
    U = space.snap(U)
    held = {name: value for name, value in space.decode(best).items() if name != along}

    curves = {name: shares(each, belief, U, context.rng) for name, each in acquisitions.items()}
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

    def view(one: Belief) -> View:
        return seen_along(one, encoding.features(U), seen.sign, np.random.default_rng([context.seed, context.number, STREAM]))

    def shadows(points: Array, values: Array) -> Shadows:
        active = space.active(points)[:, column]
        elsewhere = np.delete(np.abs(points - best), column, axis=1)
        inside = (elsewhere < SAME_POINT).all(axis=1)
        return Shadows(parameter.values(points[active, column]), values[active] if len(values) else values, inside[active])

    done = seen.without_intermediate()
    return Slice(
        along, parameter, parameter.values(units), held, view(belief), view(after(belief, z, modelled)), config, outcome, curves,
        shadows(done.U, seen.sign * done.y), shadows(seen.failed, np.empty(0)), shadows(seen.pending, np.empty(0)),
    )


def after(belief: Belief, z: Array, value: Array) -> Belief:
    """The one-step look-ahead: what would be believed after this value (in the model's units) at features z."""

    def learnt(one: Belief) -> Belief:
        return replace(one, objective=one.objective.condition(z, value))

    return replace(learnt(belief), hyperparameter_samples=tuple(learnt(each) for each in belief.hyperparameter_samples))


def seen_along(belief: Belief, Z: Array, sign: float, rng: np.random.Generator) -> View:
    """The objective at features Z; the transform of the values is not linear, so the ends of the band go through it."""
    mean, variance = belief.moments(Z)
    reach = BAND * np.sqrt(variance)
    ends = sign * belief.output.inverse(np.array([mean - reach, mean + reach]))
    counts = np.zeros(len(Z))
    for each in belief.samples:
        draws = each.objective.sample(Z, math.ceil(DRAWS / len(belief.samples)), rng)
        counts += np.bincount(np.argmin(draws, axis=1), minlength=len(Z))
    middle = sign * belief.output.inverse(mean)
    return View(middle, ends.min(axis=0), ends.max(axis=0), counts / counts.sum(), int(np.argmin(mean)))


def shares(acquisition: Acquisition, belief: Belief, U: Array, rng: np.random.Generator) -> Array:
    """The acquisition at U as a share of its highest value, since most are searched by their logarithms.

    Bounds and indices are no logarithms but values in deviations: theirs falls by the factor e with each of them.
    """
    values = acquisition.averaged_surface(belief, rng)(U, False)[0]
    values = np.where(np.isnan(values), -np.inf, values)
    top = values.max()
    return np.asarray(np.exp(values - top)) if np.isfinite(top) else np.zeros(len(U))


def axis_units(parameter: Numeric) -> Array:
    """Unit coordinates along a parameter: all its values where they are few, else evenly spread ones."""
    if parameter.levels is not None and parameter.levels <= POINTS:
        return parameter.grid_units()
    return np.unique(parameter.snap(np.linspace(0.0, 1.0, POINTS)))
