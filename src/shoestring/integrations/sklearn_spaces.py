"""Search spaces of scikit-learn, both ways: dicts of lists and distributions of ``scipy.stats``.

What has no counterpart is a SpaceError that names it: objects and quantiles, which configs cannot hold (``ShoestringSearchCV``
takes them), and several dicts; the other way fidelities, which are ``resource=`` there, and whole numbers on a wide log scale.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ..errors import SpaceError
from ..space.parameters import Choice, Fidelity, Int
from ..space.space import Parameter, Space
from .distributions import condition_values, listed_values, read_space

MAX_LISTED_VALUES = 1000  # of a parameter that is written as a list of its values
MAX_PARTS = 200  # dicts: one for each combination of values of the parents


def space_from_sklearn(param_distributions: Any) -> Space:
    """The ``st.Space`` of ``param_distributions``: a list is a Choice, a distribution a range.

    Uniform and log-uniform distributions and lists of texts, numbers and None can be expressed. For anything else, and for a list
    of dicts, use ``ShoestringSearchCV``, which takes all that RandomizedSearchCV takes.

    >>> from scipy.stats import loguniform
    >>> from shoestring.integrations.sklearn_spaces import space_from_sklearn
    >>> space_from_sklearn({"C": loguniform(0.1, 10), "kernel": ["linear", "rbf"]}).names
    ('C', 'kernel')
    """
    if isinstance(param_distributions, list | tuple) and len(param_distributions) == 1:
        param_distributions = param_distributions[0]
    if isinstance(param_distributions, list | tuple) and len(param_distributions) > 1:
        raise SpaceError(
            f"a list of {len(param_distributions)} dicts has no counterpart: a name may have another range in each; "
            "give it to ShoestringSearchCV, or write one st.Space with when="
        )
    translation = read_space(param_distributions)
    for name, (_, decode) in translation.entries.items():
        if decode is not None:
            raise SpaceError(
                f"{name}: {param_distributions[name]!r} has no counterpart, since a config holds JSON values from a range; "
                "give it to ShoestringSearchCV, or give a range such as st.Float(low, high) or a list of names"
            )
    return translation.space


def space_to_sklearn(space: Space) -> list[dict[str, Any]]:
    """The space as ``param_distributions``: one dict, or one for each combination of values of the parents of a condition.

    >>> from shoestring.integrations.sklearn_spaces import space_to_sklearn
    >>> space = st.Space(kernel=st.Choice("linear", "rbf"), gamma=st.Float(0.1, 10, log=True, when={"kernel": "rbf"}))
    >>> [sorted(part) for part in space_to_sklearn(space)]
    [['kernel'], ['gamma', 'kernel']]
    """
    if not isinstance(space, Space):
        raise SpaceError(f"expected an st.Space, not {space!r}")
    parents = sorted({parent for name in space for parent in space.parents(name)}, key=space.names.index)
    for parent in parents:
        _require_few(parent, space[parent], MAX_PARTS)
    parts: dict[str, dict[str, Any]] = {}
    for values in itertools.product(*(listed_values(space[parent]) for parent in parents)):
        held = dict(zip(parents, values, strict=True))
        active = [name for name in space if _is_active(space, name, held)]
        key = space.key({name: value for name, value in held.items() if name in active})
        if key not in parts:  # the values of a parent that is not active make no difference
            parts[key] = {name: [held[name]] if name in held else _written(name, space[name]) for name in active}
        if len(parts) > MAX_PARTS:
            raise SpaceError(
                f"the conditions on {', '.join(parents)} make more than {MAX_PARTS} parts; give the space to ShoestringSearchCV"
            )
    return list(parts.values())


def _is_active(space: Space, name: str, held: dict[str, Any]) -> bool:
    """Whether a parameter is active when the parents have these values; a parent that is not active allows nothing."""
    return all(
        _is_active(space, parent, held)
        and space.key({parent: held[parent]}) in [space.key({parent: value}) for value in condition_values(space, name, parent)]
        for parent in space.parents(name)
    )


def _written(name: str, parameter: Parameter) -> Any:
    """A list of values, or a distribution of scipy.stats."""
    from scipy import stats  # takes a while to import

    if isinstance(parameter, Fidelity):
        raise SpaceError(f"{name}: a fidelity has no counterpart; take it out (ShoestringSearchCV takes it as resource=)")
    if isinstance(parameter, Choice):
        return listed_values(parameter)
    if parameter.step is not None:
        _require_few(name, parameter, MAX_LISTED_VALUES)
        return listed_values(parameter)
    low, high = parameter.low, parameter.high
    if not isinstance(parameter, Int):
        return stats.loguniform(low, high) if parameter.log else stats.uniform(low, high - low)
    if not parameter.log:
        return stats.randint(int(low), int(high) + 1)
    _require_few(name, parameter, MAX_LISTED_VALUES)
    values = np.arange(int(low), int(high) + 1)
    ends = np.log(np.append(values - 0.5, high + 0.5))  # of the equal bins on the log scale
    return stats.rv_discrete(values=(values, np.diff(ends) / (ends[-1] - ends[0])))


def _require_few(name: str, parameter: Parameter, limit: int) -> None:
    if (parameter.levels or 0) > limit:
        what = "on a log scale" if isinstance(parameter, Int) and parameter.log else "in a list"
        how = f"at most {limit} can be written; use a Float, or a larger step"
        raise SpaceError(f"{name}: {parameter.levels} values {what} have no counterpart: {how}")
