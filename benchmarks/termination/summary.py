"""What each rule saved and cost on a suite, over all searchers and by searcher and problem."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.ranks import bootstrap, exact_interval
from benchmarks.termination import resampling
from benchmarks.termination.cases import Case
from benchmarks.termination.measures import Judged, regrets
from benchmarks.termination.rules import WEIGHTS, Rule, numbers
from benchmarks.termination.variants import VARIANTS

MEASURES = ("rtc", "rtc_trials", "ryc", "stopped")
DIGITS = 4


def judged_by_problem(cases: Sequence[Case], rule: Rule) -> dict[str, list[Judged]]:
    found: dict[str, list[Judged]] = {}
    for case in cases:
        if (judged := case.under(rule)) is not None:
            found.setdefault(case.recording.problem, []).append(judged)
    return found


def means(found: dict[str, list[Judged]]) -> dict[str, Any]:
    """RTC by cost and by trials, RYC and the share of stopped runs: 95 % intervals, and deviations over runs for the pictures."""
    samples = [np.array([[float(getattr(one, name)) for name in MEASURES] for one in runs]) for runs in found.values()]
    middle, low, high = bootstrap(samples)
    spread = np.concatenate(samples).std(axis=0)
    return {
        name: {
            "value": round(float(middle[i]), DIGITS),
            "low": round(float(low[i]), DIGITS),
            "high": round(float(high[i]), DIGITS),
            "std": round(float(spread[i]), DIGITS),
        }
        for i, name in enumerate(MEASURES)
    }


def cost_adjusted(found: dict[str, list[Judged]]) -> dict[str, float]:
    """The mean cost-adjusted regret by lambda, over problems and runs; {} where the optimum is not known."""
    runs = [[one for one in judged if np.isfinite(one.left)] for judged in found.values()]
    if not all(runs):
        return {}
    return {
        f"{weight:g}": round(float(np.mean([np.mean([one.cost_adjusted(weight) for one in each]) for each in runs])), DIGITS)
        for weight in WEIGHTS
    }


def exact_share(successes: int, count: int) -> dict[str, float]:
    """A share with its exact 95 % interval."""
    low, high = exact_interval(successes, count)
    return {"value": round(successes / count, DIGITS), "low": round(low, DIGITS), "high": round(high, DIGITS)}


def success(found: dict[str, list[Judged]], tolerance: float) -> dict[str, Any]:
    """The share of stopped runs whose true regret is within the tolerance; {} if none was stopped."""
    samples = [np.array([[one.stopped and one.within(tolerance), one.stopped] for one in runs], float) for runs in found.values()]
    return resampling.figure(samples, lambda mean: float(mean[0] / mean[1]) if mean[1] > 0 else float("nan"))


def entry(cases: Sequence[Case], rule: Rule) -> dict[str, Any]:
    """One rule on some runs; {} where nothing was computed for it."""
    found = judged_by_problem(cases, rule)
    if not found:
        return {}
    everyone = [one for runs in found.values() for one in runs]
    stopped = [one for one in everyone if one.stopped]
    gains = [one.ryc for one in everyone if one.ryc > 0]
    outcome: dict[str, Any] = {"runs": len(everyone), "stopped_runs": len(stopped), **means(found)}
    outcome["overfitting"] = {
        "runs": len(gains), "share": round(len(gains) / len(everyone), DIGITS),
        "mean_ryc": round(float(np.mean(gains)), DIGITS) if gains else 0.0,
    }  # fmt: skip
    if rule.tolerance is not None and any(np.isfinite(one.regret) for one in stopped):
        outcome["success"] = success(found, rule.tolerance)
        outcome["wrong"] = sum(not one.within(rule.tolerance) for one in stopped)
        outcome["success_exact"] = exact_share(len(stopped) - outcome["wrong"], len(stopped))
    if adjusted := cost_adjusted(found):
        outcome["cost_adjusted"] = adjusted
    outcome["by_problem"] = {
        name: {measure: round(float(np.mean([getattr(one, measure) for one in runs])), DIGITS) for measure in ("rtc", "ryc")}
        for name, runs in found.items()
    }
    return outcome


def calibration(cases: Sequence[Case]) -> dict[str, Any]:
    """By variant, the share of steps at which the bound lies below the true regret, with its interval over runs."""
    outcome: dict[str, Any] = {}
    for name, variant in VARIANTS.items():
        by_problem: dict[str, list[list[float]]] = {}
        negative = steps = 0
        for case in cases if variant.bound else ():
            if name in case.series and case.optimum is not None:
                series = case.series[name]
                under = numbers(series) < regrets(case.recording.values, series.steps, case.optimum) * (1 - 1e-9)
                by_problem.setdefault(case.recording.problem, []).append([float(under.mean())])
                negative, steps = negative + int(under.sum()), steps + len(under)
        if by_problem:
            share = resampling.figure([np.array(runs) for runs in by_problem.values()], lambda mean: float(mean[0]))
            outcome[name] = {"below": share, "negative": negative, "steps": steps}
    return outcome


def summarise(cases: Sequence[Case], rules: Sequence[Rule]) -> dict[str, Any]:
    """Every rule over all searchers ("all") and by searcher."""
    methods = list(dict.fromkeys(case.recording.method for case in cases))
    groups = {"all": list(cases)} | {method: [case for case in cases if case.recording.method == method] for method in methods}
    return {
        "rules": {
            group: {rule.label: found for rule in rules if (found := entry(members, rule))} for group, members in groups.items()
        },
        "calibration": {group: calibration(members) for group, members in groups.items()},
        "runs": {method: len(groups[method]) for method in methods},
    }
