"""The actions of the page: stop, resume, enqueue, retry, note, extend. Each returns a sentence that says what was done.

The page never starts a program. A program that is stored with a study runs where its user has approved it, by the command that
the page shows. So ``resume`` withdraws a stop: asks over HTTP are answered again, and the command is printed on the page.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from .._format import config_text, plural
from ..budget import Budget, read_budget_text
from ..data.trial import State
from ..errors import Conflict, ShoestringError
from ..storage.base import StudyRecord
from .catalog import Catalog, budget_of
from .pages import NOTES_KEY, spent_text

MAX_NOTE_CHARACTERS = 2000
MAX_NOTES = 500
MAX_ATTEMPTS = 20  # to write what other processes write at the same moment
PARAMETER_PREFIX = "p:"  # of the fields of a form that hold parameters

Form = Mapping[str, str]


class ActionError(ValueError):
    """An action that cannot be done: what is wrong, and how to fix it."""


def act(catalog: Catalog, name: str, action: str, form: Form) -> str:
    """Carry out an action on a study. Raises ActionError, or an error of the library that says what is wrong."""
    return ACTIONS[action](catalog, name, form)


def stop(catalog: Catalog, name: str, form: Form) -> str:
    """All workers stop after the trials that they run now."""
    record = catalog.record(name)
    reason = form.get("reason", "").strip()[:200] or "stopped on the page"
    catalog.storage.revise(record.id, halted=reason)
    return f"All workers of {record.name} stop after the trials that they run now."


def resume(catalog: Catalog, name: str, form: Form) -> str:
    """Withdraw a stop."""
    record = catalog.record(name)
    if record.halted is None:
        raise ActionError("this study is not stopped; there is nothing to resume")
    catalog.storage.revise(record.id, halted=None)
    return "The stop is withdrawn. Asks over HTTP are answered again. To run its program, type the command below."


def enqueue(catalog: Catalog, name: str, form: Form) -> str:
    """Have a config asked next; what is left empty is suggested."""
    study = catalog.study(name)
    given = {key.removeprefix(PARAMETER_PREFIX): text for key, text in form.items() if key.startswith(PARAMETER_PREFIX)}
    config = {key: read_value(text) for key, text in given.items() if text.strip()}
    if not config:
        raise ActionError("no value is given; fill in at least one parameter")
    study.enqueue(config)
    rest = "" if len(config) == len(study.space) else "; the other parameters are suggested when it is asked"
    return f"Enqueued: {config_text(config)}{rest}."


def retry(catalog: Catalog, name: str, form: Form) -> str:
    """Have the config of a finished trial asked again."""
    study = catalog.study(name)
    text = form.get("trial", "")
    if not text.isdecimal() or len(text) > 9 or int(text) >= len(study.log):
        raise ActionError(f"there is no trial {text[:20]!r}; the study has {plural(len(study.log), 'trial')}, numbered from 0")
    trial = study.log[int(text)]
    if trial.state is State.RUNNING:
        raise ActionError(f"trial {trial.number} is running; wait until it has ended")
    study.enqueue(dict(trial.config))
    return f"The settings of trial {trial.number} are enqueued once more."


def note(catalog: Catalog, name: str, form: Form) -> str:
    """Keep a note with a study or with one of its trials: in the study's attribute ``notes``."""
    text, trial = form.get("text", "").strip(), form.get("trial", "")
    if not text:
        raise ActionError("the note is empty; write something")
    if len(text) > MAX_NOTE_CHARACTERS:
        raise ActionError(f"the note has {len(text)} characters; write at most {MAX_NOTE_CHARACTERS}")
    entry: dict[str, Any] = {"at": time.time(), "text": text}
    if trial.isdecimal() and len(trial) < 10:
        entry["trial"] = int(trial)
    key = f"attr:{NOTES_KEY}"

    def change(record: StudyRecord) -> dict[str, Any]:
        stored = record.settings.get(key)
        before = stored.get("value") if isinstance(stored, Mapping) else None
        notes = before if isinstance(before, list) else []
        if len(notes) >= MAX_NOTES:
            raise ActionError(f"the study has {MAX_NOTES} notes already; remove some: del study.attrs[{NOTES_KEY!r}]")
        return {key: {"value": [*notes, entry]}}

    revise_safely(catalog, name, change)
    return "The note is kept."


def extend(catalog: Catalog, name: str, form: Form) -> str:
    """A larger budget for the whole study, what is spent included."""
    text = form.get("budget", "").strip()
    if not text:
        raise ActionError("the budget is missing; write for example 40 (trials), 2h (time) or 20 USD (cost)")

    def change(record: StudyRecord) -> dict[str, Any]:
        budget = asdict(extended(record, text))
        plan = record.settings.get("run")
        with_plan = {"run": {**plan, "budget": budget}} if isinstance(plan, Mapping) else {}
        return {"budget": budget} | with_plan

    revise_safely(catalog, name, change)
    return f"The budget of the study is {text} from now on. A process that runs keeps the one that it began with."


def extended(record: StudyRecord, text: str) -> Budget:
    """The present budget with a larger limit of the kind that the text names."""
    unit = str(record.settings.get("unit", "s"))
    given, now = read_budget_text(text, unit), budget_of(record)
    if given.cost is not None and given.unit != unit and unit != "s":
        raise ActionError(f"this study counts cost in {unit}, not in {given.unit}; write for example {given.cost:g} {unit}")
    used = {"cost": record.spent, "trials": record.counted, "seconds": record.seconds}
    limits = {kind: getattr(given, kind) for kind in used if getattr(given, kind) is not None}
    for kind, limit in limits.items():
        if limit <= used[kind]:
            spent = {"cost": spent_text(record), "trials": plural(record.counted, "trial"), "seconds": f"{record.seconds:.0f} s"}
            raise ActionError(f"{text!r} is used up already: {spent[kind]} so far; give a larger budget for the whole study")
    if now is None:
        return given
    return replace(now, **limits, unit=given.unit or now.unit)


def revise_safely(catalog: Catalog, name: str, change: Callable[[StudyRecord], dict[str, Any]]) -> None:
    """Write settings that follow from those that are there, although other processes may write at the same moment."""
    for _ in range(MAX_ATTEMPTS):
        record = catalog.record(name)
        settings = change(record)
        try:
            catalog.storage.revise(record.id, settings, if_still={key: record.settings.get(key) for key in settings})
            return
        except Conflict:
            continue
    raise ActionError("other programs change this study all the time; try again")


def read_value(text: str) -> Any:
    """A value: JSON (1, 0.5, true, null, "1") if the text is JSON, otherwise the text itself."""
    try:
        return json.loads(text, parse_constant=str)
    except ValueError:
        return text.strip()


ACTIONS: Mapping[str, Callable[[Catalog, str, Form], str]] = {
    "stop": stop, "resume": resume, "enqueue": enqueue, "retry": retry, "note": note, "extend": extend,
}  # fmt: skip
EXPECTED_ERRORS = (ActionError, ShoestringError)
