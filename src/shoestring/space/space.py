"""The search space: named parameters, some of them conditional, and the map between configs and the unit cube.

Notation
    D       number of parameters
    u       a point of [0, 1]^D: one coordinate per parameter, in the order in which the parameters were given
    U       m x D, a matrix of points
    config  a plain dict from names to values; inactive parameters are absent

A space never changes: everything derived from the parameters is computed when the space is made. Using a space in a study leaves
the object, its pickle and its hash as they were.
"""

from __future__ import annotations

import json
import math
from collections.abc import ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from .._validation import plain
from ..errors import ConfigError, SpaceError
from ..numerics import Array
from .parameters import Choice, Fidelity, Float, Int, Numeric

Config = dict[str, Any]
MAX_TABULATED_LEVELS = 64  # the coordinates of a parameter with at most this many values are kept in a table
MAX_PARENT_COMBINATIONS = 100_000  # with more combinations of parents than this, configs are not counted
Parameter = Float | Int | Fidelity | Choice
_KINDS: dict[str, type[Parameter]] = {"float": Float, "int": Int, "fidelity": Fidelity, "choice": Choice}
_GRIDS: WeakKeyDictionary[Space, Array] = WeakKeyDictionary()  # not in the space itself, which must not change when it is used


class Space(Mapping[str, Parameter]):
    """The search space: what may be chosen, by name. It never changes.

    ``when={"booster": "dart"}`` makes a parameter conditional on the value of another one, its parent. A list means any of
    several values; several entries mean all of them. A parameter whose parent is inactive is inactive too, and absent from the
    config. Names that are no Python identifiers are given as a dict: ``Space({"batch size": Int(1, 64)})``.

    names         of the parameters, in order
    parameters    the parameters in the same order
    fidelities    names of the fidelities
    target        their target values, by name
    target_units  the unit coordinates of the targets, by column
    resumable     names of the fidelities over which a run can go on: those that say so, or a single one that leaves it open
    resumable_if_saved   the space leaves it open: a run can go on if it has saved files in its checkpoint folder
    level_units   the unit coordinates of all values, by column, for parameters with few values (fidelities excluded)

    >>> space = st.Space(
    ...     lr=st.Float(1e-5, 1e-1, log=True),
    ...     booster=st.Choice("gbtree", "dart"),
    ...     drop=st.Float(0, 0.5, when={"booster": "dart"}),
    ... )
    >>> space.names
    ('lr', 'booster', 'drop')
    >>> space.check({"lr": 0.01, "booster": "gbtree"})
    {'lr': 0.01, 'booster': 'gbtree'}
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
        self.parameters: tuple[Parameter, ...] = tuple(self._parameters.values())
        self._column = {name: j for j, name in enumerate(self.names)}
        self._conditions = {name: self._read_condition(name) for name in self.names}
        self._order = self._sorted_parents_first()
        if all(parameter.fidelity for parameter in self.parameters):
            raise SpaceError("a space needs at least one parameter that is not a fidelity")
        self.target: dict[str, float | int] = {
            name: parameter.goal for name, parameter in self._parameters.items() if isinstance(parameter, Fidelity)
        }
        self.fidelities: tuple[str, ...] = tuple(self.target)
        self.target_units: dict[int, float] = {
            self._column[name]: float(self[name].to_unit(goal)) for name, goal in self.target.items()
        }
        stated = {name: self._parameters[name].resumable for name in self.fidelities}  # type: ignore[union-attr]
        self.resumable: tuple[str, ...] = tuple(name for name, stands in stated.items() if stands)
        self.resumable_if_saved = list(stated.values()) == [None]
        if self.resumable_if_saved:
            self.resumable = self.fidelities
        self.level_units: dict[int, Array] = {
            j: parameter.grid_units()
            for j, parameter in enumerate(self.parameters)
            if parameter.levels is not None and parameter.levels <= MAX_TABULATED_LEVELS and not parameter.fidelity
        }
        self._links = self._read_links()
        self._rounding = _Rounding(self.parameters)
        self._json = json.dumps({name: parameter.to_dict() for name, parameter in self._parameters.items()}, allow_nan=False)

    # -- as a mapping, and as text -------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Parameter:
        return self._parameters[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __len__(self) -> int:
        return len(self._parameters)

    def __contains__(self, name: object) -> bool:
        return name in self._parameters

    def keys(self) -> KeysView[str]:  # the dict's own views: those of Mapping look up every name again
        """The names of the parameters, as of a dict."""
        return self._parameters.keys()

    def values(self) -> ValuesView[Parameter]:
        """The parameters, as of a dict."""
        return self._parameters.values()

    def items(self) -> ItemsView[str, Parameter]:
        """Names and parameters, as of a dict."""
        return self._parameters.items()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and self._json == other._json

    def __hash__(self) -> int:
        return hash(self._json)

    def __repr__(self) -> str:
        return "Space(" + ", ".join(f"{name}={parameter!r}" for name, parameter in self.items()) + ")"

    def to_json(self) -> str:
        """The space as JSON; ``from_json`` is the inverse.

        >>> text = st.Space(n=st.Int(1, 3)).to_json()
        >>> text, st.Space.from_json(text)
        ('{"n": {"kind": "int", "low": 1, "high": 3}}', Space(n=Int(low=1, high=3, log=False, step=None, when=None)))
        """
        return self._json

    @classmethod
    def from_json(cls, text: str | Mapping[str, Any]) -> Space:
        """The space from JSON, or from the dict that the JSON stands for."""
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

    def _sorted_parents_first(self) -> tuple[str, ...]:
        """The names in topological order."""
        order: list[str] = []
        waiting = list(self.names)
        while waiting:
            ready = [name for name in waiting if all(parent in order for parent in self._conditions[name])]
            if not ready:
                raise SpaceError(f"the conditions go in a circle: {' -> '.join([*waiting, waiting[0]])}")
            order += ready
            waiting = [name for name in waiting if name not in ready]
        return tuple(order)

    def _read_links(self) -> tuple[tuple[int, int, NDArray[np.bool_]], ...]:
        """(column, column of the parent, which levels of the parent allow it) for every condition, parents first."""
        links = []
        for name in self._order:
            for parent, levels in self._conditions[name].items():
                allowed = np.zeros(self[parent].levels or 0, dtype=bool)
                allowed[list(levels)] = True
                links.append((self._column[name], self._column[parent], allowed))
        return tuple(links)

    def parents(self, name: str) -> tuple[str, ...]:
        """The parameters on which this one is conditional.

        >>> space = st.Space(x=st.Float(0, 1, when={"kind": "a"}), kind=st.Choice("a", "b"))
        >>> space.parents("x"), space.topological_order
        (('kind',), {'kind': 1, 'x': 0})
        """
        return tuple(self._conditions[name])

    @property
    def topological_order(self) -> dict[str, int]:
        """Names and their columns, every parent before its children."""
        return {name: self._column[name] for name in self._order}

    def active(self, U: Array) -> NDArray[np.bool_]:
        """Which parameters are active at each point (m x D).

        >>> space = st.Space(kind=st.Choice("a", "b"), x=st.Float(0, 1, when={"kind": "a"}))
        >>> space.active(np.array([[0.2, 0.5], [0.8, 0.5]])).tolist()
        [[True, True], [True, False]]
        """
        mask = np.ones(U.shape, dtype=bool)
        levels: dict[int, NDArray[np.intp]] = {}
        for column, parent, allowed in self._links:
            if parent not in levels:
                levels[parent] = self.parameters[parent].index(U[:, parent])
            mask[:, column] &= mask[:, parent] & allowed[levels[parent]]
        return mask

    # -- configs and points ------------------------------------------------------------------------------------------

    def at_target(self, U: Array) -> Array:
        """Points with every fidelity moved to its target.

        >>> space = st.Space(x=st.Float(0, 1), share=st.Fidelity(0.1, 1.0))
        >>> space.at_target(np.array([[0.3, 0.2]])).tolist()
        [[0.3, 1.0]]
        """
        U = U.copy()
        for column, unit in self.target_units.items():
            U[:, column] = unit
        return U

    def check(self, config: Mapping[str, Any]) -> Config:
        """The config in its canonical form, missing fidelities at their target; a ConfigError if it does not fit the space.

        >>> st.Space(n=st.Int(1, 8)).check({"n": 3.0})
        {'n': 3}
        """
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

    def complete(self, given: Mapping[str, Any], base: Mapping[str, Any]) -> Config:
        """A config with the given values, and otherwise as ``base``; a ConfigError if the given values do not go together.

        A parameter that is given is made active: its parents get a value for which it is, unless they are given too.

        >>> st.Space(lr=st.Float(0, 1), depth=st.Int(1, 8)).complete({"depth": 3}, base={"lr": 0.1, "depth": 5})
        {'lr': 0.1, 'depth': 3}
        """
        if not isinstance(given, Mapping):
            raise ConfigError(f"a configuration is a dict of parameter values, not {given!r}")
        if unknown := [name for name in given if name not in self]:
            raise ConfigError(f"unknown parameter {unknown[0]!r}; this space has {', '.join(self.names)}")
        wanted = {name: self[name].check(value, name) for name, value in given.items()}
        for name in reversed(self._order):  # children first: a parent that is set here may need parents of its own
            if name in wanted:
                for parent, levels in self._conditions[name].items():
                    if parent not in wanted:
                        held = parent in base and self[parent].level_of(base[parent], parent) in levels
                        first = float(self[parent].units(np.array(min(levels))))
                        wanted[parent] = base[parent] if held else self[parent].from_unit(first)
        u = self.encode(base)
        for name, value in self.encode_each(wanted):
            u[self._column[name]] = value
        return self.check({**self.decode(u), **wanted})

    def encode_each(self, config: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
        """The unit coordinate of each value.

        >>> dict(st.Space(x=st.Float(0, 10), n=st.Int(1, 2)).encode_each({"x": 4.0}))
        {'x': 0.4}
        """
        for name, value in config.items():
            parameter = self._parameters[name]
            level = parameter.level_of(value, name) if isinstance(parameter, Choice) else value
            yield name, float(parameter.to_unit(level))

    def encode(self, config: Mapping[str, Any]) -> Array:
        """The point of a valid config in the unit cube; inactive coordinates are 0.5.

        >>> space = st.Space(x=st.Float(0, 10), kind=st.Choice("a", "b"))
        >>> space.encode({"x": 4.0, "kind": "b"}).tolist(), space.decode(np.array([0.5, 0.9]))
        ([0.4, 0.75], {'x': 5.0, 'kind': 'b'})
        """
        u = np.full(len(self), 0.5)
        for name, value in config.items():
            parameter = self._parameters[name]
            u[self._column[name]] = parameter.to_unit(parameter.level_of(value, name) if isinstance(parameter, Choice) else value)
        return u

    def decode(self, u: Array) -> Config:
        """The config at a point of the unit cube: always valid, inactive parameters absent. The inverse of ``encode``."""
        mask = self.active(u[None, :])[0]
        return {name: parameter.from_unit(float(u[j])) for j, (name, parameter) in enumerate(self._parameters.items()) if mask[j]}

    def snap(self, U: Array) -> Array:
        """Points rounded to those of the configs they decode to: two points of the same config become equal.

        >>> st.Space(kind=st.Choice("a", "b")).snap(np.array([[0.1], [0.3], [0.9]])).tolist()
        [[0.25], [0.25], [0.75]]
        """
        U = self._rounding(U)
        if self._links:
            U[~self.active(U)] = 0.5
        return U

    def key(self, config: Mapping[str, Any]) -> str:
        """A text that is the same for equal configs.

        >>> space = st.Space(x=st.Float(0, 1), n=st.Int(1, 3))
        >>> space.key({"x": 0.5, "n": 2}) == space.key({"n": 2, "x": 0.5})
        True
        """
        return json.dumps({name: plain(config[name]) for name in self.names if name in config}, sort_keys=True)

    # -- finite spaces -----------------------------------------------------------------------------------------------

    def cardinality(self) -> float:
        """The number of configs at the target fidelity; inf with a continuous parameter.

        >>> st.Space(n=st.Int(1, 3), kind=st.Choice("a", "b")).cardinality()
        6.0
        """
        free = [name for name in self._order if not self[name].fidelity]
        if any(self[name].levels is None for name in free):
            return math.inf
        above = {parent for name in free for parent in self._conditions[name]}
        if math.prod(self[name].levels or 1 for name in above) > MAX_PARENT_COMBINATIONS:
            return math.inf  # too many to count, and to exhaust
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
        """Every point of a finite space, at the target fidelity, each config once.

        >>> space = st.Space(n=st.Int(1, 2), kind=st.Choice("a", "b"))
        >>> [space.decode(u) for u in space.grid()][:2]
        [{'n': 1, 'kind': 'a'}, {'n': 1, 'kind': 'b'}]
        """
        grid = _GRIDS.get(self)
        if grid is None:
            grid = _GRIDS[self] = self._make_grid()
        return grid

    def _make_grid(self) -> Array:
        free = [name for name in self._order if not self[name].fidelity]
        axes = np.meshgrid(*(self[name].grid_units() for name in free), indexing="ij")
        U = np.full((axes[0].size, len(self)), 0.5)
        U[:, [self._column[name] for name in free]] = np.column_stack([axis.ravel() for axis in axes])
        return np.unique(self.snap(self.at_target(U)), axis=0)


class _Rounding:
    """``snap`` of all parameters at once: the same operations, and the same results bit for bit.

    choices  columns of Choice parameters, with k options each
    steps    columns of whole numbers and steps on a linear scale: low, step, k levels, and the ends a and b (see ``parameters``)
    others   columns of whole numbers on a log scale, one by one
    """

    def __init__(self, parameters: Sequence[Parameter]) -> None:
        grids = [(j, each) for j, each in enumerate(parameters) if isinstance(each, Numeric) and each.levels is not None]
        stepped = [(j, each) for j, each in grids if not each.log]
        self.others = [(j, each) for j, each in grids if each.log]
        self.choices = np.array([j for j, each in enumerate(parameters) if isinstance(each, Choice)], dtype=np.intp)
        self.options = np.array([parameters[j].levels for j in self.choices], dtype=float)
        self.steps = np.array([j for j, _ in stepped], dtype=np.intp)
        self.low = np.array([each.low for _, each in stepped], dtype=float)
        self.step = np.array([1.0 if each.step is None else each.step for _, each in stepped], dtype=float)
        self.levels = np.array([each.levels for _, each in stepped], dtype=float)
        ends = np.array([each.ends() for _, each in stepped], dtype=float).reshape(len(stepped), 2)
        self.start, self.width = ends[:, 0], ends[:, 1] - ends[:, 0]

    def __call__(self, U: Array) -> Array:
        V = np.empty(U.shape)
        np.clip(U, 0.0, 1.0, out=V)  # all that a continuous parameter needs
        if len(self.choices):
            level = np.clip(np.floor(U[:, self.choices] * self.options), 0, self.options - 1)
            V[:, self.choices] = (level + 0.5) / self.options
        if len(self.steps):
            raw = self.start + V[:, self.steps] * self.width
            values = self.low + np.clip(np.rint((raw - self.low) / self.step), 0, self.levels - 1) * self.step
            V[:, self.steps] = (np.clip(np.rint((values - self.low) / self.step), 0, self.levels - 1) + 0.5) / self.levels
        for j, parameter in self.others:
            V[:, j] = parameter.snap(U[:, j])
        return V


def _parameter(entry: Mapping[str, Any], name: str) -> Parameter:
    """The parameter from its dict: the inverse of ``to_dict``."""
    fields = dict(entry)
    kind = fields.pop("kind", None)
    if kind not in _KINDS:
        raise SpaceError(f"{name}: cannot read a parameter of kind {kind!r}; there are {', '.join(_KINDS)}")
    try:
        if kind == "choice":
            return Choice(list(fields.pop("options")), **fields)
        return _KINDS[kind](**fields)
    except (TypeError, KeyError) as error:
        raise SpaceError(f"{name}: cannot read this {kind}: {error}") from None
