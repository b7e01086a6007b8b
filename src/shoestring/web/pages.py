"""What each page shows, as plain data for its template. No model is fitted here: numbers come from what is stored."""

from __future__ import annotations

import json
import shlex
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .._format import amount, duration, plural, rounded, uncertain, value_text
from ..budget import Budget
from ..data.trial import State, Trial
from ..errors import ShoestringError
from ..report.summary import parameter_text
from ..report.views import compare, view
from ..storage.base import Storage, StudyRecord
from ..storage.heartbeat import surely_dead
from ..study import Study
from ..termination.regret import standard_error
from .catalog import Catalog, NoStudy, budget_of
from .pictures import Picture, Pictures

MAX_RUNNING_SHOWN = 20
MAX_REPORTS_SHOWN = 50
MAX_COMPARED = 40  # studies in one picture
NOTES_KEY = "notes"  # of the study's attributes: what people have written on the page
SECONDS_OF_UNIT = ((86400, "day"), (3600, "hour"), (60, "minute"))

Log = tuple[str, str]  # the name of a log file, and the end of it
LogReader = Callable[[StudyRecord, int], Sequence[Log]]


# -- the list of studies -----------------------------------------------------------------------------------------------


def studies_page(catalog: Catalog) -> dict[str, Any]:
    """The list of studies: name, state, best value, what was spent of the budget, trials, last activity."""
    rows, records = [], catalog.records()
    for record in records:
        best = catalog.storage.best(record.id, is_maximized(record))
        active = catalog.last_activity(record)
        rows.append({
            "name": record.name, "state": state_of(record), "state_text": state_text(record),
            "best": None if best is None else best.value, "best_number": None if best is None else best.number,
            "direction": record.settings.get("direction"), "trials": record.counted, "waiting": record.waiting,
            "spent": spent_text(record), "limits": limits(record, budget_of(record)), "active_text": time_ago(active),
        })  # fmt: skip
    return {"studies": rows, "version": version_of(*records)}


def version_of(*records: StudyRecord) -> str:
    """A text that is another one after each change of one of these studies."""
    first = records[0].id if records else 0
    return f"{len(records)}.{first}.{sum(record.clock for record in records)}"


def is_maximized(record: StudyRecord) -> bool:
    return record.settings.get("direction") == "maximize"


def state_of(record: StudyRecord) -> str:
    """One word for the colour of the state: running, stopped, waiting, empty or idle."""
    if record.running:
        return "running"
    if record.halted:
        return "stopped"
    if record.waiting:
        return "waiting"
    return "idle" if record.trials else "empty"


def state_text(record: StudyRecord) -> str:
    """The state of a study in words."""
    running = plural(record.running, "trial") + " running"
    if record.halted:
        return f"stop requested: {record.halted}; {running}" if record.running else f"stopped: {record.halted}"
    waiting = f"{record.waiting} enqueued"
    if record.running:
        return f"{running}, {waiting}" if record.waiting else running
    if not record.trials:
        return f"no trial yet, {waiting}" if record.waiting else "no trial yet"
    return f"nothing runs, {waiting}" if record.waiting else "nothing runs"


def spent_text(record: StudyRecord) -> str:
    """What was spent, in the study's unit."""
    return amount(record.spent, str(record.settings.get("unit", "s")))


def limits(record: StudyRecord, budget: Budget | None) -> list[dict[str, Any]]:
    """How much of each limit of the budget is used: for bars with a text."""
    if budget is None:
        return []
    unit = str(record.settings.get("unit", "s"))
    used = (
        ("cost", record.spent, budget.cost, lambda value: amount(value, unit)),
        ("trials", float(record.counted), budget.trials, lambda value: plural(int(value), "trial")),
        ("time", record.seconds, budget.seconds, duration),
    )
    return [
        {
            "what": what,
            "used": value,
            "limit": float(limit),
            "share": min(value / limit, 1.0),
            "text": f"{show(value)} of {show(limit)}",
        }
        for what, value, limit, show in used
        if limit is not None
    ]


# -- a study -----------------------------------------------------------------------------------------------------------


def live_part(record: StudyRecord, study: Study, storage: Storage) -> dict[str, Any]:
    """What changes while a study runs: the facts of the live line, the latest suggestion and the running trials."""
    history = study.log
    latest = history[-1] if len(history) else None
    facts = [fact for fact in view(study, "live", fit=False)["facts"] if fact["label"] != "running"]
    bars = ("spent", "trials", "time")  # what has a limit that is used up bit by bit
    return {
        "version": version_of(record), "state": state_of(record), "state_text": state_text(record),
        "facts": [fact | {"bar": bool(fact["limit"]) and fact["label"] in bars} for fact in facts],
        "latest": None if latest is None else suggestion_part(latest, study.unit),
        "running": running_rows(study, storage, record), "more_running": max(0, record.running - MAX_RUNNING_SHOWN),
        "line": line(record, history.number_of(State.FAILED), history.best), "waiting": record.waiting, "halted": record.halted,
    }  # fmt: skip


