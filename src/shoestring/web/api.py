"""Ask and tell over HTTP, in JSON, for programs in any language and on any machine.

    GET  /api/studies                 the studies
    GET  /api/studies/NAME            one study: direction, space, spent, best
    GET  /api/studies/NAME/trials     its trials, by number
    GET  /api/studies/NAME/views/V    the numbers of a picture
    POST /api/studies/NAME/ask        the next trial, reserved for some time
    POST /api/studies/NAME/renew      more time for a trial
    POST /api/studies/NAME/report     an intermediate value of a trial
    POST /api/studies/NAME/tell       what came of a trial

Every request has the header ``Authorization: Bearer TOKEN``. What storage promises holds here too: a trial that is not told
before its lease ends is asked again, the same result told twice is one result, and another result for a finished trial is
refused (409).

An error is {"error": what is wrong, "where": in which part of the request, "fix": what to do}.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from .._validation import duration_seconds
from ..data.trial import State, Trial
from ..errors import (
    MethodError,
    NothingFits,
    ShoestringError,
    SpaceExhausted,
    StorageUnavailable,
    StudyError,
    TrialError,
)
from ..report.views import VIEWS
from ..storage.base import Limits
from ..storage.memory import MemoryStorage
from ..storage.trial_lifecycle import awaits_late_result
from .catalog import Catalog, NoStudy, budget_of
from .pictures import current_view

DEFAULT_LEASE, MAX_LEASE_SECONDS = "1h", 30 * 86400.0
MAX_TRIALS_IN_ANSWER = 1000
SUMMARY_FIELDS = ("number", "state", "value", "cost", "seconds", "config", "metrics", "attrs", "error")
TELL_FIELDS = ("number", "value", "folds", "cost", "gradient", "metrics", "attrs", "error", "censored")
TELL_TYPES: Mapping[str, type] = {"folds": list, "gradient": dict, "metrics": dict, "attrs": dict, "error": str, "censored": bool}
NAMES_OF_TYPES: Mapping[type, str] = {list: "list", dict: "object", str: "string", bool: "true or false"}

Answer = tuple[int, dict[str, Any]]


class Problem(Exception):
    """A request that cannot be answered: the status, what is wrong, where, and how to fix it."""

    def __init__(self, status: int, what: str, where: str, fix: str) -> None:
        super().__init__(what)
        self.status, self.document = status, {"error": what, "where": where, "fix": fix}


# -- requests ----------------------------------------------------------------------------------------------------------


def answered(call: Callable[[], dict[str, Any]]) -> Answer:
    """The answer of a call, or what is wrong with the request."""
    try:
        return 200, call()
    except Problem as problem:
        return problem.status, problem.document
    except NoStudy as error:
        return 404, {"error": f"there is no study {str(error)!r}", "where": "path", "fix": "GET /api/studies lists the studies"}
    except (SpaceExhausted, NothingFits) as error:
        fix = "take the best trial, or give a larger budget or a wider space"
        return 409, {"error": str(error), "where": "study", "fix": fix}
    except MethodError as error:
        return 409, {"error": str(error), "where": "study", "fix": "ask in the program that has the code of the study"}
    except StorageUnavailable as error:
        return 503, {"error": str(error), "where": "storage", "fix": "send the same request again in some seconds"}
    except StudyError as error:
        return 409, {"error": str(error), "where": "study", "fix": "see the message"}
    except ShoestringError as error:
        return 422, {
            "error": str(error),
            "where": "body",
            "fix": "send the request again with a correct value; the trial stays open",
        }


def read_body(body: bytes) -> dict[str, Any]:
    """The JSON object of a request; empty for an empty body."""

    def refuse(text: str) -> NoReturn:
        raise Problem(422, f"{text} is not a number in JSON", "body", 'for a failed trial send "error" in place of "value"')

    if not body.strip():
        return {}
    try:
        found = json.loads(body, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise Problem(
            422, f"the body is not JSON: {error}", "body", 'send an object such as {"number": 3, "value": 0.25}'
        ) from None
    if not isinstance(found, dict):
        raise Problem(422, "the body is not a JSON object", "body", 'send an object such as {"number": 3, "value": 0.25}')
    return found


def check_fields(given: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for name in given:
        if name not in known:
            raise Problem(422, f"there is no field {name[:80]!r}", f"body.{name[:80]}", f"send some of: {', '.join(known)}")


# -- answers -----------------------------------------------------------------------------------------------------------


def studies(catalog: Catalog) -> dict[str, Any]:
    """The names of the studies, with their sizes."""
    return {
        "studies": [
            {
                "name": record.name,
                "trials": record.counted,
                "running": record.running,
                "spent": record.spent,
                "halted": record.halted,
            }
            for record in catalog.records()
        ]
    }


def one_study(catalog: Catalog, name: str) -> dict[str, Any]:
    """A study without its trials: the same numbers as ``shoestring show --json``."""
    record, study = catalog.record(name), catalog.study(name)
    history, budget = study.log, budget_of(record)
    best = history.best
    return {
        "study": record.name, "direction": study.direction, "trials": history.trials_started,
        "interrupted": len(history) - history.trials_started, "states": dict(Counter(str(trial.state) for trial in history)),
        "spent": history.spent, "unit": study.unit, "best": None if best is None else trial_json(best),
        "halted": record.halted, "waiting": record.waiting, "seconds": record.seconds, "created_at": record.created_at,
        "budget": None if budget is None else {"trials": budget.trials, "seconds": budget.seconds, "cost": budget.cost},
        "space": {key: parameter.to_dict() for key, parameter in study.space.items()},
    }  # fmt: skip


def trials(catalog: Catalog, name: str, first: str, count: str) -> dict[str, Any]:
    """Some trials of a study, from a number on."""
    for field, text in (("from", first), ("count", count)):
        if not text.isdecimal() or len(text) > 9:
            raise Problem(422, f"{field}={text[:20]!r} is not a whole number", f"query.{field}", f"write for example {field}=0")
    history, start = catalog.study(name).log, int(first)
    found = history[start : start + min(int(count), MAX_TRIALS_IN_ANSWER)]
    following = start + len(found)
    return {"trials": [trial_json(trial) for trial in found], "next": following if following < len(history) else None}


def trial_json(trial: Trial) -> dict[str, Any]:
    """The fields of a trial that most programs need."""
    return {name: value for name, value in trial.to_dict().items() if name in SUMMARY_FIELDS}


def one_view(catalog: Catalog, name: str, wanted: str) -> dict[str, Any]:
    """The numbers of a picture."""
    if wanted not in VIEWS:
        raise Problem(404, f"there is no picture {wanted[:80]!r}", "path", f"choose one of {', '.join(VIEWS)}")
    return current_view(catalog.study(name), wanted)


def ask(catalog: Catalog, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Open the next trial of a study, within its budget."""
    check_fields(given, ("lease",))
    lease = lease_seconds(given)
    record = catalog.record(name)
    if record.halted is not None:
        fix = "resume the study on its page, or with: shoestring resume"
        raise Problem(409, f"the study was stopped: {record.halted}", "study", fix)
    study, budget = catalog.asking_study(name), budget_of(record)
    limits = None if budget is None else Limits(budget.trials, budget.cost)
    trial = study.suggester.ask(budget=study.budget, limits=limits, lease=lease)[0].detached()
    return {
        "study": record.name,
        "number": trial.number,
        "config": trial.config,
        "fidelity": trial.fidelity,
        "lease_seconds": lease,
        "lease_token": study.state.lent.pop(trial.number, None),
    }


