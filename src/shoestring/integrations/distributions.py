"""Search spaces as users of scikit-learn write them, converted to an ``st.Space``.

The input is an st.Space; a dict from names to lists, to distributions with ``ppf`` (such as those of scipy.stats) or to
st.Float, st.Int, st.Choice; or a list of such dicts, each a part of the space. Every entry becomes a parameter. If a parameter
cannot hold the values themselves (estimators, functions, quantiles), the entry also gets a decoder to the value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._validation import plain
from ..errors import ConfigError, SpaceError
from ..numerics import Array
from ..space.parameters import Choice, Fidelity, Float, Int
from ..space.space import Config, Parameter, Space

Decoder = Callable[[Any], Any]
TAIL_PROBABILITY = 1e-3  # not searched at either end of a distribution on a quantile scale, since its ends may be infinite
MAX_INT_VALUES = 64  # a discrete distribution with fewer values becomes an Int, so that no value is tried twice
PART = "part of the space"  # the name of the parameter that chooses one of several dicts
UNIFORM_TEST_VALUES = 1000  # values of a discrete distribution whose probabilities are compared
_PROBABILITIES = np.linspace(0.0, 1.0, 17)[1:-1]  # at which quantiles are compared with those of uniform distributions


@dataclass(frozen=True)
class Translation:
    """A space, and the map from its configs to the estimator's parameters.

    ``entries`` maps the name in the space to the estimator's parameter and the decoder of its value. Names that are not in it
    are not parameters of the estimator.
    """

    space: Space
    entries: Mapping[str, tuple[str, Decoder | None]]

    def params(self, config: Config) -> dict[str, Any]:
        """The estimator's parameters for a config."""
        params = {}
        for name, value in config.items():
            if name in self.entries:
                parameter, decode = self.entries[name]
                params[parameter] = value if decode is None else decode(value)
        return params

    def with_resource(self, name: str, fidelity: Fidelity | None, *, of_estimator: bool) -> Translation:
        """The same space with a fidelity of that name; None if the space has it already."""
        others = {key: entry for key, entry in self.entries.items() if key != name}
        space = self.space if fidelity is None else Space({**self.space, name: fidelity})
        return Translation(space, {**others, **({name: (name, None)} if of_estimator else {})})


def read_space(written: Any) -> Translation:
    """The Translation of what the user gave as ``space``; a SpaceError names the parameter that cannot be converted."""
    if isinstance(written, Space):
        return Translation(written, {name: (name, None) for name in written})
    parts = [written] if isinstance(written, Mapping) else written
    if not isinstance(parts, Sequence) or isinstance(parts, str) or not all(isinstance(part, Mapping) for part in parts):
        raise SpaceError(f"expected an st.Space, a dict of lists and distributions, or a list of such dicts, not {written!r}")
    if not any(parts):
        raise SpaceError('the space is empty; give it at least one parameter, for example {"C": scipy.stats.loguniform(0.1, 10)}')
    parameters: dict[str, Parameter] = {}
    entries: dict[str, tuple[str, Decoder | None]] = {}
    if len(parts) > 1:
        parameters[PART] = Choice(*range(len(parts)))
    for number, part in enumerate(parts):
        label = "{}" if len(parts) == 1 else f"{{}} ({number})"
        for name, given in part.items():
            parameter, decode = read_parameter(name, given)
            if len(parts) > 1:
                when = {label.format(parent): value for parent, value in (parameter.when or {}).items()}
                parameter = with_condition(parameter, {PART: number} | when)
            parameters[label.format(name)] = parameter
            entries[label.format(name)] = name, decode
    return Translation(Space(parameters), entries)


def with_condition(parameter: Parameter, when: Mapping[str, Any]) -> Parameter:
    """The parameter with another condition ``when``."""
    return Choice(list(parameter.options), when=when) if isinstance(parameter, Choice) else replace(parameter, when=when)


def listed_values(parameter: Parameter) -> list[Any]:
    """All values of a parameter with separate values, in order."""
    return [parameter.from_unit(float(u)) for u in parameter.grid_units()]


