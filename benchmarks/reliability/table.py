"""One table of all that was tried: attack, times tried, survived, by storage. For the terminal and for docs/reliability.md."""

from pathlib import Path
from typing import Any

from benchmarks.marked_text import fill
from benchmarks.reliability import attacks, items, moment_table
from benchmarks.reliability.suite import ROOT, Row

PAGE = ROOT / "docs" / "reliability.md"
STORAGES = {"none": "no storage", "sqlite": "SQLite", "postgresql": "PostgreSQL"}
MARKER = "reliability table"
EMPTY, OURS = "not tried", "shoestring"


def order(number: int | str) -> tuple[int, int, str]:
    """Items by their numbers, then attacks by theirs, then what has a name."""
    text = str(number)
    if text.isdigit():
        return 0, int(text), ""
    return (1, int(text[1:]), "") if text[:1] == "a" and text[1:].isdigit() else (2, 0, text)


def rows_of(found: dict[str, Any]) -> list[Row]:
    """All rows of a report that count what was tried, whichever part they are in."""
    parts = [part for name, part in found.items() if name not in ("machine", "commits", "throughput") and isinstance(part, dict)]
    rows = [row for part in parts for row in part.values() if isinstance(row, dict) and {"item", "tried", "survived"} <= set(row)]
    return [row for row in rows if row.get("attack") != "none"]  # a drill without an attack is there for comparison


def sections(found: dict[str, Any]) -> dict[str, list[Row]]:
    """The rows in groups, with an empty row for what was never tried."""
    rows = rows_of(found)
    known = {str(each.number): each for each in (*items.ITEMS, *attacks.ATTACKS)}
    tried = {str(row["item"]) for row in rows}
    missing = [
        {"item": each.number, "what": each.what, "storage": "none", "tried": 0, "survived": 0, "note": each.note or EMPTY}
        for number, each in known.items()
        if number not in tried
    ]
    ordered = sorted([*rows, *missing], key=lambda row: order(row["item"]))
    groups: dict[str, list[Row]] = {"Known ways to fail": [], "Attacks from outside": [], "Kills and suspensions at random": []}
    for row in ordered:
        groups[list(groups)[order(row["item"])[0]]].append(row)
    return groups


def lines_of(rows: list[Row]) -> list[list[str]]:
    """A line for each attack: its number, what it is, and survived of tried on each storage."""
    merged: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        cells = merged.setdefault((str(row["item"]), row["what"]), {})
        cells[row["storage"]] = _cell(row)
    return [[number, what, *(cells.get(storage, "") for storage in STORAGES)] for (number, what), cells in merged.items()]


def _cell(row: Row) -> str:
    """Survived of tried, and what was wrong, of whatever kind: a single attack may do several kinds of harm."""
    wrong = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in row.get("wrong", {}).items() if count)
    counts = f"{row['survived']:,} of {row['tried']:,}" + (f" ({wrong})" if wrong else "")
    return str(row.get("note") or counts)


def totals(rows: list[Row]) -> list[str]:
    """The sums over Shoestring's rows: other libraries have theirs for comparison."""
    rows, counts = [row for row in rows if row.get("library", OURS) == OURS], []
    for storage in STORAGES:
        mine = [row for row in rows if row["storage"] == storage]
        counts.append(f"{sum(row['survived'] for row in mine):,} of {sum(row['tried'] for row in mine):,}")
    return ["", "**all of Shoestring**", *counts]


def text(found: dict[str, Any]) -> str:
    """The tables as Markdown."""
    out: list[str] = []
    for title, rows in sections(found).items():
        if not rows:
            continue
        head = " | ".join(STORAGES.values())
        line = "|---|---|" + "---|" * len(STORAGES)
        out += [f"## {title}", "", f"| | attack (in the cells: survived of tried) | {head} |", line]
        out += [f"| {' | '.join(_escaped(cell) for cell in line)} |" for line in (*lines_of(rows), totals(rows))]
        out.append("")
    out += moment_table.lines(found)
    commits = sorted({commit for part in found.get("commits", {}).values() for commit in part.values()})
    facts = found.get("machine", {})
    if facts:
        made = f" by commit {', '.join(commits)} (a plus: with later changes)" if commits else ""
        out.append(f"Made{made} on {facts['cpu_count']} cores of {facts['cpu_model']}, last on {facts['date'][:10]}.")
    return "\n".join(out)


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|")


def publish(found: dict[str, Any], page: Path | None) -> None:
    """Print the table; write it between the markers of the page."""
    print(text(found))
    if page is not None:
        fill(page, MARKER, text(found))
