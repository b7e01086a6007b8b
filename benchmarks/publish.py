"""Write the measured numbers into README.md, docs/benchmarks.md, docs/reliability.md and docs/architecture.md.

    python -m benchmarks.publish

The text between two markers is generated from benchmarks/results. So no number is copied by hand, and none stays when its
results change.
"""

import json
import textwrap
from pathlib import Path
from typing import Any

from benchmarks import cost_text, decision_text, fidelity_text, lookahead_text, problems, rows, scale_text, stop_text, summary
from benchmarks.curves import curve_text
from benchmarks.latency import RESULTS as LATENCY
from benchmarks.latency import SIZES
from benchmarks.marked_text import fill
from benchmarks.regret import FOLDERS
from benchmarks.reliability import table as survived
from benchmarks.walk import RESULTS as WALK
from benchmarks.walk import walk_text

ROOT = Path(__file__).parent.parent
OWN = LATENCY.with_name("latency_own.json")  # our own methods and rules against EI: quicker to repeat than the peers
LABELS = {
    "shoestring": "Shoestring",
    "optuna_gp": "Optuna GPSampler",
    "optuna_tpe": "Optuna TPE",
    "botorch": "BoTorch",
    "random": "random search",
}


def regret_summary() -> dict[str, Any]:
    folder, names = FOLDERS["reporting"], list(problems.SETS["reporting"])
    methods = [method for method in LABELS if method in rows.methods_in(folder)]
    stored = [row for method in methods for row in rows.read(folder, method) if row.problem in names]
    return summary.summarise(stored, {name: problems.load(name).optimum for name in names}, methods)


def rank_table(report: dict[str, Any], suffix: str) -> list[str]:
    ranks, regrets = report[f"average_rank{suffix}"], report[f"normalised_regret{suffix}"]
    points = list(ranks)
    lines = [
        "| | " + " | ".join(f"rank after {p} | regret" for p in points) + " |",
        "|---|" + "---|---|" * len(points),
    ]
    for method in sorted(ranks[points[-1]], key=lambda name: ranks[points[-1]][name]["mean"]):
        cells = []
        for point in points:
            entry = ranks[point][method]
            interval = f"{entry['mean']:.2f} ({entry['low']:.2f} to {entry['high']:.2f})"
            cells.append(f"{interval} | {regrets[point][method]:.3f}")
        lines.append(f"| {LABELS[method]} | " + " | ".join(cells) + " |")
    return lines


def regret_text(report: dict[str, Any]) -> str:
    seeds, count = report["common_seeds"], report["problems"]["without_botorch"]
    lines = [f"{count} problems, {seeds['without_botorch']} seeds, without BoTorch, which is slow:", ""]
    lines += rank_table(report, "_without_botorch")
    if "botorch" in report["seeds"]:
        lines += ["", f"With BoTorch, on the seeds that were run with it ({seeds['all']} or more on each problem):", ""]
        lines += rank_table(report, "")
    worse = [case for case in report["worse_than_random"] if case["method"] == "shoestring"]
    title = "Problems with a higher mean log-regret than random search (with a one-sided Mann-Whitney test):"
    lines += ["", title if worse else ""]
    lines += [f"{w['problem']} after {w['evaluations']} (p = {w['p']:.2f})" for w in worse] or [
        "Shoestring's mean log-regret after 20, 40 and 80 evaluations is not above that of random search on any problem."
    ]
    return "\n".join(lines)


