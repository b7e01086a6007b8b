"""The serializer of studies: what a storage keeps of a study, how it is opened again, and a study as JSON text.

Kept are the space, the settings, the trials and the queue. Method, model and rules are code: their text is kept where they have
one (``EI()``, see ``registry``), so that the command line and ``Study.load`` can go on with them. The keys below are a stored
format: they stay as they are.

Each study has an identity, a UUID that is made with the study. A name does not identify a study: it may be removed and made anew,
and another storage may have one of the same name. What is kept outside of the storage (checkpoints, logs, approvals) goes by the
identity.
"""

from __future__ import annotations

import json
import logging
import re
import uuid
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ..budget import Budget
from ..data.trial import Trial
from ..errors import Conflict, MethodError, StudyError
from ..space.extend import differences, incompatibilities
from ..space.space import Space
from ..storage import Storage, StudyRecord
from .attributes import StudyAttributes
from .registry import KINDS, read_code
from .study_state import StudySettings, StudyState

log = logging.getLogger("shoestring")

KEYS = ("direction", "seed", "initial", "unit", "per_hour")
LEASE_SECONDS = 60.0  # how long the trials of a lost worker stay reserved
JSON_VERSION = 1
ID_KEY = "id"
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def settings_to_dict(settings: StudySettings, space: Space | None = None) -> dict[str, Any]:
    """The settings, and the space where it is given: JSON-ready."""
    state: dict[str, Any] = {name: getattr(settings, name) for name in KEYS}
    state["budget"] = None if settings.budget is None else asdict(settings.budget)
    state["code"] = settings.code
    return state if space is None else state | {"space": json.loads(space.to_json())}


def read_budget_dict(stored: Mapping[str, Any]) -> Budget | None:
    return Budget(**stored["budget"]) if stored.get("budget") else None


# -- in a storage ------------------------------------------------------------------------------------------------------


def open_study(
    storage: Storage, name: str, space: Space, settings: StudySettings, *, extend: bool = False, lease: float = LEASE_SECONDS
) -> StudyState:
    """The study of that name in a storage: as it is there, perhaps with a wider space, or new, saved before its first trial."""
    found = storage.find(name)
    space = known_space(found, space, extend)
    if found is not None:
        adopt_settings(settings, found)
    record, new = storage.begin(name, settings_to_dict(settings, space) | {ID_KEY: settings.id or new_id()})
    if not new:  # another process may have been faster
        if not extend:
            require_same(Space.from_json(record.settings["space"]), space, name)
        adopt_settings(settings, record)
        if extend:
            save_wider_space(storage, record, space, settings)
    settings.id = read_id(record.settings)
    return StudyState(storage, record.id, name, space, settings, lease=lease)


def new_id() -> str:
    return str(uuid.uuid4())


def read_id(settings: Mapping[str, Any]) -> str:
    """The identity in a study's settings. Empty if there is none: also for a text that is no UUID, which may be forged."""
    found = settings.get(ID_KEY)
    return found if isinstance(found, str) and _UUID.fullmatch(found) else ""


def study_id(state: StudyState) -> str:
    """The identity of a study. A study that was made before there were identities gets one now."""
    while not state.settings.id:
        record = find_record(state.storage, state.name)
        if record.id != state.study:
            raise StudyError(f"study {state.name!r} was deleted in {state.storage.url} and made anew; open it again")
        made = read_id(record.settings) or new_id()
        try:
            state.storage.revise(state.study, {ID_KEY: made}, if_still={ID_KEY: record.settings.get(ID_KEY)})
        except Conflict:  # another process was faster
            continue
        state.settings.id = made
    return state.settings.id


def adopt_settings(settings: StudySettings, found: StudyRecord) -> None:
    """Settings of the study that is there go before those given: its next suggestion must not depend on who asks."""
    given = {name: getattr(settings, name) for name in KEYS}
    for name in ("seed", "initial", "unit", "per_hour"):
        setattr(settings, name, found.settings[name])
    if found.trials:
        settings.direction = found.settings["direction"]  # ``minimize`` or ``maximize`` says so if this is the wrong one
    if settings.budget is None:
        settings.budget = read_budget_dict(found.settings)
    if "cost" not in settings.code and "cost" in (kept := found.settings.get("code") or {}):  # its meter, as its unit
        settings.code = {**settings.code, "cost": kept["cost"]}
    changed = [name for name in ("seed", "initial", "unit") if given[name] != getattr(settings, name)]
    if changed:
        own = ", ".join(f"{name}={getattr(settings, name)}" for name in changed)
        log.info("study %r goes on with its own %s", found.name, own)


