"""Spaces of ConfigSpace, both ways: its JSON files, the dicts that they stand for, and its ``ConfigurationSpace`` objects.

ConfigSpace itself is not needed: its serialized form (``format_version`` 0.4, ConfigSpace 0.4 to 1.2) is read and written here.

What has no counterpart is a SpaceError that names it: forbidden clauses, normal and beta distributions, weights, conditions on a
continuous parent, "or" over several parents; the other way fidelities. Defaults, meta data and comments are not read.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .._validation import is_number
from ..errors import ConfigError, SpaceError
from ..space.parameters import Choice, Fidelity, Float, Int
from ..space.space import Parameter, Space
from .distributions import condition_values, listed_values, with_condition

FORMAT_VERSION = 0.4
MAX_LISTED_VALUES = 1000  # of a parameter in steps, which is written as an ordinal one, and of a parent whose values are compared
RELATIVE_SPACING = 1e-9  # numbers of a sequence are evenly spaced if their differences agree to this

Values = dict[str, list[Any]]  # by parent: the values under which a parameter is active


# -- from ConfigSpace --------------------------------------------------------------------------------------------------


def space_from_configspace(given: Any) -> Space:
    """The ``st.Space`` of a ConfigSpace: a path of a JSON file, JSON text, the dict that it stands for, or the object itself.

    Uniform numbers become Float and Int, categories a Choice, a constant a Choice with one option. An ordinal parameter becomes
    an Int or a Float with steps if its values are evenly spaced numbers, else a Choice, which has no order. Conditions (EQ, NEQ,
    IN, LT, GT, AND) become ``when=``.

    >>> from shoestring.integrations.configspace_spaces import space_from_configspace
    >>> lr = {"type": "uniform_float", "name": "lr", "lower": 1e-4, "upper": 0.1, "log": True}
    >>> space_from_configspace({"hyperparameters": [lr]})
    Space(lr=Float(low=0.0001, high=0.1, log=True, step=None, when=None))
    """
    fields = _fields_of(given)
    if forbidden := fields.get("forbiddens"):
        raise SpaceError(
            f"forbidden clauses have no counterpart in an st.Space: {_clause_text(forbidden[0])}"
            f"{f' and {len(forbidden) - 1} more' if len(forbidden) > 1 else ''}; "
            "express them as conditions, or take them out and raise an error in the objective for such configs"
        )
    parameters: dict[str, Parameter] = {}
    ordered: set[str] = set()
    for item in fields["hyperparameters"]:
        name = item.get("name") if isinstance(item, Mapping) else None
        if not isinstance(name, str):
            raise SpaceError(f"cannot read this hyperparameter: {item!r}; expected an object with a name and a type")
        if name in parameters:
            raise SpaceError(f"there are two hyperparameters {name!r}; give one of them another name, or take it out")
        parameters[name] = _read_parameter(name, item)
        if item.get("type") != "categorical":
            ordered.add(name)
    conditions: dict[str, Values] = {}
    for condition in fields.get("conditions") or ():
        child = _child_of(condition)
        if child not in parameters:
            raise SpaceError(f"a condition is on {child!r}, which is not among the hyperparameters ({', '.join(parameters)})")
        allowed = _allowed(condition, child, parameters, ordered)
        conditions[child] = _both(conditions[child], allowed, child) if child in conditions else allowed
    for child, allowed in conditions.items():
        when = {parent: values[0] if len(values) == 1 else values for parent, values in allowed.items()}
        parameters[child] = with_condition(parameters[child], when)
    return Space(parameters)


def _child_of(condition: Any) -> Any:
    """The name of the hyperparameter that a condition is on; of several conditions joined, that of the first."""
    if isinstance(condition, Mapping) and condition.get("child") is None and condition.get("type") in ("AND", "OR"):
        return _child_of(_entry(condition, "conditions")[0])
    return _entry(condition, "child")


def _entry(condition: Any, key: str, child: str | None = None) -> Any:
    """An entry of a condition; a SpaceError that shows the condition if it has none."""
    if not isinstance(condition, Mapping):
        raise SpaceError(f"cannot read this condition: {condition!r}; expected an object with a type, a child and a parent")
    found, listed = condition.get(key), key in ("conditions", "values")
    if key not in condition or (listed and not (isinstance(found, list | tuple) and found)):
        wanted = f"a list {key!r} that is not empty" if listed else f"an entry {key!r}"
        what = f"a condition of type {condition.get('type')!r} needs {wanted}; this one is {dict(condition)!r}"
        raise SpaceError(what if child is None else f"{child}: {what}")
    return found


def _fields_of(given: Any) -> Mapping[str, Any]:
    """The serialized form of whatever was given."""
    if hasattr(given, "to_serialized_dict"):  # a ConfigurationSpace of ConfigSpace 1
        given = given.to_serialized_dict()
    if isinstance(given, os.PathLike) or (isinstance(given, str) and not given.lstrip().startswith("{")):
        try:
            given = Path(given).read_text(encoding="utf-8")
        except OSError as error:
            raise SpaceError(f"cannot read the ConfigSpace in {os.fspath(given)!r}: {error.strerror or error}") from None
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except json.JSONDecodeError as error:
            raise SpaceError(f"cannot read the ConfigSpace: it is not JSON: {error}") from None
    if not isinstance(given, Mapping) or not isinstance(given.get("hyperparameters"), Sequence):
        raise SpaceError(
            'expected a ConfigSpace: a JSON file, or a dict with "hyperparameters", as ConfigurationSpace.to_json() and '
            f".to_serialized_dict() write it, not {type(given).__name__}"
        )
    return given


def _read_parameter(name: str, item: Mapping[str, Any]) -> Parameter:
    kind = item.get("type")
    try:
        if kind in ("uniform_float", "uniform_int"):
            make = Float if kind == "uniform_float" else Int
            if item.get("q") is not None and item.get("log"):
                raise SpaceError(f"{name}: q={item['q']} on a log scale has no counterpart; take out q, or the log scale")
            return make(item["lower"], item["upper"], log=bool(item.get("log")), step=item.get("q"))
        if kind == "categorical":
            weights = item.get("weights") or item.get("probabilities")
            if weights and len(set(weights)) > 1:
                raise SpaceError(f"{name}: weights of categories have no counterpart; take them out: all options are then alike")
            return Choice(list(item["choices"]))
        if kind == "ordinal":
            return _from_sequence(list(item["sequence"]))
        if kind == "constant":
            return Choice([item["value"]])
    except KeyError as error:
        raise SpaceError(f"{name}: a {kind} hyperparameter needs {error}") from None
    if kind in ("normal_float", "normal_int", "beta_float", "beta_int"):
        density, number = str(kind).split("_")
        raise SpaceError(
            f"{name}: a {density} distribution has no counterpart, since an st.Space has ranges and no densities; "
            f"write it as uniform_{number} with its bounds"
        )
    raise SpaceError(f"{name}: cannot read a hyperparameter of type {kind!r}")


def _from_sequence(values: list[Any]) -> Parameter:
    """An ordinal parameter: as numbers in steps where they are, else as a Choice."""
    if len(values) > 2 and all(is_number(value) for value in values):
        step = values[1] - values[0]
        even = all(abs(b - a - step) <= RELATIVE_SPACING * abs(step) for a, b in itertools.pairwise(values))
        if step > 0 and even:
            kind = Int if all(isinstance(value, int) for value in values) else Float
            return kind(values[0], values[-1], step=step)
    return Choice(values)


def _allowed(condition: Mapping[str, Any], child: str, parameters: Mapping[str, Parameter], ordered: set[str]) -> Values:
    """The values of each parent under which the child is active."""
    kind = _entry(condition, "type", child)
    if kind in ("AND", "OR"):
        parts = [_allowed(part, child, parameters, ordered) for part in _entry(condition, "conditions", child)]
        if kind == "OR" and len({name for part in parts for name in part}) > 1:
            names = sorted({name for part in parts for name in part})
            raise SpaceError(
                f"{child}: an OR over several parents ({', '.join(names)}) has no counterpart; when= asks for all of its entries"
            )
        allowed = parts[0]
        for part in parts[1:]:
            allowed = _both(allowed, part, child) if kind == "AND" else _either(allowed, part)
        return allowed
    parent = _entry(condition, "parent", child)
    if parent not in parameters:
        raise SpaceError(f"{child}: its condition names {parent!r}, which is not among the hyperparameters")
    assert isinstance(parent, str)
    return {parent: _matching(kind, condition, child, parent, parameters[parent], ordered)}


def _matching(
    kind: Any, condition: Mapping[str, Any], child: str, parent: str, above: Parameter, ordered: set[str]
) -> list[Any]:
    """The values of the parent that meet one plain condition."""
    levels = above.levels
    if levels is None:
        raise SpaceError(
            f"{child}: its condition is on {parent}, which is continuous; when= needs a parent with separate values "
            "(categorical, ordinal or uniform_int)"
        )
    try:
        if kind == "EQ":
            return [above.check(_entry(condition, "value", child), parent)]
        if kind == "IN":
            return [above.check(value, parent) for value in _entry(condition, "values", child)]
        if kind not in ("NEQ", "LT", "GT"):
            raise SpaceError(f"{child}: cannot read a condition of type {kind!r}; there are EQ, NEQ, IN, LT, GT, AND, OR")
        if kind != "NEQ" and parent not in ordered:
            raise SpaceError(f"{child}: {kind} needs a parent with an order, and {parent} is categorical")
        if levels > MAX_LISTED_VALUES:
            raise SpaceError(
                f"{child}: its condition {kind} is on {parent}, which has {levels} values; "
                f"when= lists the values of the parent, at most {MAX_LISTED_VALUES}"
            )
        bound = above.level_of(_entry(condition, "value", child), parent)
    except ConfigError as error:
        raise SpaceError(f"{child}: its condition cannot be met: {error}") from None
    meets: Callable[[int], bool] = {
        "NEQ": lambda level: level != bound, "LT": lambda level: level < bound, "GT": lambda level: level > bound,
    }[kind]  # fmt: skip
    found = [value for level, value in enumerate(listed_values(above)) if meets(level)]
    if not found:
        raise SpaceError(f"{child}: its condition cannot be met: no value of {parent} is {kind} {condition['value']!r}")
    return found


def _both(one: Values, other: Values, child: str) -> Values:
    """What both allow."""
    allowed = {**one, **other}
    for parent in set(one) & set(other):
        allowed[parent] = [value for value in one[parent] if value in other[parent]]
        if not allowed[parent]:
            raise SpaceError(f"{child}: its conditions on {parent} contradict each other: it would never be active")
    return allowed


def _either(one: Values, other: Values) -> Values:
    """What one of them allows; both are on the same parent."""
    (parent, values), = one.items()
    return {parent: values + [value for value in other[parent] if value not in values]}


def _clause_text(clause: Any) -> str:
    """A forbidden clause in words, as far as it can be read."""
    inner = clause.get("clauses") if isinstance(clause, Mapping) else None
    if inner:
        return f" {str(clause.get('type', 'and')).lower()} ".join(map(_clause_text, inner))
    shown = {key: value for key, value in clause.items() if key != "type"} if isinstance(clause, Mapping) else clause
    return f"{clause.get('type', '')} {shown}".strip() if isinstance(clause, Mapping) else repr(shown)


# -- to ConfigSpace ----------------------------------------------------------------------------------------------------


def space_to_configspace(space: Space, name: str | None = None) -> dict[str, Any]:
    """The space in the serialized form of ConfigSpace, ready for JSON: ``ConfigurationSpace.from_serialized_dict`` reads it.

    Numbers in steps become ordinal parameters, since ConfigSpace 1 has no steps.

    >>> from shoestring.integrations.configspace_spaces import space_to_configspace
    >>> space_to_configspace(st.Space(n=st.Int(1, 9, log=True)))["hyperparameters"]
    [{'type': 'uniform_int', 'name': 'n', 'lower': 1, 'upper': 9, 'log': True}]
    """
    if not isinstance(space, Space):
        raise SpaceError(f"expected an st.Space, not {space!r}")
    written = [_write_parameter(each, space[each]) for each in space]
    conditions = [_write_condition(each, space) for each in space if space.parents(each)]
    return {
        "name": name, "hyperparameters": written, "conditions": conditions, "forbiddens": [], "format_version": FORMAT_VERSION,
    }  # fmt: skip


def _write_parameter(name: str, parameter: Parameter) -> dict[str, Any]:
    fields = parameter.to_dict()
    if isinstance(parameter, Fidelity):
        raise SpaceError(
            f"{name}: a fidelity has no counterpart in ConfigSpace; take it out, and give it to the tool as its budget "
            "(in SMAC min_budget and max_budget)"
        )
    if isinstance(parameter, Choice):
        if len(parameter.options) == 1:
            return {"type": "constant", "name": name, "value": fields["options"][0]}
        if twice := [option for place, option in enumerate(parameter.options) if option in parameter.options[:place]]:
            raise SpaceError(f"{name}: the option {twice[0]!r} and an equal one of another type are one option in ConfigSpace")
        return {"type": "categorical", "name": name, "choices": fields["options"]}
    if parameter.step is not None:
        if (parameter.levels or 0) > MAX_LISTED_VALUES:
            raise SpaceError(
                f"{name}: {parameter.levels} steps are too many to list (at most {MAX_LISTED_VALUES}), and ConfigSpace has no "
                "steps; leave out step="
            )
        return {"type": "ordinal", "name": name, "sequence": listed_values(parameter)}
    kind, number = ("uniform_int", int) if isinstance(parameter, Int) else ("uniform_float", float)
    return {
        "type": kind, "name": name, "lower": number(parameter.low), "upper": number(parameter.high), "log": parameter.log,
    }  # fmt: skip


def _write_condition(child: str, space: Space) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    for parent in space.parents(child):
        values = condition_values(space, child, parent)
        one = len(values) == 1
        parts.append(
            {"type": "EQ" if one else "IN", "child": child, "parent": parent}
            | ({"value": values[0]} if one else {"values": values})
        )
    return parts[0] if len(parts) == 1 else {"type": "AND", "child": child, "conditions": parts}
