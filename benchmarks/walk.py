"""How many files does one step of a study pass through?

    python -m benchmarks.walk [--json] [--results FILE]

A step is what happens between the end of one evaluation and the next call of the objective, at trial 20, with the defaults and a
study in memory. Counted with ``sys.setprofile``, in the package's own files:

    files               different files
    changes_by_call     calls into another file than the last call's
    changes             the same, returns counted too: how often a reader who follows the step changes the file
    calls               of functions of the package
"""

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import shoestring as st
from benchmarks import machine

ROOT = str(Path(st.__file__).parent)
RESULTS = Path(__file__).parent / "results" / "walk.json"
AT_TRIAL = 20
BEFORE = {  # at commit 17d79f6, before the modules were merged and the hot paths shortened
    "three numbers": {"files": 58, "changes_by_call": 978, "changes": 3237, "calls": 2493},
    "mixed": {"files": 59, "changes_by_call": 1291, "changes": 3825, "calls": 3307},
}
SPACES = {
    "three numbers": st.Space(x=st.Float(0, 1), y=st.Float(0, 1), z=st.Float(0, 1)),
    "mixed": st.Space(lr=st.Float(1e-5, 1e-1, log=True), depth=st.Int(2, 12), booster=st.Choice("gbtree", "dart")),
}
Event = tuple[bool, str, str]  # whether it is a call, the function's file, the caller's file


def events_of_one_step(space: st.Space, **options: Any) -> list[Event]:
    """Calls and returns of the package's functions between trial 20's evaluation and the next one's."""
    st.set_verbosity("warning")  # a log line passes through two files more
    events: list[Event] = []
    seen = {"trials": 0, "events": events}

    def watch(frame: Any, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if event in ("call", "return") and name.startswith(ROOT):
            events.append((event == "call", name, frame.f_back.f_code.co_filename if frame.f_back else ""))

    def objective(config: dict[str, Any]) -> float:
        sys.setprofile(None)
        seen["trials"] += 1
        value = sum((float(value) - 0.3) ** 2 for value in config.values() if not isinstance(value, str))
        if seen["trials"] == AT_TRIAL + 1:
            seen["events"] = list(events)
        if seen["trials"] == AT_TRIAL:
            events.clear()
            sys.setprofile(watch)
        return value

    st.minimize(objective, space, AT_TRIAL + 2, seed=0, progress=False, **options)
    return list(seen["events"])


def count(events: list[Event]) -> dict[str, Any]:
    """The four numbers, and the calls in each file."""
    calls = [name for called, name, _ in events if called]
    by_call = sum(one != other for one, other in zip(["", *calls], calls, strict=False))
    changes, last = 0, ""
    for called, name, caller in events:
        now = name if called else caller if caller.startswith(ROOT) else last
        changes, last = changes + (now != last), now
    files = Counter(str(Path(name).relative_to(ROOT)) for name in calls)
    return {
        "files": len(files), "changes_by_call": by_call, "changes": changes, "calls": len(calls), "calls_by_file": dict(files),
    }


def walk_text(report: dict[str, Any]) -> str:
    """The files of one step, now and before the modules were merged."""
    lines = ["| | files | changes of file by call | changes, returns counted too | calls |", "|---|---|---|---|---|"]
    for name, now in ((name, now) for name, now in report.items() if name != "machine"):
        for when, row in (("", now), (", before", BEFORE[name])):
            changes = f"{row['changes_by_call']:,} | {row['changes']:,}"
            lines.append(f"| {name}{when} | {row['files']} | {changes} | {row['calls']:,} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.walk", description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true", help="end with one line of JSON")
    parser.add_argument("--results", type=Path, default=RESULTS, help="file that keeps the report")
    options = parser.parse_args()
    report: dict[str, Any] = {name: count(events_of_one_step(space)) for name, space in SPACES.items()}
    report["machine"] = machine.facts()
    options.results.parent.mkdir(parents=True, exist_ok=True)
    options.results.write_text(json.dumps(report, indent=2) + "\n")
    for name in SPACES:
        row = report[name]
        changes = f"{row['changes_by_call']} changes by call, {row['changes']} in all"
        print(f"{name}: {row['files']} files, {changes}, {row['calls']} calls")
    if options.json:
        print(json.dumps(report))


if __name__ == "__main__":
    main()
