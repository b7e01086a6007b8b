"""Another space under the name of a stored study: refused, or accepted as an extension that contains the study's own space.

Every trial of the smaller space is a trial of the larger one, so all trials stay in use. Earlier spaces are stored too, since a
suggestion that was computed in one of them can only be replayed in it. Running processes learn of a larger space before they
learn of a trial in it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ..errors import StudyError
from .parameters import Choice, Fidelity, Numeric
from .space import Space

if TYPE_CHECKING:
    from ..storage import StudyRecord


def spaces_of(record: StudyRecord) -> list[Space]:
    """All spaces of a study, in order: the last is the present one."""
    return [Space.from_json(each) for each in (*record.settings.get("earlier", []), record.settings["space"])]


def known_space(record: StudyRecord | None, space: Space, extend: bool) -> Space:
    """The space to go on with: the stored one if it is the same, or the given one if it is allowed to extend the stored one.

    The same parameters in another order are the same space: the stored order is kept, since suggestions depend on it.
    """
    if record is None:
        return space
    stored = Space.from_json(record.settings["space"])
    if dict(stored) == dict(space):
        return stored
    if not extend:
        require_same(stored, space, record.name)
    if problems := incompatibilities(stored, space):
        raise StudyError(
            f"study {record.name!r} cannot be extended to this space: {'; '.join(problems)}; "
            "bounds and options may only be widened, so that its trials stay in use. Begin another study with name=..."
        )
    return space


def require_same(stored: Space, given: Space, name: str) -> None:
    """A StudyError that lists the differences, unless both spaces have the same parameters."""
    if dict(stored) != dict(given):
        raise StudyError(
            f"study {name!r} has another space: {'; '.join(differences(stored, given))}. Its trials are untouched. "
            "Begin another study with name=..., give the space that it has, or widen it with extend=True"
        )


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
