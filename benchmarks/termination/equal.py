"""Better at the same saving? A rule against a family of rules that can save as much or as little as one likes.

A family, patience with i = 5, 10, ..., 100 or Optuna's bound with ever larger thresholds, is a curve of mean RYC over mean RTC;
it begins at (0, 0), never stopping. A rule is compared with the point of the curve, by linear interpolation, at its own mean
RTC; beyond the curve's end, with the end, which is said. The intervals resample problems and runs, of rule and family together.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.termination import optuna_peer, resampling
from benchmarks.termination.cases import Case
from benchmarks.termination.resampling import Array
from benchmarks.termination.rules import Rule, below, waiting, within_folds
from benchmarks.termination.summary import judged_by_problem, success

PATIENCE = tuple(range(5, 101, 5))
TOLERANCES = tuple(float(level) for level in np.logspace(-6, 0, 25))
FACTORS = tuple(float(factor) for factor in np.logspace(-3, 2, 21))


def patience_family() -> list[Rule]:
    return [waiting(f"Conv_{i}", i) for i in PATIENCE]


def optuna_family(crossval: bool) -> list[Rule]:
    if crossval:
        return [within_folds(f"optuna_{factor:g}", "optuna", factor) for factor in FACTORS]
    return [below(f"optuna_{level:g}", "optuna", level) for level in TOLERANCES]


def columns(cases: Sequence[Case], rules: Sequence[Rule]) -> list[Array]:
    """By problem, (runs, 2 rules): RTC and RYC of each rule, all rules on the same runs."""
    found = [judged_by_problem(cases, rule) for rule in rules]
    samples = []
    for name in found[0]:
        by_run = zip(*(judged[name] for judged in found), strict=True)
        samples.append(np.array([[number for one in row for number in (one.rtc, one.ryc)] for row in by_run]))
    return samples


def on_curve(means: Array) -> tuple[float, float]:
    """RTC of the rule (the first two means), and its RYC less that of the family (the others) at that RTC."""
    x, y = np.append(means[2::2], 0.0), np.append(means[3::2], 0.0)
    order = np.lexsort((y, x))
    return float(means[0]), float(means[1] - np.interp(means[0], x[order], y[order]))


def against(cases: Sequence[Case], rule: Rule, family: Sequence[Rule]) -> dict[str, Any]:
    """RYC of a rule less RYC of the family at the rule's RTC: positive is better. {} if there is nothing to compare."""
    needed = {one.variant for one in (rule, *family) if one.variant is not None}
    shared = [case for case in cases if needed <= set(case.series)]
    if not shared:
        return {}
    samples = columns(shared, [rule, *family])
    means = np.mean([sample.mean(axis=0) for sample in samples], axis=0)
    return {
        "runs": len(shared),
        "rtc": round(float(means[0]), 4),
        "ryc": round(float(means[1]), 4),
        "difference": resampling.figure(samples, lambda drawn: on_curve(drawn)[1], digits=5),
        "beyond_the_curve": bool(means[0] > means[2::2].max()),
    }


def against_patience(cases: Sequence[Case], rules: Sequence[Rule]) -> dict[str, Any]:
    family = patience_family()
    return {rule.label: found for rule in rules if rule.variant is not None and (found := against(cases, rule, family))}


def against_optuna(cases: Sequence[Case], rules: Sequence[Rule], crossval: bool) -> dict[str, Any]:
    """On the runs that Optuna's bound was computed for, every rule asked as seldom as it was; success by tolerance of both."""
    family = optuna_family(crossval)
    shared = [case.thinned(optuna_peer.EVERY) for case in cases if "optuna" in case.series]
    by_label = {rule.label: rule for rule in rules}
    outcome: dict[str, Any] = {}
    for rule in rules:
        if rule.variant in (None, "optuna") or not (found := against(shared, rule, family)):
            continue
        if rule.tolerance is not None and (theirs := by_label.get(f"optuna_{rule.tolerance:g}")) is not None:
            same = [case for case in shared if rule.variant in case.series]
            found["success"] = success(judged_by_problem(same, rule), rule.tolerance)
            found["success_of_optuna"] = success(judged_by_problem(same, theirs), rule.tolerance)
        outcome[rule.label] = found
    return outcome