def lease_seconds(given: Mapping[str, Any]) -> float:
    """How long a trial is reserved, as the request says."""
    try:
        lease = duration_seconds(given.get("lease", DEFAULT_LEASE), "lease")
    except ShoestringError as error:
        raise Problem(422, str(error), "body.lease", 'write for example "30m", or a number of seconds') from None
    if lease > MAX_LEASE_SECONDS:
        raise Problem(422, "the lease is longer than 30 days", "body.lease", "ask for a shorter one")
    return lease


def renew(catalog: Catalog, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """More time for a trial that still runs. The token that ask returned proves that the trial is the client's."""
    check_fields(given, ("number", "lease_token", "lease"))
    record, lease = catalog.record(name), lease_seconds(given)
    trial, token = running_trial(catalog, name, given)
    # A study in memory has no leases: no other process can take its trials.
    lost = catalog.storage.renew(record.id, {trial.number: token}, lease) if token is not None else set[int]()
    if lost:
        raise lost_lease(trial.number)
    return {"number": trial.number, "lease_seconds": lease, "halted": record.halted}


def report(catalog: Catalog, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Store an intermediate value of a running trial."""
    check_fields(given, ("number", "lease_token", "value", "fidelity", "cost"))
    record, fidelity = catalog.record(name), given.get("fidelity") or {}
    trial, token = running_trial(catalog, name, given)
    if not is_number(given.get("value")):
        raise Problem(422, "the value of the report is missing", "body.value", 'write "value": 0.25')
    if not (given.get("cost") is None or is_number(given["cost"])):
        raise Problem(422, "cost is not a number", "body.cost", 'write "cost": 12.5, the cost of the trial so far')
    if not isinstance(fidelity, dict) or not all(is_number(amount) for amount in fidelity.values()):
        raise Problem(422, "fidelity is not an object of numbers", "body.fidelity", 'write for example {"epochs": 5}')
    for key, amount in fidelity.items():
        before = max((each["fidelity"].get(key, amount) for each in trial.reports), default=amount)
        if key not in trial.fidelity or not before <= amount <= trial.fidelity[key]:
            asked = ", ".join(f"{known} up to {most:g}" for known, most in trial.fidelity.items()) or "none"
            what = f"{key[:80]} = {amount:g} does not fit this trial"
            raise Problem(422, what, "body.fidelity", f"it has: {asked}; go upwards")
    reports = [*trial.reports, {"value": float(given["value"]), "fidelity": fidelity, "cost": given.get("cost")}]
    if token is None or not catalog.storage.report(record.id, trial.number, token, reports):
        raise lost_lease(trial.number)
    return {"number": trial.number, "reports": len(reports), "halted": record.halted}


def running_trial(catalog: Catalog, name: str, given: Mapping[str, Any]) -> tuple[Trial, str | None]:
    """The running trial that a request names, and the token of its lease."""
    number, token = given.get("number"), given.get("lease_token")
    if isinstance(number, bool) or not isinstance(number, int):
        raise Problem(422, "the number of the trial is missing", "body.number", 'send the "number" that ask returned')
    history = catalog.study(name).log
    if not 0 <= number < len(history):
        raise Problem(404, f"there is no trial {number}", "body.number", "name a trial that ask of this study returned")
    if history[number].state is not State.RUNNING:
        raise lost_lease(number)
    if not isinstance(token, str) and not isinstance(catalog.storage, MemoryStorage):
        raise Problem(422, "the token of the lease is missing", "body.lease_token", 'send the "lease_token" that ask returned')
    return history[number], token if isinstance(token, str) else None


def lost_lease(number: int) -> Problem:
    fix = "tell its result all the same, if there is one: a late result is kept; then ask for another trial"
    return Problem(409, f"trial {number} is not reserved for you any more: its lease has ended, or it has a result", "body", fix)


def tell(catalog: Catalog, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Record what came of a trial. The same result twice is one result."""
    check_fields(given, TELL_FIELDS)
    number = given.get("number")
    if isinstance(number, bool) or not isinstance(number, int):
        raise Problem(422, "the number of the trial is missing", "body.number", 'send the "number" that ask returned')
    for field in ("value", "cost"):
        if not (given.get(field) is None or is_number(given[field])):
            raise Problem(422, f"{field} is {given[field]!r:.40}, not a number", f"body.{field}", f'write "{field}": 0.25')
    for field, kind in TELL_TYPES.items():
        if not (given.get(field) is None or isinstance(given[field], kind)):
            raise Problem(422, f"{field} is not a JSON {NAMES_OF_TYPES[kind]}", f"body.{field}", f"send a {NAMES_OF_TYPES[kind]}")
    if all(given.get(field) is None for field in ("value", "folds", "error")):
        raise Problem(422, "the result is missing", "body", 'send "value", "folds" or "error"')
    study = catalog.study(name)
    if not 0 <= number < len(study.log):
        raise Problem(404, f"there is no trial {number}", "body.number", "tell a trial that ask of this study returned")
    before = study.log[number]
    if given.get("cost") is None and not before.finished and not study.state.settings.time_has_a_price:
        # without this, seconds would count as that unit
        fix = f"send what the trial has cost in {study.unit}, 0 if nothing; or make the study with per_hour, the price of an hour"
        raise Problem(422, f"the cost is missing: this study counts costs in {study.unit}", "body.cost", fix)
    outcome = {field: given[field] for field in TELL_FIELDS[2:] if given.get(field) is not None}
    try:
        told = study.tell(number, given.get("value"), **outcome)
    except TrialError as error:
        raise Problem(409, str(error), "body", "keep the result that is stored; tell each trial once") from None
    late = awaits_late_result(before)
    return trial_json(told) | {"late": late}


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