def latency_text(report: dict[str, Any]) -> str:
    sizes = [str(n) for n in SIZES]
    lines = [
        "| milliseconds per suggestion | " + " | ".join(f"n = {n}" for n in sizes) + " |",
        "|---|" + "---|" * len(sizes),
    ]
    for state, libraries in report["median_ms"].items():
        for library, times in libraries.items():
            cells = " | ".join(f"{times[n]:.0f}" if times[n] >= 10 else f"{times[n]:.1f}" for n in sizes)
            lines.append(f"| {library}, {state} | {cells} |")
    for key, label in (("vs_optuna", "times faster than Optuna"), ("vs_botorch", "times faster than BoTorch")):
        lines.append(f"| **{label}** | " + " | ".join(f"{report[key][n]:.1f}" for n in sizes) + " |")
    lines.append("| share of a fit spent in LAPACK | " + " | ".join(f"{report['lapack_share'][n]:.2f}" for n in sizes) + " |")
    if "vs_ei_100" in report:
        shown = ", ".join(f"{name} {ratio:.1f}" for name, ratio in report["vs_ei_100"].items())
        lines += ["", f"Time of other suggestions at n = 100, as a multiple of that of EI: {shown}."]
    if "checks_100" in report:
        shown = ", ".join(f"{name.replace('_', ' ')} {ratio:.2f}" for name, ratio in report["checks_100"].items())
        lines += ["", f"Time of a stopping rule's check at n = 100, as a multiple of an EI suggestion: {shown}."]
    facts = report["machine"]
    lines += ["", f"One thread of {facts['cpu_model']}, {facts['date'][:10]}. Warm: after one more result. Cold: a new study."]
    return "\n".join(lines)


def short_text(latency: dict[str, Any]) -> str:
    """The few lines of the README: cost to a given quality, regret by trials, and the time of a suggestion."""
    lines = decision_text.short_text()
    if trials := decision_text.report().get("trials", {}).get("runs") and decision_text.report()["trials"]:
        lines += ["", "With a budget in trials, normalised regret after 20, 40 and 80 evaluations, and what they cost (that the"]
        lines += ["default is plain EI up to the 20th trial was decided after a first look at these problems):", ""]
        lines += decision_text.trials_table(trials)[:-2]
    warm, cold = latency["median_ms"]["warm"], latency["median_ms"]["cold"]
    lines += [
        "",
        f"One suggestion in ten dimensions after 100 results takes {warm['shoestring']['100']:.0f} ms, "
        f"{warm['optuna']['100'] / warm['shoestring']['100']:.0f} times faster than Optuna's GPSampler. In a new",
        f"study it takes {cold['shoestring']['100']:.0f} ms, {cold['botorch']['100'] / cold['shoestring']['100']:.0f} times "
        "faster than BoTorch, which starts anew each time.",
    ]
    if many := scale_text.short_text():
        lines += textwrap.wrap(many, 120)
    return "\n".join(lines)


def main() -> None:
    regret, latency = regret_summary(), json.loads(LATENCY.read_text())
    if OWN.exists():  # python -m benchmarks.latency --libraries shoestring --results benchmarks/results/latency_own.json
        latency |= {name: value for name, value in json.loads(OWN.read_text()).items() if name in ("vs_ei_100", "checks_100")}
    fill(ROOT / "README.md", "measured", short_text(latency))
    fill(ROOT / "docs" / "benchmarks.md", "regret", regret_text(regret))
    fill(ROOT / "docs" / "benchmarks.md", "latency", latency_text(latency))
    fill(ROOT / "docs" / "benchmarks.md", "decisions", decision_text.text())
    fill(ROOT / "docs" / "benchmarks.md", "costs", cost_text.text())
    fill(ROOT / "docs" / "benchmarks.md", "stops", stop_text.text())
    fill(ROOT / "docs" / "benchmarks.md", "lookahead", lookahead_text.text())
    fill(ROOT / "docs" / "benchmarks.md", "fidelity", fidelity_text.text())
    fill(ROOT / "docs" / "benchmarks.md", "curves", curve_text.text())
    fill(ROOT / "docs" / "benchmarks.md", "many", scale_text.many_text())
    fill(ROOT / "docs" / "benchmarks.md", "parallel", scale_text.parallel_text())
    fill(ROOT / "docs" / "benchmarks.md", "reliability", scale_text.reliability_text())
    fill(survived.PAGE, survived.MARKER, survived.text(scale_text.report("reliability")))
    fill(ROOT / "docs" / "architecture.md", "walk", walk_text(json.loads(WALK.read_text())))
    (FOLDERS["reporting"].parent / "regret.json").write_text(json.dumps(regret, indent=1) + "\n")


if __name__ == "__main__":
    main()
