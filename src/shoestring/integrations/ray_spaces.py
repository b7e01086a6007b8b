"""Search spaces of Ray Tune, both ways: nested dicts with ``tune.uniform``, ``tune.choice`` and the like.

A nested entry {"model": {"depth": tune.randint(1, 9)}} is the parameter "model/depth", as in the tables of Tune.

What has no counterpart is a SpaceError that names it: normal distributions, steps on a log scale, ``sample_from``,
``grid_search``; the other way conditions, fidelities, and steps that are not multiples of the step.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import SpaceError
from ..space.parameters import Choice, Fidelity, Float, Int
from ..space.space import Parameter, Space
from .distributions import Decoder, Translation, read_list

SEPARATOR = "/"  # of the levels of a nested dict, as in Tune's own tables
GRID_SEARCH = "grid_search"


def space_from_ray(param_space: Mapping[str, Any]) -> Space:
    """The ``st.Space`` of a search space of Ray Tune; a constant becomes a Choice with one option.

    >>> from shoestring.integrations.ray_spaces import space_from_ray
    >>> space_from_ray({"lr": st.Float(1e-4, 0.1, log=True), "model": {"depth": st.Int(1, 8)}}).names
    ('lr', 'model/depth')
    """
    parameters: dict[str, Parameter] = {}
    for name, given in flattened(param_space):
        parameter, decode = read_domain(name, given) if is_searched(given) else (Choice([given]), None)
        if decode is not None:
            raise SpaceError(
                f"{name}: its options {given.categories!r} are not all JSON values; give names, and look them up in the trainable"
            )
        parameters[name] = parameter
    return Space(parameters)


def read_ray_space(param_space: Mapping[str, Any]) -> Translation:
    """The part of a search space that is searched, and the values for its configs; constants are Tune's own matter."""
    parameters: dict[str, Parameter] = {}
    entries: dict[str, tuple[str, Decoder | None]] = {}
    for name, given in flattened(param_space):
        if is_searched(given):
            parameters[name], decode = read_domain(name, given)
            entries[name] = name, decode
    if not parameters:
        raise SpaceError(
            "the search space has nothing to search; give a distribution, such as "
            'param_space={"lr": tune.loguniform(1e-4, 1e-1)}, or ShoestringSearch(space=st.Space(...))'
        )
    return Translation(Space(parameters), entries)


