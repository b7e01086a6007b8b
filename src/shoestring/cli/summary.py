"""What a run says: when it begins, when it has ended, and when it was interrupted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import StorageError
from ..storage.patience import SHORT, patience
from ..trial import State
from ..wording import amount, plural
from .interruption import exit_code
from .plan import Plan
from .speech import Trouble, answer, command, note, rows_text, wants_json
from .standing import best_rows, parameter_text, standing_rows, study_json
from .where import arguments, hidden

if TYPE_CHECKING:
    from .. import Recommendation, Result, Study


def introduction(plan: Plan, study: Study, before: int | None) -> str:
    """What is about to happen."""
    known = f"going on with study {plan.name}: {plural(before, 'trial')} so far" if before is not None else f"study {plan.name}"
    if before is not None:
        return f"{known}, in {hidden(plan.where)}"
    rows = [(f"  {name}", parameter_text(parameter)) for name, parameter in study.space.items()]
    rows.append(("  budget", budget_text(plan, study.unit) + (f", {plan.workers} at once" if plan.workers > 1 else "")))
    rows.append(("  kept in", f"{hidden(plan.where)}; logs in {plan.logs}"))
    if plan.template(study.space).by_environment:
        rows.append(("  config", "in SHOESTRING_CONFIG, as JSON: no argument names a parameter"))
    return f"{known}\n{rows_text(rows)}\n"


def budget_text(plan: Plan, unit: str) -> str:
    budget = plan.budget
    limits = [
        None if budget.cost is None else amount(budget.cost, unit) + (" of running time" if unit == "s" else ""),
        None if budget.trials is None else plural(budget.trials, "trial"),
        None if budget.seconds is None else f"{amount(budget.seconds, 's')} by the clock",
    ]
    return " or ".join(limit for limit in limits if limit)


def conclude(plan: Plan, study: Study, result: Result) -> int:
    """The summary and the exit code."""
    if result.stop.kind == "interrupted":
        return interrupted(plan, study, result.stop.reason, exit_code(result.stop.reason))
    study.refresh()  # others may be working on it as well
    document = summary_json(plan, study, result.stop.reason, result.stop.kind)
    if study.log.best is None:
        failed = study.log.having(State.FAILED)
        look = command("show", plan.name, *(str(trial.number) for trial in failed[-1:]), *arguments(plan.where))
        raise Trouble(f"no trial has succeeded; {result.stop.reason}\n{best_rows(study)[0][1]}", look, document)
    if wants_json():
        answer(document | {"recommended": recommended_json(result.recommended)}, "")
        return 0
    rows = [row for row in result.rows() if row[0] != "go on"]
    rows += [("logs", plan.logs), ("go on", f"{document['resume']} --budget MORE")]
    answer(document, rows_text(rows), command("best", plan.name, *arguments(plan.where)))
    return 0


def interrupted(plan: Plan, study: Study, reason: str, code: int) -> int:
    """The summary without fitting a model, and without waiting for a storage: whoever interrupts wants to be out."""
    try:
        with patience(SHORT):
            answer(summary_json(plan, study, reason, "interrupted"), rows_text([*standing_rows(study), ("stopped", reason)]))
    except StorageError as error:
        note(str(error))
    note(f"interrupted; to go on:\n  {resuming(plan)}{unsaid(plan)}")
    return code


def resuming(plan: Plan) -> str:
    return command("resume", plan.name, *arguments(plan.where))


def summary_json(plan: Plan, study: Study, reason: str, kind: str) -> dict[str, Any]:
    kept = {"storage": hidden(plan.where), "logs": plan.logs}
    return study_json(study) | kept | {"stop": reason, "stop_kind": kind, "resume": resuming(plan)}


def recommended_json(found: Recommendation | None) -> dict[str, Any] | None:
    return None if found is None else {"config": found.config, "predicted": found.value, "trial": found.number}


def unsaid(plan: Plan) -> str:
    """A password is not printed, so the command that is lacks it."""
    hides = hidden(plan.where) != plan.where and bool(arguments(plan.where))
    return "\n  (with the password in place of ***; or put the address into SHOESTRING_STORAGE)" if hides else ""
