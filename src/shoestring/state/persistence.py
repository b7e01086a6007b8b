"""How a study is kept: what a storage is told of it, and how it is found again.

Kept are the space, the settings, the trials and what waits; method, model and rules are code, of which a text is kept where they
have one (``EI()``), so that the command line and ``Study.load`` can go on with them.

A study as text, and back.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from ..budget import Budget
from ..data.trial import Trial
from ..errors import Conflict, MethodError, ShoestringError, StudyError
from ..space.extend import known_space, look_again, require_same
from ..space.space import Space
from ..storage import Storage, StudyRecord, open_storage
from .registry import NAMES, read_code, text_of
from .study_state import StudyState

if TYPE_CHECKING:
    from ..study import Study

log = logging.getLogger("shoestring")

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


def begun(study: Study, storage: Storage, name: str, lease: float, extend: bool) -> StudyState:
    """The study in its storage: as it is there, perhaps with a wider space, or new, saved before its first trial."""
    record, new = storage.begin(name, settings_of(study))
    if not new:  # somebody else may have been quicker
        if not extend:
            require_same(Space.from_json(record.settings["space"]), study.space, name)
        take_over(study, record)
        if extend:
            save_wider(study, storage, record)
    return StudyState(study.space, storage, record.id, lease, partial(look_again, study))


def take_over(study: Study, found: StudyRecord) -> None:
    """The settings of the study that is there go before those given: its next suggestion must not depend on who asks."""
    given = {name: getattr(study, name) for name in SETTINGS}
    for name in ("seed", "initial", "unit", "per_hour"):
        setattr(study, name, found.settings[name])
    if found.trials:
        study.direction = found.settings["direction"]  # ``minimize`` or ``maximize`` says so if this is the wrong one
    if study.budget is None and found.settings.get("budget"):
        study.budget = Budget(**found.settings["budget"])
    changed = [name for name in ("seed", "initial", "unit") if given[name] != getattr(study, name)]
    if changed:
        own = ", ".join(f"{name}={getattr(study, name)}" for name in changed)
        log.info("study %r goes on with its own %s", found.name, own)


def save(study: Study) -> None:
    """Tell the storage of settings that have changed; what others keep beside them stays.

    So does the space: another process may have widened it since this one looked.
    """
    settings = settings_of(study)
    del settings["space"]
    study.storage.revise(study.state.study, settings)


def save_wider(study: Study, storage: Storage, record: StudyRecord) -> None:
    """Have the storage keep the study's space in place of a narrower one.

    Of two that widen it at the same time, the second looks again: its space must hold that of the first, and so its trials.
    """
    while True:
        settings, known = settings_of(study), record.settings["space"]
        if known_space(record, study.space, extend=True) is not study.space:
            del settings["space"]  # it is there already, perhaps in another order
        else:
            settings["earlier"] = [*record.settings.get("earlier", []), known]
        try:
            storage.revise(record.id, settings, if_still={"space": known})
            return
        except Conflict:
            record = find_record(storage, record.name)


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


VERSION = 1
ARCHIVED = ("name", "direction", "seed", "initial", "unit", "per_hour")


def to_json(study: Study) -> str:
    """The whole state but for method, model and rule, which are code."""
    state: dict[str, Any] = {"shoestring": VERSION} | {name: getattr(study, name) for name in ARCHIVED}
    state["seconds"] = study.seconds
    state["budget"] = None if study.budget is None else asdict(study.budget)
    state["space"] = json.loads(study.space.to_json())
    state["trials"] = [trial.to_dict() | {"basis": {}} for trial in study.state.trials]  # by a clock that stays here
    state["queue"] = [[dict(each.config), dict(each.suggestion)] for each in study.state.queue]
    return json.dumps(state, allow_nan=False)


def from_json(kind: type[Study], text: str, **code: Any) -> Study:
    """A study as ``to_json`` left it; ``code`` is its method, model and rule."""
    try:
        state = json.loads(text)
        if not isinstance(state, Mapping) or "shoestring" not in state:
            raise StudyError("this is not a study; expected the text that Study.to_json() wrote")
        if state["shoestring"] != VERSION:
            raise StudyError(f"this study was written in format {state['shoestring']!r}; this version reads {VERSION}")
        budget = Budget(**state["budget"]) if state.get("budget") else None
        settings = {name: state[name] for name in ARCHIVED if name != "per_hour"} | {"per_hour": state.get("per_hour")}
        study = kind(Space.from_json(state["space"]), **settings, budget=budget, **code)
        study.unit = state["unit"]
        study.seconds = float(state["seconds"])
        for record in state["trials"]:
            study.state.write(Trial.from_dict(record))
        for config, suggestion in state["queue"]:
            study.state.enqueue(config, suggestion)
    except json.JSONDecodeError as error:
        raise StudyError(f"this study cannot be read: {error}") from None
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, ShoestringError):
            raise
        raise StudyError(f"this study cannot be read: {type(error).__name__}: {error}") from error
    return study
