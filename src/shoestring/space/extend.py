"""When one space extends another: every trial of the old space must be a trial of the new one.

Then all trials of a stored study stay in use when its space is extended. Earlier spaces are stored too, since a suggestion that
was computed in one of them can only be replayed in it. Running processes learn of a larger space before they learn of a trial in
it.
"""

from __future__ import annotations

import json

from .parameters import Choice, Fidelity, Numeric
from .space import Space


def differences(old: Space, new: Space) -> list[str]:
    """The differences in words, parameter by parameter."""
    removed = [f"{name} is missing" for name in old if name not in new]
    added = [f"{name} is new" for name in new if name not in old]
    common = [name for name in old if name in new and old[name] != new[name]]
    return removed + added + [f"{name} was {old[name]!r} and is {new[name]!r}" for name in common]


def incompatibilities(old: Space, new: Space) -> list[str]:
    """Why trials of the old space would not be trials of the new one; empty if the new space contains the old one."""
    problems = [text for text in differences(old, new) if " was " not in text]
    for name in old:
        if name not in new:
            continue
        was, now = old[name], new[name]
        compatible = type(was) is type(now) and was.when == now.when
        if isinstance(was, Choice) and isinstance(now, Choice):
            compatible = compatible and {*map(json.dumps, was.options)} <= {*map(json.dumps, now.options)}  # True is not 1
        elif isinstance(was, Numeric) and isinstance(now, Numeric):
            compatible = compatible and (was.log, was.step) == (now.log, now.step) and now.low <= was.low and was.high <= now.high
            if was.step is not None:
                compatible = compatible and now.low == was.low  # else the steps lie elsewhere
            if isinstance(was, Fidelity) and isinstance(now, Fidelity):
                compatible = compatible and was.goal == now.goal  # else results at the target would no longer be at the target
        if not compatible:
            problems.append(f"{name} was {was!r} and is {now!r}")
    return problems
