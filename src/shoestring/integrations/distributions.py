"""Search spaces as scikit-learn's users write them, read as ours.

Read are an st.Space; a dict from names to lists, to distributions with ``ppf`` (such as those of scipy.stats) or to our own
parameters; and a list of such dicts, each a part of the space. A parameter of ours is found for every entry, and where
that one cannot hold the values themselves (estimators, functions, quantiles) also a reader from what it holds to the value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._validation import plain
from ..errors import SpaceError
from ..numerics import Array
from ..space.parameters import Choice, Fidelity, Float, Int
from ..space.space import Config, Parameter, Space

Reader = Callable[[Any], Any]
TAIL = 1e-3  # left out at either end of a distribution that is mapped by its quantiles, where it may be infinite
FEW = 64  # values of a discrete distribution that are searched one by one, so that none is tried twice
PART = "part of the space"  # which of several dicts
_PROBES = np.linspace(0.0, 1.0, 17)[1:-1]


@dataclass(frozen=True)
class Translation:
    """A space, and the estimator's parameters for each of its configs.

    ``entries`` has, by the name in the space, the estimator's parameter and the reader of its value; names that are not in
    it are no parameters of the estimator.
    """

    space: Space
    entries: Mapping[str, tuple[str, Reader | None]]

    def params(self, config: Config) -> dict[str, Any]:
        params = {}
        for name, value in config.items():
            if name in self.entries:
                parameter, read = self.entries[name]
                params[parameter] = value if read is None else read(value)
        return params

    def with_resource(self, name: str, fidelity: Fidelity | None, *, of_estimator: bool) -> Translation:
        """The same with a fidelity, or where it is None with the one of that name that is there already."""
        others = {key: entry for key, entry in self.entries.items() if key != name}
        space = self.space if fidelity is None else Space({**self.space, name: fidelity})
        return Translation(space, {**others, **({name: (name, None)} if of_estimator else {})})


def read_space(written: Any) -> Translation:
    """What the user gave as ``space``; a SpaceError that names the parameter if it cannot be read."""
    if isinstance(written, Space):
        return Translation(written, {name: (name, None) for name in written})
    parts = [written] if isinstance(written, Mapping) else written
    if not isinstance(parts, Sequence) or isinstance(parts, str) or not all(isinstance(part, Mapping) for part in parts):
        raise SpaceError(f"expected an st.Space, a dict of lists and distributions, or a list of such dicts, not {written!r}")
    if not any(parts):
        raise SpaceError('the space is empty; give it at least one parameter, for example {"C": scipy.stats.loguniform(0.1, 10)}')
    parameters: dict[str, Parameter] = {}
    entries: dict[str, tuple[str, Reader | None]] = {}
    if len(parts) > 1:
        parameters[PART] = Choice(*range(len(parts)))
    for number, part in enumerate(parts):
        label = "{}" if len(parts) == 1 else f"{{}} ({number})"
        for name, given in part.items():
            parameter, read = read_parameter(name, given)
            if len(parts) > 1:
                when = {label.format(parent): value for parent, value in (parameter.when or {}).items()}
                parameter = under(parameter, {PART: number} | when)
            parameters[label.format(name)] = parameter
            entries[label.format(name)] = name, read
    return Translation(Space(parameters), entries)


def under(parameter: Parameter, when: Mapping[str, Any]) -> Parameter:
    return Choice(*parameter.options, when=when) if isinstance(parameter, Choice) else replace(parameter, when=when)


def read_parameter(name: Any, given: Any) -> tuple[Parameter, Reader | None]:
    if isinstance(given, Float | Int | Choice | Fidelity):
        return given, None
    if hasattr(given, "ppf"):
        return read_distribution(name, given)
    if hasattr(given, "rvs"):
        raise SpaceError(
            f"{name}: {given!r} can be sampled but has no ppf, and a search by a model needs to know where a value lies; "
            "give its range, such as st.Float(low, high), or a distribution of scipy.stats"
        )
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise SpaceError(
            f"{name}: {given!r} is neither a list nor a distribution; give a list of values (a single one as [{given!r}]), "
            "a distribution of scipy.stats, or st.Float, st.Int, st.Choice"
        )
    return read_list(name, list(given))


def read_list(name: str, values: list[Any]) -> tuple[Parameter, Reader | None]:
    """A Choice: of the values if they are plain ones, else of their places in the list."""
    if not values:
        raise SpaceError(f"{name}: the list is empty; give it at least one value")
    simple = [plain(value) for value in values]
    if all(value is None or isinstance(value, str | int) or (type(value) is float and math.isfinite(value)) for value in simple):
        return Choice(*(value for _, value in dict.fromkeys((type(value), value) for value in simple))), None
    return Choice(*range(len(values))), values.__getitem__


def read_distribution(name: str, given: Any) -> tuple[Parameter, Reader | None]:
    """Uniform ones by their range, on a log scale where they are log-uniform; all others on a scale of their quantiles."""
    discrete = hasattr(given, "pmf")
    try:
        low, high = map(float, given.support() if hasattr(given, "support") else (given.ppf(0.0), given.ppf(1.0)))
        first, last = float(given.ppf(TAIL)), float(given.ppf(1.0 - TAIL))
        shape = np.asarray(given.ppf(_PROBES), dtype=float)
    except (TypeError, ValueError) as error:
        raise SpaceError(
            f"{name}: the quantiles of {given!r} cannot be had ({error}); give it its arguments, such as scipy.stats.norm(0, 1), "
            "or a range, such as st.Float(low, high)"
        ) from None
    if not np.isfinite([first, last, *shape]).all():
        raise SpaceError(f"{name}: the quantiles of {given!r} are not finite; check its arguments, or give st.Float(low, high)")
    if first == last:
        return Choice(int(first) if discrete else first), None
    if discrete:
        if math.isfinite(high - low) and is_even(given, low, high):
            return Int(int(low), int(high)), None
        if last - first < FEW:
            return Int(int(first), int(last)), None
        return Float(TAIL, 1.0 - TAIL), lambda u: int(given.ppf(u))
    if math.isfinite(high - low):
        if np.allclose(shape, low + _PROBES * (high - low), rtol=0.0, atol=1e-9 * (high - low)):
            return Float(low, high), None
        if low > 0.0 and np.allclose(np.log(shape / low), _PROBES * math.log(high / low), rtol=1e-9, atol=1e-12):
            return Float(low, high, log=True), None
    return Float(TAIL, 1.0 - TAIL), lambda u: float(given.ppf(u))


def is_even(given: Any, low: float, high: float) -> bool:
    """Whether all values of a discrete distribution are equally likely, as far as a thousand of them tell."""
    some: Array = np.unique(np.rint(np.linspace(low, high, 1000)))
    return bool(np.allclose(given.pmf(some), 1.0 / (high - low + 1.0), rtol=1e-9, atol=0.0))
