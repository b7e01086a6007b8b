"""The table of kills and suspensions at chosen moments: both libraries side by side, with all that went wrong."""

from typing import Any

from benchmarks.reliability.suite import Row

TITLE = "The same kills and suspensions in detail, beside Optuna"
STORAGES = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
LIBRARIES = {"shoestring": "Shoestring", "optuna": "Optuna"}
ATTACKS = {"kill": "kill -9", "suspend": "suspended", "none": "none"}
COUNTS = {
    "lost": "lost", "doubled": "doubled", "thrown_away": "thrown away", "forgotten": "forgotten", "left_open": "left open",
    "errors": "errors", "stuck": "stuck", "slow_recovery": "late",
}  # fmt: skip
LEGEND = """\
Eight workers, a lease of {lease:g} s (Optuna: a heartbeat every second, a grace period of {lease:g} s, retries). Each attack
falls while a worker starts, asks, saves a checkpoint, reports or closes; a suspension lasts {shortest:g} to {longest:g} s.

- lost: reported, and not stored with that value
- doubled: evaluated or reported by two workers under one number, or one config in two trials of which none was given up
- thrown away: evaluated by a worker that lives on, and not stored
- forgotten: the trial of an attacked worker, given up and not asked again; left open: it runs or waits at the end
- errors: exceptions in workers that were not killed
- stuck: calls that took longer than two leases; late: trials that were asked again later than that
- longest: the longest call, and the longest time from an attack until the trial was asked again, in seconds
- in a write: how often a suspended process was in the middle of a write to a SQLite file (no process can take this lock over);
  how many calls waited longer than two leases for that, and the longest. These calls are not counted as stuck.

The lines without an attack show what the machine itself does to the calls, since it was busy with other work."""


def lines(found: dict[str, Any]) -> list[str]:
    """The table as Markdown; nothing if there are no such rows."""
    rows: list[Row] = [row for row in found.get("moments", {}).values() if row.get("attack")]
    if not rows:
        return []
    titles = ["", "storage", "attack", "tried", *COUNTS.values(), "longest call", "longest until asked", "in a write"]
    out = [f"### {TITLE}", "", f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    columns = {"attack": [*ATTACKS], "storage": [*STORAGES], "library": [*LIBRARIES]}
    rows.sort(key=lambda row: [known.index(row[name]) for name, known in columns.items()])
    out += [_line(row) for row in rows]
    lease = rows[0]["lease"]
    return [*out, "", *LEGEND.format(lease=lease, shortest=0.1 * lease, longest=3 * lease).splitlines(), ""]


def _line(row: Row) -> str:
    writing = row["in_the_middle_of_a_write"]
    waits = f"{writing['stopped']}; {writing['calls_over_the_limit']} calls, {writing['longest_seconds']:.1f} s"
    cells = [LIBRARIES[row["library"]], STORAGES[row["storage"]], ATTACKS[row["attack"]], f"{row['tried']:,}"]
    cells += [f"{row['wrong'][name]:,}" for name in COUNTS]
    cells += [f"{row['longest_call_seconds']:.1f}", f"{row['longest_recovery_seconds']:.1f}", waits if writing["stopped"] else ""]
    return f"| {' | '.join(cells)} |"
