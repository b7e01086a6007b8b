"""Another space under the name of a study: refused, or, as asked, in place of the study's own if that is a part of it.

Trials of the narrower space are trials of the wider one, so all stay in use. Earlier spaces are kept, since what was suggested
in them can only be computed again in them. Processes that are at work learn of a wider space before they learn of a trial in it.
"""

from __future__ import annotations

import json
import logging

from ..errors import StudyError
from ..storage import StudyRecord
from .parameters import Choice, Fidelity, Numeric
from .space import Space

log = logging.getLogger("shoestring")


def spaces_of(record: StudyRecord) -> list[Space]:
    """All that the study had, one after the other: the last is that of today."""
    return [Space.from_json(each) for each in (*record.settings.get("earlier", []), record.settings["space"])]


def known_space(record: StudyRecord | None, space: Space, extend: bool) -> Space:
    """The space to go on with: that of the study, if it has one and is not to be extended."""
    if record is None:
        return space
    kept = Space.from_json(record.settings["space"])
    if dict(kept) == dict(space):
        return kept  # whatever the order
    if not extend:
        require_same(kept, space, record.name)
    if problems := narrower(kept, space):
        raise StudyError(
            f"study {record.name!r} cannot be extended to this space: {'; '.join(problems)}; "
            "bounds and options may only be widened, so that its trials stay in use. Begin another study with name=..."
        )
    return space


def require_same(kept: Space, given: Space, name: str) -> None:
    if dict(kept) != dict(given):
        raise StudyError(
            f"study {name!r} has another space: {'; '.join(differences(kept, given))}. Its trials are untouched. "
            "Begin another study with name=..., give the space that it has, or widen it with extend=True"
        )


def differences(old: Space, new: Space) -> list[str]:
    """In words, parameter by parameter."""
    gone = [f"{name} is missing" for name in old if name not in new]
    added = [f"{name} is new" for name in new if name not in old]
    common = [name for name in old if name in new and old[name] != new[name]]
    return gone + added + [f"{name} was {old[name]!r} and is {new[name]!r}" for name in common]


def narrower(old: Space, new: Space) -> list[str]:
    """Why trials of the old space would not be trials of the new one; empty if they are."""
    problems = [text for text in differences(old, new) if " was " not in text]
    for name in old:
        if name not in new:
            continue
        was, now = old[name], new[name]
        same = type(was) is type(now) and was.when == now.when
        if isinstance(was, Choice) and isinstance(now, Choice):
            same = same and {*map(json.dumps, was.options)} <= {*map(json.dumps, now.options)}  # True is not 1
        elif isinstance(was, Numeric) and isinstance(now, Numeric):
            same = same and (was.log, was.step) == (now.log, now.step) and now.low <= was.low and was.high <= now.high
            if was.step is not None:
                same = same and now.low == was.low  # else the steps are others
            if isinstance(was, Fidelity) and isinstance(now, Fidelity):
                same = same and was.goal == now.goal  # else what was found at the target is not at the target
        if not same:
            problems.append(f"{name} was {was!r} and is {now!r}")
    return problems
