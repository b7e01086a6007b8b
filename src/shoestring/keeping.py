"""How a study is kept: what a storage is told of it, and how it is found again.

Kept are the space, the settings, the trials and what waits; method, model and rules are code, of which a text is kept where they
have one (``EI()``), so that the command line and ``Study.load`` can go on with them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from .budget import Budget
from .choice import Choice
from .errors import MethodError, StudyError
from .ledger import Ledger
from .parameters import Fidelity, Numeric
from .space import Space
from .spelling import NAMES, read_code, text_of
from .storage import Storage, StudyRecord, open_storage

if TYPE_CHECKING:
    from .study import Study

SETTINGS = ("direction", "seed", "initial", "unit", "per_hour")
LEASE = 60.0  # seconds: how long the trials of a worker that is gone stay where they are


def find_storage(where: str | os.PathLike[str] | Storage | None) -> Storage:
    return open_storage("memory" if where is None else where)


def settings_of(study: Study) -> dict[str, Any]:
    """All that is needed to make it again, JSON-ready."""
    state: dict[str, Any] = {name: getattr(study, name) for name in SETTINGS}
    state["budget"] = None if study.budget is None else asdict(study.budget)
    state["space"] = json.loads(study.space.to_json())
    state["code"] = study.code
    return state


def begun(study: Study, storage: Storage, name: str, lease: float, extend: bool) -> Ledger:
    """The study in its storage: as it is there, perhaps with a wider space, or new, saved before its first trial."""
    record, new = storage.begin(name, settings_of(study))
    if not new and extend:
        save(study, extended=True)
    elif not new:  # somebody else may have been quicker
        require_same(Space.from_json(record.settings["space"]), study.space, name)
        study.take_over(record)
    return Ledger(study.space, storage, record.id, lease)


def save(study: Study, extended: bool = False) -> None:
    """Tell the storage of settings that have changed; what others keep beside them stays.

    So does the space, unless this study has ``extended`` it: another process may have done so since this one looked.
    """
    found, settings = study.storage.find(study.name), settings_of(study)
    if not extended:
        del settings["space"]
    if found is not None and any(found.settings.get(name) != value for name, value in settings.items()):
        study.storage.revise(found.id, {**found.settings, **settings})


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
            same = same and all(option in now.options for option in was.options)
        elif isinstance(was, Numeric) and isinstance(now, Numeric):
            same = same and (was.log, was.step) == (now.log, now.step) and now.low <= was.low and was.high <= now.high
            if was.step is not None:
                same = same and now.low == was.low  # else the steps are others
            if isinstance(was, Fidelity) and isinstance(now, Fidelity):
                same = same and was.goal == now.goal  # else what was found at the target is not at the target
        if not same:
            problems.append(f"{name} was {was!r} and is {now!r}")
    return problems


def load(kind: type[Study], where: Any, name: str | None, code: Mapping[str, Any]) -> Study:
    """A study that is there."""
    storage = find_storage(where)
    record = find_record(storage, name)
    kept = dict(record.settings)
    budget = Budget(**kept["budget"]) if kept.get("budget") else None
    kinds = kept.get("code") or {}
    for part in NAMES:
        text = kinds.get(part, "auto")
        if part in code:
            continue
        if text is None:
            raise MethodError(
                f"study {record.name!r} was made with a {part} of which no text could be kept; give it again: "
                f"Study.load(storage, {record.name!r}, {part}=...)"
            )
        if not (part == "model" and text == "auto"):
            code = {**code, part: read_code(part, text)}
    settings = {each: kept[each] for each in SETTINGS}
    return kind(Space.from_json(kept["space"]), storage=storage, name=record.name, budget=budget, **settings, **code)


def find_record(storage: Storage, name: str | None) -> StudyRecord:
    if name is not None:
        found = storage.find(name)
        if found is not None:
            return found
    known = storage.studies()
    names = ", ".join(repr(each.name) for each in known[:20]) or "none"
    if name is not None:
        raise StudyError(f"there is no study {name!r} in {storage.url}; there are: {names}")
    if len(known) != 1:
        raise StudyError(f"which study of {storage.url}? Give its name; there are: {names}")
    return known[0]


def texts(code: Mapping[str, Any]) -> dict[str, str | None]:
    """The text of each piece of code, None where there is none that could be read again."""
    return {name: text_of(name, value) for name, value in code.items()}
