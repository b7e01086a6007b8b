"""The report as tables of text."""

from collections.abc import Iterable, Mapping
from typing import Any

WIDTH = 17


def _number(value: Any, digits: int = 3) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _row(label: str, cells: Iterable[str]) -> str:
    return f"  {label:<24}" + "".join(f"{cell:>{WIDTH}}" for cell in cells)


def _means(title: str, entries: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """One column for each mark: the mean with the half width of its interval."""
    marks = list(entries)
    methods = list(next(iter(entries.values()), {}))
    found = [title, _row("", marks)]
    for method in methods:
        cells = [f"{e['mean']:.3f} ±{(e['high'] - e['low']) / 2:.3f}" for e in (entries[mark][method] for mark in marks)]
        found.append(_row(method, cells))
    return found


def _families(title: str, entries: Mapping[str, Mapping[str, Mapping[str, float]]]) -> list[str]:
    marks = list(entries)
    found = [title]
    for family, methods in next(iter(entries.values()), {}).items():
        found.append(_row(family, marks))
        found += [_row(f"  {method}", (_number(entries[mark][family][method]) for mark in marks)) for method in methods]
    return found


def _tests(entries: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The p-values of being behind EI, by run and by problem."""
    marks = list(entries)
    methods = list(next(iter(entries.values()), {}))
    if not methods:
        return []
    found = ["Against ei: p-value of being behind it, by run / by problem (one-sided signed-rank test)", _row("", marks)]
    for method in methods:
        tests = [entries[mark][method]["behind"] for mark in marks]
        found.append(_row(method, (f"{_number(t['by_run'])} / {_number(t['by_problem'])}" for t in tests)))
    return found


def _head(title: str, report: Mapping[str, Any]) -> list[str]:
    left_out = f"; without runs: {', '.join(report['without_runs'])}" if report.get("without_runs") else ""
    if not report["runs"]:
        return [f"{title}: no runs that all methods have{left_out}"]
    seeds = report["seeds"]
    return [
        f"{title}: {report['problems']} problems, {seeds[0]} to {seeds[1]} seeds, {report['runs']} runs of each method{left_out}",
        "",
    ]


def trials(report: Mapping[str, Any]) -> str:
    found = _head("Budget in trials", report)
    if not report["runs"]:
        return "\n".join(found)
    found += _means("Normalised regret after so many evaluations, mean ± half of the 95 % interval", report["regret"])
    found += ["", *_families("By family", report["regret_by_family"]), "", *_tests(report["against_ei"])]
    costs = {name: entry for name, entry in report["cost_of_60_over_random"].items() if entry}
    found += ["", *_means("Cost of 60 evaluations over random search's", costs)]
    if report["cost_over_ei"]:
        found += ["", "Cost of 80 evaluations over ei's, where costs differ", _row("", ("mean", "median"))]
        found += [_row(m, (_number(e["mean"]), _number(e["median"]))) for m, e in report["cost_over_ei"].items()]
    return "\n".join(found)


def cost(report: Mapping[str, Any]) -> str:
    found = _head("Budget in cost", report)
    if not report["runs"]:
        return "\n".join(found)
    found += _means("Normalised regret at a share of the budget, mean ± half of the 95 % interval", report["regret"])
    found += ["", *_families("By family", report["regret_by_family"]), "", *_tests(report["against_ei"])]
    for family, qualities in report["cost_to"].items():
        found += ["", f"Cost to a normalised regret, as a share of the budget; never reached [exact 95 %]: {family}"]
        found.append(_row("", [head for q in qualities for head in (f"to {q}: quartile", "median", "never", "")]))
        for method in next(iter(qualities.values())):
            cells = []
            for entry in (methods[method] for methods in qualities.values()):
                never = entry["never"]
                cells += [_number(entry["quartile"]), _number(entry["median"]), _number(never["share"])]
                cells.append(f"[{never['low']:.3f}, {never['high']:.3f}]")
            found.append(_row(method, cells))
    found += ["", "Median cost over the lowest median of all other methods", _row("", report["cost_to_over_best_other"])]
    for method in report["ended_by_cap"]:
        ratios = (entry.get(method, {}).get("ratio") for entry in report["cost_to_over_best_other"].values())
        found.append(_row(method, map(_number, ratios)))
    found += ["", "Runs ended by the cap on evaluations, with budget left", _row("", ("share", "exact 95 %"))]
    for method, entry in report["ended_by_cap"].items():
        found.append(_row(method, (_number(entry["share"]), f"[{entry['low']:.3f}, {entry['high']:.3f}]")))
    return "\n".join(found)


def whole(report: Mapping[str, Any]) -> str:
    """The tables of every kind that the report holds."""
    return "\n\n".join({"trials": trials, "cost": cost}[kind](report[kind]) for kind in ("trials", "cost") if kind in report)