def line(record: StudyRecord, failed: int, best: Trial | None) -> str:
    """The live line as text: for the title of the page, and for those who do not see it change."""
    parts = [f"spent {spent_text(record)}", plural(record.counted, "trial") + (f", {failed} failed" if failed else "")]
    parts.append("no result yet" if best is None else f"best {rounded(best.value)} (trial {best.number})")
    return " | ".join([*parts, state_text(record)])


def suggestion_part(trial: Trial, unit: str, *, outcome: bool = True) -> dict[str, Any]:
    """Why a trial was suggested: the reason, what was expected, and what came of it unless that is shown elsewhere."""
    known = trial.suggestion
    gain, cost = number_of(known.get("gain")), number_of(known.get("cost"))
    per_cost = gain / cost if gain is not None and cost else None
    facts = [
        ("method", known.get("by")),
        ("expected value", text_of(known.get("predicted"))),
        ("expected gain", text_of(gain)),
        ("expected cost", None if cost is None else amount(cost, unit)),
        ("expected gain per unit of cost", None if per_cost is None else f"{rounded(per_cost)} per {unit}"),
    ]
    if outcome:
        paid = None if trial.cost is None else amount(trial.cost, unit) + (" or more" if trial.censored else "")
        facts += [("value", text_of(trial.value)), ("cost", paid)]
    decision = known.get("decision")
    return {
        "number": trial.number, "why": known.get("why"), "facts": [(label, text) for label, text in facts if text],
        "decision": decision_texts(decision) if isinstance(decision, Mapping) else [],
    }  # fmt: skip


