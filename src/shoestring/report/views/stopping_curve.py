"""The stopping curve: the number that the stopping rule watches, and the threshold that it is compared with.

Each suggestion stores the evidence of the rule's verdict before it (``suggestion["rule"]``), so the curve needs no model. Where a
model may be fitted, the present verdict is added: the one that has ended a study belongs to no suggestion.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._format import rounded
from ...data.history import History
from ...errors import ShoestringError
from ...termination.base import StopRule
from .base import Source, View, axis, empty_view, is_wide, make_view, series, spread_out

TITLE = "How far from stopping"
NOT_WATCHED = ("beta", "evaluations", "threshold", "tolerance", "confidence", "noise", "gained", "pending_cost", "cost", "gain")


@dataclass(frozen=True)
class Watched:
    """The number that a rule compares with a threshold; ``below``: it stops when the number is not above it."""

    what: str
    value: float
    threshold: float | None
    below: bool = True


def watched_by(evidence: Mapping[str, float]) -> Watched | None:
    """What the evidence of a verdict says about the distance to stopping; None if there is no such number."""
    if "chance" in evidence:
        allowed = 1.0 - evidence["confidence"] if "confidence" in evidence else None
        return Watched("chance that more is left to gain", evidence["chance"], allowed)
    if "bound" in evidence:
        return Watched("bound on what is left to gain", evidence["bound"], evidence.get("threshold"))
    if "worth" in evidence:
        return Watched("expected gain per unit of cost", evidence["worth"], evidence.get("price"))
    if "unchanged" in evidence:
        return Watched("trials without a new best", evidence["unchanged"], evidence.get("patience"), below=False)
    further = [name for name in evidence if name not in NOT_WATCHED]
    if "threshold" in evidence and further:
        return Watched(f"highest {further[0]}", evidence[further[0]], evidence["threshold"])
    return None


def stored_evidence(history: History) -> dict[int, Mapping[str, float]]:
    """The evidence of the stopping rule, by the number of trials that it had seen."""
    return {trial.number: trial.suggestion["rule"] for trial in history if trial.suggestion.get("rule")}


def present_evidence(source: Source) -> Mapping[str, float] | None:
    """The evidence of the rule at this moment: of the verdict that has ended the study, or computed where a fit is allowed."""
    if source.checked is not None and source.checked.stop:
        return source.checked.evidence
    rule, context = source.rule, source.fitted
    if not isinstance(rule, StopRule) or context is None or not context.data.finished:
        return None
    try:
        belief = context.belief(costs=rule.wants_cost) if rule.needs_belief(source.history) else None
        return rule.check(source.history, belief).evidence
    except ShoestringError:
        return None


def stopping_curve(source: Source) -> View:
    """What the stopping rule watches, over the trials; without such a rule, the expected gain of each suggestion."""
    history = source.history
    found = {number: watched for number, each in stored_evidence(history).items() if (watched := watched_by(each)) is not None}
    now = present_evidence(source)
    if now is not None and (watched := watched_by(now)) is not None:
        found[len(history)] = watched
    if not found:
        return expected_gains(source)
    last = found[max(found)]
    rows = spread_out(np.array(sorted(number for number, each in found.items() if each.what == last.what)))
    shown = [found[number] for number in rows.tolist()]
    values = np.array([each.value for each in shown])
    limits = np.array([np.nan if each.threshold is None else each.threshold for each in shown])
    lines: list[dict[str, Any]] = [series(last.what, "bound", "line", rows, values)]
    if np.isfinite(limits).any():
        across = [0, len(history)] if len(rows) == 1 else rows  # a single threshold is a line too, not a dot
        lines.append(series("threshold", "threshold", "dashes", across, np.broadcast_to(limits, len(across))))
    finite = np.concatenate([values, limits])[np.isfinite(np.concatenate([values, limits]))]
    log = is_wide(finite)
    return make_view(
        "chart", TITLE, caption_of(last), history, series=lines, shown=len(rows),
        x=axis("trials", [0.0, float(len(history))], whole=True, zero=True),
        y=axis(last.what, finite.tolist(), log=log, zero=not log), watched=watched_dict(last),
    )  # fmt: skip


def watched_dict(last: Watched) -> dict[str, Any]:
    """The last number of the curve and its threshold."""
    return {"what": last.what, "value": last.value, "threshold": last.threshold, "below": last.below}


def caption_of(last: Watched) -> str:
    """Where the study stands, in a sentence."""
    now = f"The {last.what} {'are' if last.what.startswith('trials') else 'is'} {rounded(last.value, 3)} now"
    if last.threshold is None:
        return f"{now}."
    side = "at or below" if last.below else "at or above"
    return f"{now}; the rule stops the study when this is {side} {rounded(last.threshold, 3)}."


def nothing_watched(source: Source) -> str:
    """Why there is no curve, in a sentence."""
    if not len(source.history):
        return "There are no trials yet."
    if source.rule is None:
        return "There is no stopping rule, and no suggestion has an expected gain: the budget alone decides."
    return "The stopping rule has no number to compare yet, and no suggestion has an expected gain."


def expected_gains(source: Source) -> View:
    """The expected gain of each suggestion, where no rule watches a number."""
    history = source.history
    gains = {trial.number: gain for trial in history if (gain := trial.suggestion.get("gain")) is not None}
    if not gains:
        return empty_view("chart", TITLE, nothing_watched(source), history) | {"applies": False}
    rows = spread_out(np.array(sorted(gains)))
    values = np.array([gains[row] for row in rows.tolist()])
    positive = values[values > 0.0]
    log = is_wide(positive)
    lines = [series("expected gain", "gain", "line", rows, np.where(values > 0.0, values, np.nan) if log else values)]
    last = rounded(gains[max(gains)], 3)
    caption = f"No stopping rule has checked a number; the last suggestion expects a gain of {last}."
    return make_view(
        "chart", "Expected gain of each suggestion", caption, history, series=lines, shown=len(rows),
        x=axis("trial", [0.0, float(max(len(history) - 1, 1))], whole=True, zero=True),
        y=axis("expected gain", (positive if log else values).tolist(), log=log, zero=not log),
    )  # fmt: skip
