"""The regret report as plain text."""

from typing import Any


def _block(report: dict[str, Any], suffix: str, title: str) -> list[str]:
    """One table: methods down, checkpoints across, the best average rank after the last checkpoint on top."""
    ranks, normalised = report[f"average_rank{suffix}"], report[f"normalised_regret{suffix}"]
    if not ranks:
        return [title, "  no problem has a seed that all of these methods share"]
    checkpoints = list(ranks)
    lines = [title, "  " + " " * 20 + "".join(f"{f'after {c}: rank':>24}{'regret':>9}" for c in checkpoints)]
    for method in sorted(ranks[checkpoints[-1]], key=lambda name: ranks[checkpoints[-1]][name]["mean"]):
        cells = ""
        for checkpoint in checkpoints:
            entry = ranks[checkpoint][method]
            interval = f"{entry['mean']:.2f} [{entry['low']:.2f}, {entry['high']:.2f}]"
            regret = normalised.get(checkpoint, {}).get(method)
            cells += f"{interval:>24}" + (f"{'-':>9}" if regret is None else f"{regret:>9.4f}")
        lines.append(f"  {method:<20}{cells}")
    return lines


def _worse(report: dict[str, Any]) -> list[str]:
    """Every case in which random search did better, with how sure that is."""
    cases = report["worse_than_random"]
    if not report["compared_with_random"]:
        return ["There is nothing to compare with random search."]
    if not cases:
        return ["No method has a higher mean log-regret than random search on any problem."]
    lines = [
        f"Higher mean log-regret than random search, {len(cases)} of {report['compared_with_random']} cases "
        "(* where Mann-Whitney p < 0.05, not corrected for their number):"
    ]
    for case in cases:
        mark = "*" if case["significant"] else " "
        lines.append(
            f" {mark}{case['method']:<20}{case['problem']:<28} after {case['evaluations']:>2}: "
            f"+{case['log_regret_excess']:.2f}, p = {case['p']:.3f}"
        )
    return lines


def as_text(report: dict[str, Any]) -> str:
    """The whole report; ranks carry 95 % intervals, regret is normalised (0 optimum, 1 random after ten)."""
    problems, seeds = report["problems"], report["common_seeds"]
    lines = _block(
        report, "", f"All methods, {problems['all']} problems, at least {seeds['all']} common seeds on each"
    )
    if any(method.startswith("botorch") for method in report["seeds"]):
        title = (
            f"Without botorch, {problems['without_botorch']} problems, "
            f"at least {seeds['without_botorch']} common seeds on each"
        )
        lines += ["", *_block(report, "_without_botorch", title)]
    lines += ["", *_worse(report), ""]
    lines.append("Seeds that a method has on every problem, and mean seconds in the optimizer a run:")
    for method, count in report["seeds"].items():
        lines.append(f"  {method:<20}{count:>4}{report['seconds_per_run'][method]:>10.2f} s")
    return "\n".join(lines)