def decision_texts(decision: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Why the automatic method chose this method and not another, in words."""
    return [(name, value if isinstance(value, str) else json.dumps(value)) for name, value in decision.items()]


def number_of(value: Any) -> float | None:
    """A stored number; None for anything else, since the storage may hold anything."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def text_of(value: Any) -> str | None:
    number = number_of(value)
    return None if number is None else rounded(number)


def running_rows(study: Study, storage: Storage, record: StudyRecord) -> list[dict[str, Any]]:
    """The running trials with their elapsed time, predicted cost and worker."""
    running = study.log.having(State.RUNNING)
    holders = storage.holders(record.id) if running else {}
    rows = []
    for trial in running[:MAX_RUNNING_SHOWN]:
        elapsed, cost = study.state.seconds_open(trial), number_of(trial.suggestion.get("cost"))
        rows.append({
            "number": trial.number, "elapsed": "-" if elapsed is None else duration(float(int(elapsed))),
            "since": trial.asked_at, "cost": "-" if cost is None else amount(cost, study.unit),
            "worker": worker_text(holders.get(trial.number, "")), "config": config_pairs(trial),
        })  # fmt: skip
    return rows


def worker_text(name: str) -> str:
    """The name of a worker in short: "gpu3, process 4711", and whether it has ended."""
    parts = name.split("/")
    short = f"{parts[0]}, process {parts[2]}" if len(parts) in (4, 5) else name
    return f"{short} (has ended)" if surely_dead(name) else short or "-"


def config_pairs(trial: Trial) -> list[tuple[str, str]]:
    return [(name, value_text(value)) for name, value in trial.config.items()]


def study_facts(record: StudyRecord, study: Study, resume_command: str | None) -> dict[str, Any]:
    """What does not change while a study runs."""
    plan = record.settings.get("run") or {}
    command = plan.get("command") if isinstance(plan, Mapping) else None
    parameters = [
        {"name": name, "text": parameter_text(parameter), "options": parameter.to_dict().get("options")}
        for name, parameter in study.space.items()
    ]
    states = Counter(str(trial.state) for trial in study.log)
    return {
        "name": record.name, "direction": study.direction, "unit": study.unit, "parameters": parameters,
        "method": record.settings.get("code", {}).get("method"), "stop": record.settings.get("code", {}).get("stop"),
        "seed": study.seed, "created": clock_text(record.created_at), "created_ago": time_ago(record.created_at),
        "program": shlex.join(map(str, command)) if isinstance(command, list) else None,
        "resume_command": resume_command if command else None,
        "states": dict(states), "notes": notes_of(record), "attrs": attributes_of(record),
    }  # fmt: skip



def attributes_of(record: StudyRecord) -> list[tuple[str, str]]:
    """The attributes of a study, without the notes."""
    found = {name.removeprefix("attr:"): value for name, value in record.settings.items() if name.startswith("attr:")}
    held = {name: value["value"] for name, value in found.items() if isinstance(value, Mapping) and "value" in value}
    texts = ((name, value if isinstance(value, str) else json.dumps(value)) for name, value in held.items())
    return [(name, text) for name, text in texts if name != NOTES_KEY]


def notes_of(record: StudyRecord, trial: int | None = None) -> list[dict[str, Any]]:
    """The notes of a study, or those of one of its trials, the newest first."""
    stored = record.settings.get(f"attr:{NOTES_KEY}")
    entries = stored.get("value") if isinstance(stored, Mapping) else None
    notes = [note for note in entries if isinstance(note, Mapping)] if isinstance(entries, list) else []
    chosen = [note for note in notes if trial is None or note.get("trial") == trial]
    return [
        {"text": str(note.get("text", "")), "trial": note.get("trial"), "at": clock_text(number_of(note.get("at")) or 0.0)}
        for note in reversed(chosen)
    ]


# -- a trial -----------------------------------------------------------------------------------------------------------


def trial_page(record: StudyRecord, study: Study, trial: Trial, logs: Sequence[Log]) -> dict[str, Any]:
    """One trial: what it was, what came of it, why it was suggested, its folds, reports, error and logs."""
    facts = [
        ("state", str(trial.state)),
        ("value", uncertain(trial.value, standard_error(trial.folds)) if trial.folds else rounded(trial.value, 6)),
        ("cost", "-" if trial.cost is None else amount(trial.cost, study.unit) + (" or more" if trial.censored else "")),
        ("time", "-" if trial.seconds is None else duration(trial.seconds)),
        ("asked", "-" if trial.asked_at is None else clock_text(trial.asked_at)),
    ]
    facts += [("added", "a result from elsewhere: this study has not paid for it")] if trial.added else []
    if trial.resumed_from is not None:
        reached = ", ".join(f"{name} = {value_text(value)}" for name, value in trial.resumed_from.fidelity.items())
        facts.append(("goes on from", f"trial {trial.resumed_from.number}" + (f", at {reached}" if reached else "")))
    further = [(name, text_of(value) or "-") for name, value in trial.metrics.items()]
    further += [(name, value if isinstance(value, str) else json.dumps(value)) for name, value in trial.attrs.items()]
    head, reports = report_table(trial.reports[-MAX_REPORTS_SHOWN:], study.unit)
    return {
        "number": trial.number, "facts": facts, "config": config_pairs(trial), "further": further,
        "folds": [(number, rounded(fold, 6)) for number, fold in enumerate(trial.folds or ())],
        "report_head": head, "reports": reports, "report_count": len(trial.reports),
        "suggestion": suggestion_part(trial, study.unit, outcome=False), "logs": list(logs),
        "error": trial.error, "traceback": trial.traceback,
        "finished": trial.finished, "notes": notes_of(record, trial.number), "count": len(study.log),
    }  # fmt: skip


def report_table(reports: Sequence[Mapping[str, Any]], unit: str) -> tuple[list[str], list[list[str]]]:
    """The intermediate values as a table: the fidelities, the value, and the cost of the trial so far where it is known."""
    fidelities = list(dict.fromkeys(name for report in reports for name in report.get("fidelity") or {}))
    costs = any(number_of(report.get("cost")) is not None for report in reports)
    rows = []
    for report in reports:
        reached, cost = report.get("fidelity") or {}, number_of(report.get("cost"))
        row = [*(value_text(reached.get(name, "-")) for name in fidelities), text_of(report.get("value")) or "-"]
        rows.append(row + (["-" if cost is None else amount(cost, unit)] if costs else []))
    return [*fidelities, "value", *(["cost so far"] if costs else [])], rows


# -- several studies ---------------------------------------------------------------------------------------------------


def compare_page(catalog: Catalog, pictures: Pictures, chosen: Sequence[str], by_prefix: bool = False) -> dict[str, Any]:
    """Several studies in one picture and one table. ``by_prefix``: the seeds of one method are a group, as name-0, name-1, ..."""
    records = catalog.records()
    known = {record.name: record for record in records}
    names = [name for name in dict.fromkeys(chosen) if name in known][:MAX_COMPARED]
    picture: Picture | None = None
    problem = "" if len(names) == len(set(chosen)) else "Some of these studies are not there, or there are too many at once."
    try:
        studies = [catalog.study(name) for name in names]
        if studies:
            picture = pictures.drawn("compare", compare(groups_of(studies) if by_prefix else studies))
    except (ShoestringError, NoStudy) as error:
        problem = str(error)
    rows = []
    for name in names:
        best = catalog.storage.best(known[name].id, is_maximized(known[name]))
        shown = "-" if best is None else rounded(best.value)
        rows.append({"name": name, "trials": known[name].counted, "spent": spent_text(known[name]), "best": shown})
    return {
        "names": sorted(known, key=lambda name: name not in names), "chosen": names, "picture": picture,
        "rows": rows, "problem": problem, "by_prefix": by_prefix,
    }  # fmt: skip


def groups_of(studies: Sequence[Study]) -> dict[str, list[Study]]:
    """Studies whose names differ in a number at the end are the runs of one group."""
    groups: dict[str, list[Study]] = {}
    for study in studies:
        stem = study.name.rstrip("0123456789").rstrip("-_. ")
        groups.setdefault(stem or study.name, []).append(study)
    return groups


# -- times -------------------------------------------------------------------------------------------------------------


def clock_text(moment: float) -> str:
    """A moment in words: the server's local time."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment))
    except (OverflowError, OSError, ValueError):  # a stored number may be anything
        return "-"


def time_ago(moment: float) -> str:
    """The time since a moment in one unit: "3 days ago"."""
    seconds = max(time.time() - moment, 0.0)
    for length, unit in SECONDS_OF_UNIT:
        if seconds >= length:
            return f"{plural(int(seconds // length), unit)} ago"
    return "just now"
