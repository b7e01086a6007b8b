"""How far the bound is from the true regret, along a run (figures 2 and 9), and how much regret is left at the stop (5d)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.termination.cases import Case
from benchmarks.termination.measures import regrets
from benchmarks.termination.rules import Rule, numbers

SHARES = {"top20": "top 20 %", "paper": "top 50 %", "top100": "100 %"}
BETAS = {"paper": "beta / 5", "beta_full": "beta"}
SHOWN = ("fcnet_naval", "bore")  # the paper's own choice for both figures


def shown(cases: Sequence[Case]) -> tuple[str, str] | None:
    """The problem and searcher of the figures: the paper's choice, or else the first that is there."""
    there = [(case.recording.problem, case.recording.method) for case in cases if case.optimum is not None and case.series]
    return SHOWN if SHOWN in there else next(iter(there), None)


def differences(cases: Sequence[Case], which: tuple[str, str], variants: Sequence[str]) -> dict[str, Any]:
    """Bound less true regret by step: median and 20 and 80 % quantiles over seeds, and how often it is negative."""
    outcome: dict[str, Any] = {}
    for name in variants:
        mine = [case for case in cases if case.recording.key[:2] == which and name in case.series]
        if mine:
            steps = mine[0].series[name].steps
            gaps = np.array([numbers(c.series[name]) - regrets(c.recording.values, steps, float(c.optimum or 0.0)) for c in mine])
            low, middle, high = np.quantile(gaps, [0.2, 0.5, 0.8], axis=0)
            outcome[name] = {
                "steps": steps, "median": middle.tolist(), "low": low.tolist(), "high": high.tolist(),
                "negative": int((gaps < 0).sum()), "of": int(gaps.size), "runs": len(mine),
            }  # fmt: skip
    return outcome


def changes(cases: Sequence[Case], which: tuple[str, str], rules: Sequence[Rule]) -> dict[str, list[float]]:
    """Figure 2b: RYC of every run of that problem and searcher, by rule."""
    mine = [case for case in cases if case.recording.key[:2] == which]
    found = {rule.label: [one.ryc for case in mine if (one := case.under(rule)) is not None] for rule in rules}
    return {label: values for label, values in found.items() if values}


def left(cases: Sequence[Case], rules: Sequence[Rule]) -> dict[str, list[float]]:
    """Figure 5d: the true regrets at the stop, by rule."""
    found: dict[str, list[float]] = {}
    for rule in rules:
        judged = [one for case in cases if (one := case.under(rule)) is not None]
        found[rule.label] = [one.regret for one in judged if one.stopped and np.isfinite(one.regret)]
    return {label: values for label, values in found.items() if values}