def save_wider_space(storage: Storage, record: StudyRecord, space: Space, settings: StudySettings) -> None:
    """Store the space in place of a narrower one.

    Of two processes that extend it at the same time, the second looks again: its space must hold that of the first.
    """
    while True:
        known, changed = record.settings["space"], settings_to_dict(settings, space)
        if known_space(record, space, extend=True) is not space:
            del changed["space"]  # it is there already, perhaps in another order
        else:
            changed["earlier"] = [*record.settings.get("earlier", []), known]
        try:
            storage.revise(record.id, changed, if_still={"space": known})
            return
        except Conflict:
            record = find_record(storage, record.name)


def find_record(storage: Storage, name: str | None) -> StudyRecord:
    """The study of that name, or the only one; a StudyError that lists what is there."""
    if name is not None and (found := storage.find(name)) is not None:
        return found
    known = storage.studies()
    names = ", ".join(repr(each.name) for each in known[:20]) or "none"
    if name is not None:
        raise StudyError(f"there is no study {name!r} in {storage.url}; there are: {names}")
    if not known:
        raise StudyError(f"there is no study in {storage.url} yet; make one with st.Study(space, storage={storage.url!r})")
    if len(known) != 1:
        raise StudyError(f"which study of {storage.url}? Give its name; there are: {names}")
    return known[0]


def load_arguments(record: StudyRecord, code: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with which ``Study`` opens a stored study; ``code`` replaces what is stored of method, stop, ..."""
    kept = record.settings
    arguments: dict[str, Any] = {name: kept[name] for name in KEYS}
    arguments |= {"space": Space.from_json(kept["space"]), "name": record.name, "budget": read_budget_dict(kept)}
    for part in KINDS:
        text = (kept.get("code") or {}).get(part, "auto")
        if part in code:
            continue
        if text is None:
            raise MethodError(
                f"study {record.name!r} was made with a {part} that has no text to store; give it again: "
                f"Study.load(storage, {record.name!r}, {part}=...), or register its class: st.register(...)"
            )
        if not (part in ("model", "cost") and text == "auto"):
            arguments[part] = read_code(part, text)
    return without_price(arguments | dict(code))


def without_price(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a study: what an hour costs is said by its meter, where it has one."""
    return arguments | {"per_hour": None} if arguments.get("cost") is not None else arguments


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


# -- as JSON text ------------------------------------------------------------------------------------------------------


def to_json(state: StudyState) -> str:
    """The whole state as text; method, models and rule only by their texts."""
    settings = settings_to_dict(state.settings, state.space)
    trials = [trial.to_dict() | {"basis": {}} for trial in state.trials]  # by a clock that stays here
    queue = [[dict(each.config), dict(each.suggestion)] for each in state.queue]
    head: dict[str, Any] = {"shoestring": JSON_VERSION, "name": state.name, "seconds": state.run_status.seconds}
    if state.settings.id:
        head[ID_KEY] = state.settings.id
    if attrs := dict(StudyAttributes(state)):
        head["attrs"] = attrs
    return json.dumps(head | settings | {"trials": trials, "queue": queue}, allow_nan=False)


def read_json(text: str) -> dict[str, Any]:
    """The dict that ``to_json`` wrote; a StudyError if it is something else."""
    try:
        state = json.loads(text)
    except json.JSONDecodeError as error:
        raise StudyError(f"this study cannot be read: {error}") from None
    if not isinstance(state, Mapping) or "shoestring" not in state:
        raise StudyError("this is not a study; expected the text that Study.to_json() wrote")
    if state["shoestring"] != JSON_VERSION:
        raise StudyError(f"this study was written in format {state['shoestring']!r}; this version reads {JSON_VERSION}")
    return dict(state)


def json_arguments(state: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with which ``Study`` makes the study of a JSON text anew, without its trials."""
    arguments = {name: state[name] for name in KEYS if name != "per_hour"} | {"per_hour": state.get("per_hour")}
    return arguments | {"space": Space.from_json(state["space"]), "name": state["name"], "budget": read_budget_dict(state)}


def fill_from_json(state: StudyState, stored: Mapping[str, Any]) -> None:
    """Write the trials and the queue of a JSON text into a new study."""
    state.settings.unit = stored["unit"]
    if known := read_id(stored):
        state.save_settings({ID_KEY: known})
        state.settings.id = known
    state.run_status.set_seconds(float(stored["seconds"]))
    for record in stored["trials"]:
        state.add(Trial.from_dict(record))
    for config, suggestion in stored["queue"]:
        state.enqueue(config, suggestion)
    StudyAttributes(state).update(stored.get("attrs", {}))