def condition_values(space: Space, child: str, parent: str) -> list[Any]:
    """The values of the parent under which the child is active: what ``when`` says, as a list."""
    above, wanted = space[parent], (space[child].when or {})[parent]
    try:
        return [above.check(wanted, parent)]
    except ConfigError:
        return [above.check(value, parent) for value in wanted]


def read_parameter(name: Any, given: Any) -> tuple[Parameter, Decoder | None]:
    """The parameter for one entry, and its decoder; None if configs hold the value itself."""
    if isinstance(given, Float | Int | Choice | Fidelity):
        return given, None
    if hasattr(given, "ppf"):
        return read_distribution(name, given)
    if hasattr(given, "rvs"):
        raise SpaceError(
            f"{name}: {given!r} can be sampled but has no ppf, and the model needs the range of the values; "
            "give its range, such as st.Float(low, high), or a distribution of scipy.stats"
        )
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise SpaceError(
            f"{name}: {given!r} is neither a list nor a distribution; give a list of values (a single one as [{given!r}]), "
            "a distribution of scipy.stats, or st.Float, st.Int, st.Choice"
        )
    return read_list(name, list(given))


def read_list(name: str, values: list[Any]) -> tuple[Parameter, Decoder | None]:
    """A Choice of the values if they are None, texts, whole numbers or finite floats; else a Choice of their indices."""
    if not values:
        raise SpaceError(f"{name}: the list is empty; give it at least one value")
    simple = [plain(value) for value in values]
    if all(value is None or isinstance(value, str | int) or (type(value) is float and math.isfinite(value)) for value in simple):
        return Choice([value for _, value in dict.fromkeys((type(value), value) for value in simple)]), None
    return Choice(*range(len(values))), values.__getitem__


def read_distribution(name: str, given: Any) -> tuple[Parameter, Decoder | None]:
    """A uniform or log-uniform distribution as a range, the latter on a log scale; any other one on a scale of its quantiles."""
    discrete = hasattr(given, "pmf")
    try:
        low, high = map(float, given.support() if hasattr(given, "support") else (given.ppf(0.0), given.ppf(1.0)))
        first, last = float(given.ppf(TAIL_PROBABILITY)), float(given.ppf(1.0 - TAIL_PROBABILITY))
        shape = np.asarray(given.ppf(_PROBABILITIES), dtype=float)
    except (TypeError, ValueError) as error:
        raise SpaceError(
            f"{name}: the quantiles of {given!r} cannot be computed ({error}); give it its arguments, "
            "such as scipy.stats.norm(0, 1), or give a range, such as st.Float(low, high)"
        ) from None
    if not np.isfinite([first, last, *shape]).all():
        raise SpaceError(f"{name}: the quantiles of {given!r} are not finite; check its arguments, or give st.Float(low, high)")
    if first == last:
        return Choice(int(first) if discrete else first), None
    if discrete:
        if math.isfinite(high - low) and is_uniform(given, low, high):
            return Int(int(low), int(high)), None
        if last - first < MAX_INT_VALUES:
            return Int(int(first), int(last)), None
        return Float(TAIL_PROBABILITY, 1.0 - TAIL_PROBABILITY), lambda u: int(given.ppf(u))
    if math.isfinite(high - low):
        if np.allclose(shape, low + _PROBABILITIES * (high - low), rtol=0.0, atol=1e-9 * (high - low)):
            return Float(low, high), None
        if low > 0.0 and np.allclose(np.log(shape / low), _PROBABILITIES * math.log(high / low), rtol=1e-9, atol=1e-12):
            return Float(low, high, log=True), None
    return Float(TAIL_PROBABILITY, 1.0 - TAIL_PROBABILITY), lambda u: float(given.ppf(u))


def is_uniform(given: Any, low: float, high: float) -> bool:
    """Whether all values of a discrete distribution are equally likely; tested at UNIFORM_TEST_VALUES of them."""
    some: Array = np.unique(np.rint(np.linspace(low, high, UNIFORM_TEST_VALUES)))
    return bool(np.allclose(given.pmf(some), 1.0 / (high - low + 1.0), rtol=1e-9, atol=0.0))
