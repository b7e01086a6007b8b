"""A search space: named parameters, some of them conditional, and its map to the unit cube.

Notation: D parameters; a point ``u`` in [0, 1]^D holds one coordinate a parameter, in the order in which they were
given; ``U`` is a matrix of such points. A config is a plain dict in which inactive parameters are absent.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import plain
from ..errors import ConfigError, SpaceError
from ..numerics import Array
from .parameters import Choice, Fidelity, Float, Int

Config = dict[str, Any]
FEW_ENOUGH = 64  # values of a parameter that are kept in a table
Parameter = Float | Int | Fidelity | Choice
_KINDS: dict[str, type[Parameter]] = {"float": Float, "int": Int, "fidelity": Fidelity, "choice": Choice}


class Space(Mapping[str, Parameter]):
    """``Space(lr=Float(1e-5, 1e-1, log=True), act=Choice("relu", "tanh"), ...)``; immutable.

    ``when={"booster": "dart"}`` makes a parameter conditional on the value of another one (a list: on any of several
    values; several entries: on all of them). A parameter whose parent is inactive is inactive too.
    """

    def __init__(self, parameters: Mapping[str, Parameter] | None = None, /, **named: Parameter) -> None:
        self._parameters: dict[str, Parameter] = {**(parameters or {}), **named}
        if not self._parameters:
            raise SpaceError("a space needs at least one parameter, for example Space(x=Float(0, 1))")
        for name, parameter in self._parameters.items():
            if not isinstance(name, str) or not name:
                raise SpaceError(f"a parameter's name must be a non-empty text, not {name!r}")
            if not isinstance(parameter, tuple(_KINDS.values())):
                raise SpaceError(f"{name}: expected Float, Int, Choice or Fidelity, not {parameter!r}")
            parameter.validate(name)
        self.names: tuple[str, ...] = tuple(self._parameters)
        self._column = {name: j for j, name in enumerate(self.names)}
        self._conditions = {name: self._read_condition(name) for name in self.names}
        self._order = self._parents_first()
        if all(parameter.fidelity for parameter in self._parameters.values()):
            raise SpaceError("a space needs at least one parameter that is not a fidelity")

    # -- as a mapping, and in print ------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Parameter:
        return self._parameters[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __len__(self) -> int:
        return len(self._parameters)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __repr__(self) -> str:
        return "Space(" + ", ".join(f"{name}={parameter!r}" for name, parameter in self.items()) + ")"

    def to_json(self) -> str:
        return json.dumps({name: parameter.to_dict() for name, parameter in self.items()}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str | Mapping[str, Any]) -> Space:
        try:
            fields = json.loads(text) if isinstance(text, str) else text
        except json.JSONDecodeError as error:
            raise SpaceError(f"cannot read the space: {error}") from None
        if not isinstance(fields, Mapping) or not all(isinstance(entry, Mapping) for entry in fields.values()):
            raise SpaceError("cannot read the space: expected an object of parameters, as Space.to_json() writes it")
        return cls({name: _parameter(entry, name) for name, entry in fields.items()})

    # -- conditions ------------------------------------------------------------------------------------------------

    def _read_condition(self, name: str) -> dict[str, frozenset[int]]:
        """``when`` as {parent: levels of the parent under which the parameter is active}."""
        when = self[name].when if not isinstance(self[name], Fidelity) else None
        if when is not None and not isinstance(when, Mapping):
            raise SpaceError(f"{name}: when= must be a dict such as {{'booster': 'dart'}}, not {when!r}")
        allowed: dict[str, frozenset[int]] = {}
        for parent, wanted in (when or {}).items():
            if parent not in self:
                raise SpaceError(f"{name}: when= names {parent!r}, which is not in the space ({', '.join(self.names)})")
            above = self[parent]
            if above.fidelity or above.levels is None:
                raise SpaceError(f"{name}: when= needs a parent with separate values (Choice, Int, step=); {parent} is not")
            try:
                levels = [above.level_of(wanted, parent)]
            except ConfigError as error:
                if not isinstance(wanted, list | tuple | set | frozenset) or not wanted:
                    raise SpaceError(f"{name}: when= cannot be met: {error}") from None
                try:
                    levels = [above.level_of(value, parent) for value in wanted]
                except ConfigError as inner:
                    raise SpaceError(f"{name}: when= cannot be met: {inner}") from None
            allowed[parent] = frozenset(levels)
        return allowed

    def _parents_first(self) -> tuple[str, ...]:
        order: list[str] = []
        waiting = list(self.names)
        while waiting:
            ready = [name for name in waiting if all(parent in order for parent in self._conditions[name])]
            if not ready:
                raise SpaceError(f"the conditions go in a circle: {' -> '.join([*waiting, waiting[0]])}")
            order += ready
            waiting = [name for name in waiting if name not in ready]
        return tuple(order)

    def parents(self, name: str) -> tuple[str, ...]:
        return tuple(self._conditions[name])

    @property
    def parents_first(self) -> dict[str, int]:
        """Names and their columns, in an order in which whether a parameter is active is settled before its turn."""
        return {name: self._column[name] for name in self._order}

    def active(self, U: Array) -> NDArray[np.bool_]:
        """Which parameters count at each point of U."""
        mask = np.ones(U.shape, dtype=bool)
        indices: dict[int, NDArray[np.intp]] = {}
        for column, above, allowed in self._links:
            if above not in indices:
                indices[above] = self[self.names[above]].index(U[:, above])
            mask[:, column] &= mask[:, above] & allowed[indices[above]]
        return mask

    @cached_property
    def _links(self) -> list[tuple[int, int, NDArray[np.bool_]]]:
        """(column, parent's column, which of the parent's levels allow it) for every condition, parents first."""
        links = []
        for name in self._order:
            for parent, levels in self._conditions[name].items():
                allowed = np.zeros(self[parent].levels or 0, dtype=bool)
                allowed[list(levels)] = True
                links.append((self._column[name], self._column[parent], allowed))
        return links

    @cached_property
    def ladders(self) -> dict[int, Array]:
        """The unit coordinates of all values, by column, for parameters with few of them (fidelities apart)."""
        return {
            j: parameter.grid_units()
            for j, parameter in enumerate(self.values())
            if parameter.levels is not None and parameter.levels <= FEW_ENOUGH and not parameter.fidelity
        }

    # -- fidelities ------------------------------------------------------------------------------------------------

    @property
    def fidelities(self) -> tuple[str, ...]:
        return tuple(name for name, parameter in self.items() if parameter.fidelity)

    @property
    def target(self) -> dict[str, float | int]:
        """The fidelities at which the answer is wanted."""
        return {name: parameter.goal for name, parameter in self.items() if isinstance(parameter, Fidelity)}

    def at_target(self, U: Array) -> Array:
        """U with every fidelity moved to its target."""
        U = U.copy()
        for name, goal in self.target.items():
            U[:, self._column[name]] = self[name].to_unit(goal)
        return U

    # -- configs and points ------------------------------------------------------------------------------------------

    def check(self, config: Mapping[str, Any]) -> Config:
        """The config in its canonical form, missing fidelities at their target; a ConfigError if it does not fit."""
        if not isinstance(config, Mapping):
            raise ConfigError(f"a configuration is a dict of parameter values, not {config!r}")
        unknown = [name for name in config if name not in self]
        if unknown:
            raise ConfigError(f"unknown parameter {unknown[0]!r}; this space has {', '.join(self.names)}")
        given: Config = self.target | dict(config)
        clean: Config = {}
        for name in self._order:
            unmet = [
                parent for parent, levels in self._conditions[name].items()
                if parent not in clean or self[parent].level_of(clean[parent], parent) not in levels
            ]
            if unmet and name in given:
                held = clean.get(unmet[0], "inactive")
                raise ConfigError(f"{name} is not active here, since {unmet[0]} = {held!r}; leave it out")
            if unmet:
                continue
            if name not in given:
                raise ConfigError(f"{name} is missing; give it a value")
            clean[name] = self[name].check(given[name], name)
        return {name: clean[name] for name in self.names if name in clean}

    def encode(self, config: Mapping[str, Any]) -> Array:
        """The point of a valid config; inactive coordinates are 0.5."""
        u = np.full(len(self), 0.5)
        for name, value in config.items():
            parameter = self[name]
            u[self._column[name]] = parameter.to_unit(parameter.level_of(value, name) if isinstance(parameter, Choice) else value)
        return u

    def decode(self, u: Array) -> Config:
        """The config at a point: always valid, inactive parameters absent."""
        mask = self.active(u[None, :])[0]
        return {name: parameter.from_unit(float(u[j])) for j, (name, parameter) in enumerate(self.items()) if mask[j]}

    def snap(self, U: Array) -> Array:
        """Points moved to those of the configs they decode to; two points of the same config become equal."""
        U = np.column_stack([parameter.snap(U[:, j]) for j, parameter in enumerate(self.values())])
        U[~self.active(U)] = 0.5
        return U

    def key(self, config: Mapping[str, Any]) -> str:
        """A text that is equal for equal configs."""
        return json.dumps({name: plain(config[name]) for name in self.names if name in config}, sort_keys=True)

    # -- finite spaces -----------------------------------------------------------------------------------------------

    def cardinality(self) -> float:
        """How many configs there are at the target fidelity; inf when there is a continuous parameter."""
        free = [name for name in self._order if not self[name].fidelity]
        if any(self[name].levels is None for name in free):
            return math.inf
        above = {parent for name in free for parent in self._conditions[name]}
        if math.prod(self[name].levels or 1 for name in above) > 100_000:
            return math.inf  # too many combinations of parents to count; nobody will exhaust such a space
        total = 0.0
        for levels in self._assignments([name for name in free if name in above]):
            total += math.prod(
                float(self[name].levels or 1) for name in free
                if name not in above and all(levels.get(parent) in ok for parent, ok in self._conditions[name].items())
            )
        return total

    def _assignments(self, names: list[str]) -> Iterator[dict[str, int]]:
        """All ways to set the named parameters (parents first), inactive ones absent."""
        if not names:
            yield {}
            return
        *rest, last = names
        for levels in self._assignments(rest):
            if all(levels.get(parent) in ok for parent, ok in self._conditions[last].items()):
                for level in range(self[last].levels or 1):
                    yield levels | {last: level}
            else:
                yield levels

    def grid(self) -> Array:
        """Every point of a finite space, at the target fidelity, each config once."""
        return self._grid

    @cached_property
    def _grid(self) -> Array:
        free = [name for name in self._order if not self[name].fidelity]
        axes = np.meshgrid(*(self[name].grid_units() for name in free), indexing="ij")
        U = np.full((axes[0].size, len(self)), 0.5)
        U[:, [self._column[name] for name in free]] = np.column_stack([axis.ravel() for axis in axes])
        return np.unique(self.snap(self.at_target(U)), axis=0)


def _parameter(entry: Mapping[str, Any], name: str) -> Parameter:
    """The inverse of a parameter's ``to_dict``."""
    fields = dict(entry)
    kind = fields.pop("kind", None)
    if kind not in _KINDS:
        raise SpaceError(f"{name}: cannot read a parameter of kind {kind!r}; there are {', '.join(_KINDS)}")
    try:
        return _KINDS[kind](*fields.pop("options", ()), **fields)
    except TypeError as error:
        raise SpaceError(f"{name}: cannot read this {kind}: {error}") from None
