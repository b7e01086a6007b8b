"""Spaces and Optuna's distributions, both ways.

    FloatDistribution(low, high, log, step)    Float
    IntDistribution(low, high, log, step)      Int
    CategoricalDistribution(choices)           Choice

Optuna has no word for a condition, a fidelity, or an option that is a list or a dict. An objective in Optuna says by itself when
a parameter exists, so ``to_distributions`` leaves conditions out where it is told to, and is an error otherwise.

``conditions_of`` finds the conditions that the finished trials of a define-by-run study show: in which trials a parameter was
sampled, and which value of which other parameter explains it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

try:
    from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
except ImportError as error:
    raise ImportError('the bridge to Optuna needs Optuna: pip install "shoestring[optuna]"') from error

from ..errors import SpaceError
from ..space.parameters import Choice, Fidelity, Float, Int
from ..space.space import Parameter, Space

MAX_PARENT_VALUES = 32  # of a parameter on which others may be conditional

Conditions = dict[str, dict[str, list[Any]]]  # parameter -> {parent: its values under which the parameter exists}


def from_distributions(
    distributions: Mapping[str, BaseDistribution], conditions: Mapping[str, Mapping[str, Any]] | None = None
) -> Space:
    """The space of some distributions of Optuna; a SpaceError that names the parameter if one cannot be expressed.

    conditions   parameter -> {parent: value, or a list of values}, as for ``when=``

    >>> from optuna.distributions import FloatDistribution
    >>> from shoestring.integrations.optuna import from_distributions
    >>> from_distributions({"lr": FloatDistribution(1e-5, 0.1, log=True)})["lr"].log
    True
    """
    when = conditions or {}
    return Space({name: to_parameter(name, each, when.get(name)) for name, each in distributions.items()})


def to_parameter(name: str, distribution: BaseDistribution, when: Mapping[str, Any] | None = None) -> Parameter:
    """One distribution as a parameter, checked."""
    if not isinstance(distribution, BaseDistribution):
        how = "give a dict of Optuna's distributions, such as {'x': FloatDistribution(0, 1)}"
        raise SpaceError(f"{name}: {distribution!r} is no distribution of Optuna; {how}")
    if distribution.single():
        raise SpaceError(f"{name} has one value ({distribution}) and is no parameter; leave it out, and set it in the objective")
    parameter: Parameter
    if isinstance(distribution, CategoricalDistribution):
        parameter = Choice(list(distribution.choices), when=when)
    elif isinstance(distribution, IntDistribution):
        step = None if distribution.step == 1 or distribution.log else distribution.step
        parameter = Int(distribution.low, distribution.high, log=distribution.log, step=step, when=when)
    elif isinstance(distribution, FloatDistribution):
        low, high = distribution.low, distribution.high
        parameter = Float(low, high, log=distribution.log, step=distribution.step, when=when)
    else:
        kind = type(distribution).__name__
        raise SpaceError(f"{name}: {kind} has no counterpart here; use a float, an int or a categorical distribution")
    parameter.validate(name)
    return parameter


def to_distributions(space: Space, *, conditions: bool = False) -> dict[str, BaseDistribution]:
    """The distributions of a space; a SpaceError that names the parameter if one cannot be expressed.

    ``conditions=True`` leaves conditions out: the objective then asks for a parameter where it needs it.

    >>> from shoestring.integrations.optuna import to_distributions
    >>> to_distributions(st.Space(depth=st.Int(2, 12)))
    {'depth': IntDistribution(high=12, log=False, low=2, step=1)}
    """
    if not isinstance(space, Space):
        raise SpaceError(f"expected an st.Space, not {space!r}; to read distributions of Optuna, use from_distributions")
    found: dict[str, BaseDistribution] = {}
    for name, parameter in space.items():
        if isinstance(parameter, Fidelity):
            how = "leave it out, and report intermediate values in the objective (trial.report)"
            raise SpaceError(f"{name} is a fidelity, which Optuna's distributions cannot express; {how}")
        if parameter.when is not None and not conditions:
            how = "say conditions=True, and ask for it in the objective only then"
            when = dict(parameter.when)
            raise SpaceError(f"{name} is conditional ({when}), which Optuna's distributions cannot express; {how}")
        found[name] = to_distribution(name, parameter)
    return found


def to_distribution(name: str, parameter: Parameter) -> BaseDistribution:
    """One parameter as a distribution."""
    if isinstance(parameter, Choice):
        for option in parameter.options:
            if not isinstance(option, None | bool | int | float | str):
                how = "give it a name, and look it up in the objective"
                raise SpaceError(f"{name}: option {option!r} is a {type(option).__name__}, which Optuna cannot store; {how}")
        return CategoricalDistribution(parameter.options)
    low, high, log = parameter.low, parameter.high, parameter.log
    if isinstance(parameter, Int):
        return IntDistribution(int(low), int(high), log=log, step=1 if parameter.step is None else int(parameter.step))
    return FloatDistribution(float(low), float(high), log=log, step=parameter.step)


def in_numbers(name: str, distribution: BaseDistribution, when: Mapping[str, Any] | None = None) -> Parameter:
    """As ``to_parameter``, with options by their numbers: a sampler need not know what they are."""
    if isinstance(distribution, CategoricalDistribution):
        return Choice(list(range(len(distribution.choices))), when=when)
    return to_parameter(name, distribution, when)


def can_be_searched(name: str, distribution: BaseDistribution) -> bool:
    """Whether there is a parameter for a distribution."""
    try:
        return not distribution.single() and in_numbers(name, distribution) is not None
    except SpaceError:
        return False


def internal_value(distribution: BaseDistribution, value: Any) -> float | int:
    """A value as ``in_numbers`` has it: of a category, its number."""
    number = distribution.to_internal_repr(value)
    return float(number) if isinstance(distribution, FloatDistribution) else int(number)


def external_value(distribution: BaseDistribution, value: float | int) -> Any:
    """The inverse of ``internal_value``: a value as Optuna has it."""
    return distribution.to_external_repr(float(value))


def merged(known: Sequence[BaseDistribution]) -> BaseDistribution:
    """One distribution for a parameter whose range has changed: that of the last two trials if they agree, else the widest."""
    return known[-1] if known[-2:] == [known[-1]] * 2 else merged_widest(known)


def merged_widest(known: Sequence[BaseDistribution]) -> BaseDistribution:
    """The distribution with the lowest and the highest bound of all; Optuna itself keeps kind, scale and choices the same."""
    last = known[-1]
    if isinstance(last, CategoricalDistribution) or all(each == last for each in known):
        return last
    same = [each for each in known if type(each) is type(last)]
    lows, steps = {each.low for each in same}, {each.step for each in same}  # type: ignore[attr-defined]
    low, high = min(lows), max(each.high for each in same)  # type: ignore[attr-defined]
    one_grid = len(lows) == len(steps) == 1
    if isinstance(last, IntDistribution):
        return IntDistribution(low, high, log=last.log, step=last.step if one_grid else 1)
    assert isinstance(last, FloatDistribution)
    return FloatDistribution(low, high, log=last.log, step=last.step if one_grid else None)


# -- conditions ---------------------------------------------------------------------------------------------------------


def conditions_of(
    configs: Sequence[Mapping[str, Any]], distributions: Mapping[str, BaseDistribution]
) -> tuple[Conditions, list[list[str]]]:
    """The conditions that explain in which configs a parameter is, and groups of parameters that nothing explains.

    The values of configs are as Optuna has them; those of conditions are internal ones. A parent is in more configs than its
    child, so conditions never go in a circle. Of several parents that fit, the one that is in most configs and has the fewest
    values is taken.
    """
    counts = {name: sum(name in config for config in configs) for name in distributions}
    possible = [name for name, each in distributions.items() if levels(each) <= MAX_PARENT_VALUES]
    possible.sort(key=lambda name: (-counts[name], levels(distributions[name])))
    conditions: Conditions = {}
    unexplained: dict[tuple[bool, ...], list[str]] = {}
    for name in distributions:
        if counts[name] in (0, len(configs)):
            continue
        for parent in possible:
            if counts[parent] <= counts[name]:
                continue
            allowed = allowed_values(name, parent, distributions[parent], configs)
            if allowed is not None:
                conditions[name] = {parent: allowed}
                break
        else:
            unexplained.setdefault(tuple(name in config for config in configs), []).append(name)
    lost = {name for group in unexplained.values() for name in group}
    while moved := [name for name, when in conditions.items() if set(when) & lost]:  # children of what nothing explains
        for name in moved:
            del conditions[name]
            unexplained.setdefault(tuple(name in config for config in configs), []).append(name)
        lost |= set(moved)
    return conditions, list(unexplained.values())


def allowed_values(
    name: str, parent: str, distribution: BaseDistribution, configs: Iterable[Mapping[str, Any]]
) -> list[Any] | None:
    """The values of a parent under which a parameter exists; None if the parent does not explain it.

    Of a whole number (layers, say), a parameter that exists for all large values or for all small ones does so for those that no
    trial has had yet.
    """
    having: set[Any] = set()
    lacking: set[Any] = set()
    for config in configs:
        if parent in config:
            (having if name in config else lacking).add(internal_value(distribution, config[parent]))
        elif name in config:
            return None
    if having & lacking or not having:
        return None
    if isinstance(distribution, IntDistribution) and lacking:
        values = range(distribution.low, distribution.high + 1, distribution.step)
        if min(having) > max(lacking):
            return [each for each in values if each >= min(having)]
        if max(having) < min(lacking):
            return [each for each in values if each <= max(having)]
    return sorted(having)


def levels(distribution: BaseDistribution) -> float:
    """The number of values of a distribution."""
    if isinstance(distribution, CategoricalDistribution):
        return len(distribution.choices)
    if isinstance(distribution, IntDistribution):
        return (distribution.high - distribution.low) // distribution.step + 1
    return math.inf


def holds(conditions: Conditions, distributions: Mapping[str, BaseDistribution], config: Mapping[str, Any]) -> bool:
    """Whether a config has exactly the parameters that the conditions say."""
    for name in distributions:
        when = conditions.get(name, {})
        expected = all(
            parent in config and internal_value(distributions[parent], config[parent]) in allowed
            for parent, allowed in when.items()
        )
        if expected != (name in config):
            return False
    return True
