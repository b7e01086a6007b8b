"""The live line: what was spent, the best value, how far from stopping, what a further trial is expected to bring, what runs."""

from __future__ import annotations

from typing import Any

from ..._format import amount, duration, plural, rounded
from ...data.trial import State
from ..summary import used_text
from .base import Source, View, axis, make_view, trial_text
from .stopping_curve import Watched, stored_evidence, watched_by

MAX_RUNNING_SHOWN = 50


def live_line(source: Source) -> View:
    """The study at this moment, as facts: each has a label, a number and a text."""
    history, unit, budget = source.history, source.unit, source.budget
    limit = None if budget is None else budget.cost
    spent = amount(history.spent, unit) if limit is None else used_text(history.spent, limit, unit)
    facts: list[dict[str, Any]] = [fact("spent", history.spent, spent, limit)]
    if budget is not None and budget.trials is not None:
        facts.append(fact("trials", history.trials_used, f"{history.trials_used} of {budget.trials}", budget.trials))
    else:
        facts.append(fact("trials", history.trials_started, str(history.trials_started)))
    if budget is not None and budget.seconds is not None:
        facts.append(fact("time", source.seconds, f"{duration(source.seconds)} of {duration(budget.seconds)}", budget.seconds))
    best = history.best
    shown = "nothing yet" if best is None else f"{rounded(best.value)} (trial {best.number})"
    facts.append(fact("best", None if best is None else best.value, shown))
    if failed := history.number_of(State.FAILED):
        facts.append(fact("failed", failed, str(failed)))
    watched, when = watched_now(source)
    if watched is not None:
        against = "" if watched.threshold is None else f", stops at {rounded(watched.threshold, 3)}"
        against = f"{against}, {when}" if when else against
        facts.append(fact(watched.what, watched.value, f"{rounded(watched.value, 3)}{against}", watched.threshold))
    if (promise := promise_of(source)) is not None:
        gain, cost = promise
        text = f"{rounded(gain / cost, 3)} per {unit}: {rounded(gain, 3)} for {amount(cost, unit)}" if cost else rounded(gain, 3)
        facts.append(fact("expected further gain", gain / cost if cost else gain, text))
    running = running_trials(source)
    facts.append(fact("running", len(running), plural(len(running), "trial") if running else "nothing"))
    if source.halted is not None:
        facts.append(fact("stop requested", None, source.halted))
    caption = ", ".join(f"{each['label']} {each['text']}" for each in facts[:3])
    return make_view(
        "facts", "Now", f"{caption}.", history, facts=facts, running=running[:MAX_RUNNING_SHOWN], series=[], unit=unit,
        x=axis("", []), y=axis("", []), shown=len(facts),
    )  # fmt: skip


def fact(label: str, value: float | None, text: str, limit: float | None = None) -> dict[str, Any]:
    """One number of the line; ``limit``: of which it is a part, or that it is compared with."""
    return {"label": label, "value": value, "text": text, "limit": limit}


def watched_now(source: Source) -> tuple[Watched | None, str]:
    """What the stopping rule watches: by its last verdict, or as a suggestion stored it (then also before which trial)."""
    if source.checked is not None and source.checked.evidence:
        return watched_by(source.checked.evidence), ""
    stored = stored_evidence(source.history)
    return (watched_by(stored[max(stored)]), f"before trial {max(stored)}") if stored else (None, "")


def promise_of(source: Source) -> tuple[float, float | None] | None:
    """The expected gain and the expected cost of the last suggestion of a model; None before the first."""
    for trial in reversed(source.history.trials):
        gain, cost = trial.suggestion.get("gain"), trial.suggestion.get("cost")
        if gain is not None:
            return float(gain), float(cost) if cost else None
    return None


def running_trials(source: Source) -> list[dict[str, Any]]:
    """The trials that run now, with their time so far and what they were expected to cost."""
    found = []
    for trial in source.history.having(State.RUNNING):
        elapsed = None if trial.asked_at is None else max(0.0, source.now - trial.asked_at)
        cost = trial.suggestion.get("cost")
        found.append({
            "number": trial.number, "elapsed": elapsed, "elapsed_text": "-" if elapsed is None else duration(float(int(elapsed))),
            "predicted_cost": cost, "predicted_text": "-" if cost is None else amount(float(cost), source.unit),
            "text": trial_text(trial), "reports": len(trial.reports),
        })  # fmt: skip
    return found
