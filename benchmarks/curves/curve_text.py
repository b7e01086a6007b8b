"""Learning curves in tables, for docs/benchmarks.md: from benchmarks/results/curves.

python -m benchmarks.curves.curve_text
"""

import math
from pathlib import Path

from benchmarks.cost_aware import lines
from benchmarks.curves import compare, figure, models, planted, timing, traps
from benchmarks.curves.ledger import SHARES
from benchmarks.marked_text import fill

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"
NAMES = {
    "full": "no fidelity", "ends": "told at the end of a run", "reports": "every epoch reported", "resumable": "runs can go on",
    "hyperband": "`Hyperband`, our recommendation", "hyperband_observed": "`Hyperband`", "asha": "ASHA", "boca": "`BOCA`",
    "optuna_hyperband": "Optuna TPE + Hyperband", "optuna_asha": "Optuna TPE + successive halving",
    "optuna_gp": "Optuna GPSampler, no fidelity", "smac": "SMAC, multi-fidelity",
}  # fmt: skip
OURS = "reports"  # the default where curves are reported
HEAD = " | ".join(f"{share:.0%}" for share in SHARES)


def tables_text(folder: Path) -> list[str]:
    """Regret on the reporting tables; methods with fewer runs than the others are in a second table, on the runs they share.

    No table is without OURS: what other methods reach is said beside what it reaches on the same runs.
    """
    found = []
    names = compare.names("reporting")
    counts = {method: complete_seeds(folder / f"{method}.jsonl", names) for method in compare.METHODS}
    for count in sorted({count for count in counts.values() if 0 < count <= (counts[OURS] or math.inf)}, reverse=True):
        judged = compare.judge(folder, names, [method for method in counts if counts[method] >= count])
        if not judged["runs"]:
            continue
        found += [f"{judged['tables']} tables, {judged['runs']} runs of each method:", ""]
        found += [
            f"| | {HEAD} | cost to reach the last of *no fidelity*, median (worst) | s |",
            "|---|" + "---|" * (len(SHARES) + 2),
        ]
        for method, each in judged["methods"].items():
            cells = " | ".join("" if math.isnan(regret) else f"{regret:.3f}" for regret in each["regrets"])
            costs = ["not reached" if math.isinf(share) else f"{share:.3g}" for share in each["reached"] or ()]
            cost = f"{costs[0]} ({costs[1]})" if costs else ""
            found.append(f"| {NAMES[method]} | {cells} | {cost} | {each['seconds']:.0f} |")
        found.append("")
    return found


def complete_seeds(path: Path, names: list[str]) -> int:
    """Of how many seeds every table has a row."""
    known = {(row["table"], row["seed"]) for row in lines.read(path)}
    return sum(all((name, seed) in known for name in names) for seed in {seed for _, seed in known})


def traps_text(folder: Path) -> list[str]:
    """Regret of each trap at a quarter and at the end; methods with fewer seeds than the others are in a second table."""
    counts = {method: complete_seeds(folder / f"{method}.jsonl", list(planted.PROBLEMS)) for method in traps.METHODS}
    found = []
    for count in sorted({count for count in counts.values() if count}, reverse=True):
        methods = [method for method in counts if counts[method] >= count]
        if len(methods) > 1:
            found += [*traps_table(folder, methods), ""]
    return found[:-1]


def traps_table(folder: Path, methods: list[str]) -> list[str]:
    """On the seeds that all of these methods have."""
    found = [f"| trap | seeds | {' | '.join(NAMES[method] for method in methods)} |", "|---|---|" + "---|" * len(methods)]
    failed: list[str] = []
    for trap in planted.PROBLEMS:
        count, regrets = traps.judge(folder, trap, methods)
        if not count:
            continue
        places = [SHARES.index(share) for share in traps.JUDGED]
        cells = [", ".join(f"{regrets[m][place]:.3f}" for place in places) if m in regrets else "" for m in methods]
        found.append(f"| {trap} | {count} | {' | '.join(cells)} |")
        failed += traps.failures(trap, regrets)
    return [*found, "", "Worse than the rule allows: " + ("; ".join(failed) if failed else "none") + "."]


def figure_text(folder: Path) -> list[str]:
    """Medians of the runs behind the picture, at the end."""
    found = []
    for panel, wanted in (("cnn", list(figure.cnn_methods())), ("kernel", list(figure.KERNEL_METHODS))):
        for method in wanted:
            costs, regrets = figure.lines_of(panel, folder / panel, method)
            if costs is not None:
                found.append(figure.row_text(panel, method, costs, regrets))
    head = ["| | | runs | median regret at 5%, 20% and all of the budget |", "|---|---|---|---|"]
    return [*head, *found] if found else []


def text() -> str:
    """All of it, as far as there are rows."""
    parts = [
        ("**On recorded learning curves**, regret at shares of the budget.", tables_text(compare.RESULTS / "reporting")),
        ("**Traps**, regret at a quarter and at the end of the budget.", traps_text(compare.RESULTS / "traps")),
        ("**The paper's figure 2**, from runs of this library.", figure_text(figure.RESULTS)),
        ("**Time.**", [line for line in [timing.timing_text()] if line]),
        ("**Models of curves** that predict the ends of runs, on the tuning tables.", models.table_text(models.RESULTS)),
    ]  # fmt: skip
    return "\n".join("\n".join([title, "", *body, ""]) for title, body in parts if body).rstrip()


if __name__ == "__main__":
    fill(PAGE, "curves", text())
