"""The reports as plain text."""

from typing import Any

from benchmarks.termination import catalog, published, searchers

HELD_OUT = "test error: the last training seed of each config, which the search never saw (these tables store no test error)"
NOTES = {
    "fcnet": HELD_OUT,
    "hpobench": HELD_OUT,
    "nas201": "RYC by validation errors, as in the paper, so that none is positive",
    "rf": "test error: 20 % of the rows, drawn by the seed",
    "xgb": "test error: 20 % of the rows, drawn by the seed",
}


def _cell(found: dict[str, float] | None, digits: int = 3) -> str:
    return f"{found['value']:.{digits}f} [{found['low']:.{digits}f}, {found['high']:.{digits}f}]" if found else "-"


def overview(suite: str, report: dict[str, Any]) -> str:
    """Every rule over all searchers."""
    runs = ", ".join(f"{method} {count}" for method, count in report["runs"].items())
    lines = [f"{catalog.TITLES[suite]}, all searchers, mean [95 %]; runs: {runs}", f"  {NOTES[suite]}"]
    lines.append(f"  {'':<18}{'RTC':>22}{'by trials':>10}{'RYC':>25}{'stopped':>9}{'within tolerance':>23}{'RYC > 0':>9}")
    for label, found in report["rules"]["all"].items():
        lines.append(
            f"  {label:<18}{_cell(found['rtc']):>22}{found['rtc_trials']['value']:>10.3f}{_cell(found['ryc'], 4):>25}"
            f"{found['stopped']['value']:>9.2f}{_cell(found.get('success')):>23}{found['overfitting']['share']:>9.2f}"
        )
    for name, found in report["calibration"]["all"].items():
        lines.append(
            f"  {name}: bound below the true regret at {found['negative']} of {found['steps']} steps, {_cell(found['below'])}"
        )
    return "\n".join(lines)


def table(suite: str, report: dict[str, Any]) -> str:
    """Tables 3, 4 and 5: RTC and RYC by problem, the paper's figure behind each; by BORE, its choice, where it is there."""
    group = next((method for method in ("bore", "gp") if method in report["rules"]), "all")
    printed = published.TABLES.get(suite, {})
    rules = report["rules"][group]
    crossval = suite in catalog.CROSSVAL
    names = ["all"] if crossval else sorted({name for found in rules.values() for name in found["by_problem"]})
    number, searcher = published.NUMBERS.get(suite, "By problem"), searchers.TITLES.get(group, group)
    title = f"{number}, {catalog.TITLES[suite]}, {searcher}: RTC, RYC"
    lines = [title + (" (the paper's)" if printed else ""), f"  {NOTES[suite]}"]
    lines.append(f"  {'':<18}" + "".join(f"{name:>36}" for name in names))
    for label, found in rules.items():
        cells = ""
        for name in names:
            ours = {key: found[key]["value"] for key in ("rtc", "ryc")} if name == "all" else found["by_problem"].get(name)
            theirs = printed.get(label, {}).get(name)
            cell = f"{ours['rtc']:.3f} {ours['ryc']:+.3f}" if ours else "-"
            cells += f"{cell + (f' ({theirs[0]:.3f} {theirs[1]:+.3f})' if theirs else ''):>36}"
        lines.append(f"  {label:<18}{cells}")
    return "\n".join(lines)


def stops(report: dict[str, Any]) -> str:
    """The legend of figure 5d: stopped runs, and those whose true regret was above the tolerance."""
    lines = ["Stopped runs and those left with more than the tolerance (the paper's, of 200)"]
    for label, found in report["rules"]["all"].items():
        if "wrong" in found:
            theirs = published.STOPPED_AND_WRONG.get(label.removeprefix("paper_"))
            behind = f" ({theirs[0]}, {theirs[1]})" if theirs else ""
            exact = f", within {_cell(found['success_exact'])} (exact)" if "success_exact" in found else ""
            lines.append(f"  {label:<18}{found['stopped_runs']:>6} of {found['runs']}, wrong {found['wrong']}{exact}{behind}")
    return "\n".join(lines)


def adjusted(report: dict[str, Any]) -> str:
    """Cost-adjusted regret by rule and lambda."""
    rules = {label: found["cost_adjusted"] for label, found in report["rules"]["all"].items() if "cost_adjusted" in found}
    if not rules:
        return ""
    weights = list(next(iter(rules.values())))
    lines = ["Cost-adjusted regret (regret / gain + lambda * cost / cost of all), lower is better"]
    lines.append(f"  {'lambda':<18}" + "".join(f"{weight:>10}" for weight in weights))
    lines += [f"  {label:<18}" + "".join(f"{found[weight]:>10.4f}" for weight in weights) for label, found in rules.items()]
    return "\n".join(lines)


def equal(report: dict[str, Any]) -> str:
    """RYC gained at equal RTC."""
    lines = ["RYC less that of the family at equal RTC, [95 %]; positive is better"]
    for part, title in (("against_patience", "patience, i = 5..100"), ("against_optuna", "Optuna's bound, same runs and steps")):
        lines.append(f"  against {title}")
        for label, found in report[part].items():
            end = "  (saves more than the family can)" if found["beyond_the_curve"] else ""
            lines.append(f"    {label:<18}RTC {found['rtc']:.3f}  {_cell(found['difference'], 4):>28}{end}")
    return "\n".join(lines)


def targets(suite: str, found: dict[str, Any]) -> str:
    """What was aimed at, and what was reached."""
    lines = [f"Targets, {catalog.TITLES[suite]}"]
    for variant, parts in found.items():
        for part, entries in parts.items():
            for label, entry in entries.items():
                if isinstance(entry, dict):
                    met = {True: "met", False: "MISSED", None: "open"}[entry["met"]]
                    shown = {name: item for name, item in entry.items() if name != "met"}
                    numbers = ", ".join(f"{name} {_short(item)}" for name, item in shown.items())
                    lines.append(f"  {variant:<10}{part:<26}{label:<16}{met:<8}{numbers}")
    return "\n".join(lines)


def _short(item: Any) -> str:
    if isinstance(item, dict):
        return _cell(item, 4) if item else "-"
    return "-" if item is None else str(item)
