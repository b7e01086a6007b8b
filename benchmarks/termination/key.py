"""The few numbers that decide whether stopping does what it is meant to do, beside what was aimed at."""

from typing import Any

from benchmarks.termination import catalog
from benchmarks.termination.rules import FACTORS, TOLERANCES
from benchmarks.termination.variants import OURS

SUCCESS = 0.95  # share of stopped runs within the tolerance, at every tolerance
CV_RYC, CV_RTC = -0.004, {"rf": 0.32, "xgb": 0.22}


def value(found: dict[str, Any] | None) -> float | None:
    return found["value"] if found else None


def by_tolerance(report: dict[str, Any], variant: str) -> dict[str, Any]:
    """Success rate and stopped runs against the target, and against the paper's rule."""
    rules, outcome = report["rules"]["all"], {}
    for level in TOLERANCES:
        found, paper = rules.get(f"{variant}_{level:g}"), rules.get(f"paper_{level:g}")
        if found and paper:
            rate = value(found.get("success"))
            share, theirs = found["stopped"]["value"], paper["stopped"]["value"]
            outcome[f"{level:g}"] = {
                "success": found.get("success") or None,
                "stopped": share,
                "stopped_by_paper": theirs,
                "met": None if rate is None else rate >= SUCCESS and share >= theirs,
            }
    return outcome


def better(found: dict[str, Any]) -> dict[str, Any]:
    """A difference of RYC at equal RTC; where nothing is saved there is nothing to compare."""
    difference = found["difference"]
    return {"rtc": found["rtc"], "ryc_gained": difference, "met": difference["value"] > 0 if found["rtc"] > 0 else None}


def compared(report: dict[str, Any], part: str, labels: list[str]) -> dict[str, Any]:
    return {label: better(report[part][label]) for label in labels if label in report[part]}


def coverage(report: dict[str, Any], labels: list[str]) -> dict[str, Any]:
    """Success against Optuna's on the same runs, or no failure at all; with no stop there is none, and nothing is claimed."""
    outcome = {}
    for label in labels:
        found = report["against_optuna"].get(label, {})
        ours, theirs = value(found.get("success")), value(found.get("success_of_optuna"))
        if "success" in found:
            met = None if ours is None or theirs is None else ours > theirs or ours == 1
            outcome[label] = {"ours": ours, "optuna": theirs, "met": met}
    return outcome


def targets(suite: str, report: dict[str, Any]) -> dict[str, Any]:
    """By variant of ours: each target, what was reached, and whether that is enough."""
    crossval, outcome = suite in catalog.CROSSVAL, {}
    for variant in OURS:
        labels = [f"{variant}_{level:g}" for level in (FACTORS if crossval else TOLERANCES)]
        labels = [label for label in labels if label in report["rules"]["all"]]
        if not labels:
            continue
        mine: dict[str, Any] = {
            "against_patience": compared(report, "against_patience", labels),
            "against_optuna": compared(report, "against_optuna", labels),
        }
        if crossval:
            found = {label: report["rules"]["all"][label] for label in labels}
            mine["saving"] = {
                label: {
                    "ryc": one["ryc"], "rtc": one["rtc"], "aim": [CV_RYC, CV_RTC[suite]],
                    "met": one["ryc"]["value"] >= CV_RYC and one["rtc"]["value"] >= CV_RTC[suite],
                }
                for label, one in found.items()
            }  # fmt: skip
        else:
            mine["success"] = by_tolerance(report, variant) | {"aim": SUCCESS}
            mine["coverage_against_optuna"] = coverage(report, labels)
        outcome[variant] = mine
    return outcome
