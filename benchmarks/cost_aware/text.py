"""The reports as plain text."""

from typing import Any


def _cell(entry: dict[str, float]) -> str:
    return f"{entry['value']:.2f} [{entry['low']:.2f}, {entry['high']:.2f}]"


def biopt(report: dict[str, Any], title: str) -> str:
    lines = [title]
    for group, against in report["against_ei"].items():
        lines.append(f"  {group}: per cent against EI after {report['evaluations']} evaluations, mean [95 %], median")
        titles = f"{'cost saved':>26}{'median':>8}{'accuracy lost':>26}{'median':>8}{'error up, median':>18}{'runs':>6}"
        lines.append(" " * 22 + titles)
        for label, entry in against.items():
            cells = "".join(
                f"{_cell(entry[measure]['mean']):>26}{entry[measure]['median']['value']:>8.2f}"
                for measure in ("cost_saved", "accuracy_lost")
            )
            up = f"{entry['loss_increase']['median']['value']:>18.2f}" if entry["loss_increase"] else f"{'-':>18}"
            lines.append(f"  {label:<20}{cells}{up}{entry['runs']:>6}")
    return "\n".join(lines)


def allocation(report: dict[str, Any]) -> str:
    lines = ["Optimal time allocation: average rank [95 %] at multiples of the least budget, and the share of capped runs"]
    for multiple, ranks in report["average_rank"].items():
        lines.append(f"  {multiple} times, {report['runs'][multiple]} runs of each")
        for label in sorted(ranks, key=lambda name: ranks[name]["mean"]):
            entry = ranks[label]
            interval = f"{entry['mean']:.2f} [{entry['low']:.2f}, {entry['high']:.2f}]"
            lines.append(f"    {label:<16}{interval:>22}{report['capped'][multiple][label]:>8.2f}")
    return "\n".join(lines)


def errors(table: dict[str, Any], title: str) -> str:
    """RMSE of log cost: models down, sizes across where there are any."""
    lines = [title]
    for label, entry in table.items():
        if "mean" in entry:
            lines.append(f"  {label:<24}{_cell(entry['mean']):>22}  median {entry['median']['value']:.2f}")
        else:
            lines.append(f"  {label:<12}" + "".join(f"{f'{size}: ' + _cell(cell['mean']):>26}" for size, cell in entry.items()))
    return "\n".join(lines)