def flattened(nested: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Names and values of a nested dict; the levels of a name are joined by SEPARATOR."""
    if not isinstance(nested, Mapping):
        raise SpaceError(f"a search space of Ray Tune is a dict, not {nested!r}")
    for key, value in nested.items():
        name = f"{above}{key}"
        if isinstance(value, Mapping) and GRID_SEARCH in value:
            raise SpaceError(
                f"{name}: grid_search has no counterpart, since a search method chooses the values itself; "
                f"write tune.choice({list(value[GRID_SEARCH])!r})"
            )
        if isinstance(value, Mapping):
            yield from flattened(value, name + SEPARATOR)
            continue
        if isinstance(value, list | tuple) and has_searched(value):
            raise SpaceError(f"{name}: a distribution inside of a list has no counterpart; give it a name of its own")
        yield name, value


def nested(config: Mapping[str, Any]) -> dict[str, Any]:
    """A config as a nested dict: the inverse of ``flattened``."""
    found: dict[str, Any] = {}
    for name, value in config.items():
        *above, last = name.split(SEPARATOR)
        inner = found
        for key in above:
            inner = inner.setdefault(key, {})
            if not isinstance(inner, dict):
                raise SpaceError(f"{name}: {SEPARATOR.join(above)} is a parameter itself, so nothing can be nested in it")
        if last in inner:
            raise SpaceError(f"{name}: it is both a parameter and a dict of parameters")
        inner[last] = value
    return found


def is_searched(given: Any) -> bool:
    """Whether this is a distribution of Ray Tune, or a parameter of this library."""
    if isinstance(given, Float | Int | Choice | Fidelity):
        return True
    return any(kind.__name__ == "Domain" and kind.__module__.startswith("ray.tune") for kind in type(given).__mro__)


def has_searched(given: Any) -> bool:
    """Whether there is a distribution in it, at any depth."""
    if isinstance(given, Mapping):
        return any(map(has_searched, given.values()))
    return any(map(has_searched, given)) if isinstance(given, list | tuple) else is_searched(given)


def read_domain(name: str, given: Any) -> tuple[Parameter, Decoder | None]:
    """The parameter for a distribution of Ray Tune, and the decoder of its values; None if configs hold the value itself."""
    if isinstance(given, Float | Int | Choice | Fidelity):
        return given, None
    kind = type(given).__name__
    if kind == "Function":
        raise SpaceError(
            f"{name}: sample_from has no counterpart, since a function says nothing about the range of its values; "
            "give a range, or compute the value in the trainable; for a parameter that depends on another one give "
            "ShoestringSearch(space=st.Space(...)) with when="
        )
    if kind == "Categorical":
        if type(given.get_sampler()).__name__ == "Grid":
            raise SpaceError(f"{name}: grid_search has no counterpart; write tune.choice({given.categories!r})")
        return _read_categories(name, list(given.categories))
    if kind not in ("Float", "Integer"):
        raise SpaceError(f"{name}: cannot read a distribution of type {kind}")
    return _read_number(name, given, whole=kind == "Integer"), None


def _read_categories(name: str, values: list[Any]) -> tuple[Parameter, Decoder | None]:
    """A Choice of the values if they are JSON values, else of their indices: functions, tuples, classes."""
    choice = Choice(values)
    try:
        choice.validate(name)
    except SpaceError:
        return read_list(name, values)
    return (choice, None) if list(choice.options) == values else read_list(name, values)


def _read_number(name: str, given: Any, *, whole: bool) -> Parameter:
    sampler, step = given.get_sampler(), None
    if type(sampler).__name__ == "Quantized":
        sampler, step = sampler.get_sampler(), sampler.q
    scale = str(sampler)  # "Uniform", "LogUniform" or "Normal"
    if scale not in ("Uniform", "LogUniform"):
        raise SpaceError(
            f"{name}: a {scale.lower()} distribution has no bounds and no counterpart; "
            "give a range, such as tune.uniform(low, high)"
        )
    if step is not None and scale == "LogUniform" and not (whole and step == 1):
        raise SpaceError(f"{name}: steps of {step} on a log scale have no counterpart; leave out the steps, or the log scale")
    low, high = given.lower, given.upper
    if whole and step in (None, 1):
        low, high, step = int(low), int(high) - 1, None  # Tune excludes the upper bound
    elif step is not None:  # the multiples of the step, the upper bound included
        low, high = (_multiple(bound, step, up) for bound, up in ((low, True), (high, False)))
    if low > high:
        raise SpaceError(f"{name}: there is no value between {given.lower} and {given.upper}")
    if low == high:
        return Choice([low])
    return (Int if whole else Float)(low, high, log=scale == "LogUniform", step=step)


def _multiple(bound: float, step: float, up: bool) -> float:
    """The nearest multiple of a step inside of a bound, without rounding errors."""
    count = bound / step
    nearest = round(count)
    if not math.isclose(count, nearest):
        nearest = math.ceil(count) if up else math.floor(count)
    if isinstance(step, int):
        return nearest * step
    return round(nearest * step, max(0, 12 - math.floor(math.log10(step))))


def space_to_ray(space: Space) -> dict[str, Any]:
    """The space as a search space of Ray Tune; names with a "/" become nested dicts. Needs the extra ``tune``."""
    if not isinstance(space, Space):
        raise SpaceError(f"expected an st.Space, not {space!r}")
    try:
        from ray import tune
    except ImportError as error:
        raise ImportError('a search space of Ray Tune needs Ray: pip install "shoestring[tune]"') from error
    return nested({name: _write_domain(tune, name, space[name]) for name in space})


def _write_domain(tune: Any, name: str, parameter: Parameter) -> Any:
    if isinstance(parameter, Fidelity):
        raise SpaceError(
            f"{name}: a fidelity has no counterpart in Ray Tune; take it out, and give the scheduler its range (time_attr, max_t)"
        )
    if parameter.when:
        raise SpaceError(
            f"{name}: a condition has no counterpart in Ray Tune; give the space to the searcher: ShoestringSearch(space=space)"
        )
    if isinstance(parameter, Choice):
        return tune.choice(list(parameter.options))
    low, high, step = parameter.low, parameter.high, parameter.step
    if step is not None:
        if low != _multiple(low, step, up=True):
            raise SpaceError(
                f"{name}: steps of {step:g} from {low:g} have no counterpart, since Tune counts steps from 0; "
                f"let low be a multiple of {step:g}"
            )
        top = _multiple(high, step, up=False)
        if isinstance(parameter, Float):
            return tune.quniform(low, top, step)
        return tune.randint(int(low), int(top) + 1) if step == 1 else tune.qrandint(int(low), int(top), int(step))
    if isinstance(parameter, Float):
        return (tune.loguniform if parameter.log else tune.uniform)(low, high)
    return (tune.lograndint if parameter.log else tune.randint)(int(low), int(high) + 1)
