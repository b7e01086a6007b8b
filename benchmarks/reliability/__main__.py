"""What a study survives: 32 known ways to fail and 18 attacks in their long forms, 200 kills, and how fast a study is kept.

    python -m benchmarks.reliability [--quick] [--json] [--part items|kills|moments|throughput] [--storage sqlite|postgresql|both]
                                     [--only 1,5,a3] [--again] [--kills N] [--count N] [--seed N] [--results DIR] [--folder DIR]
    python -m benchmarks.reliability --table        # runs nothing: prints all rows, and writes them to docs/reliability.md

What was run is stored at once in benchmarks/results/reliability/report.json and not run a second time, so that it can be
interrupted and gone on with; ``--again`` runs it nevertheless.
"""

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.reliability import attacked, attacks, drills, items, kills, moments, places, suite, table, throughput
from benchmarks.reliability.stored import Report
from benchmarks.reliability.suite import Row

RESULTS = Path(__file__).parent.parent / "results" / "reliability"
PARTS = ("items", "kills", "moments", "throughput")


def show(row: Row | None) -> None:
    if row is not None:
        counts = " ".join(f"{row[name]:>8}" for name in ("tried", "survived", "lost"))
        more = {name: row[name] for name in ("p99_seconds", "overshot", "wrong", "skipped", "failures", "note") if row.get(name)}
        print(f"{row['item']!s:>5} {row['storage']:<10} {counts}  {row['what']}{f'  {more}' if more else ''}", flush=True)


def do_items(report: Report, options: argparse.Namespace) -> None:
    print(f"{'item':>5} {'storage':<10} {'tried':>8} {'survived':>8} {'lost':>8}  what", flush=True)
    for item in (*items.ITEMS, *attacks.ATTACKS):
        if options.only and str(item.number) not in options.only:
            continue
        keys = {storage: f"{item.number} {storage}" for storage in ("none", *options.storages)}
        if missing := [storage for storage, key in keys.items() if report.lacks("items", key)]:
            rows = suite.run(item, missing, options.quick)
            report.keep("items", {keys[storage]: row for storage, row in rows.items()})
        for storage, key in keys.items():
            show(report.found["items"][key])  # None where no test is about that storage
            if storage in drills.places_of(item.number) and not places.absent(storage):
                show(report.do("items", f"{key} drill", lambda i=item, s=storage: drill(i.number, s, options)))


def drill(number: int | str, storage: str, options: argparse.Namespace) -> Row:
    with places.fresh(storage, options.folder) as address:
        return drills.DRILLS[number](address, storage, options.quick)


def do_kills(report: Report, options: argparse.Namespace) -> None:
    for storage in options.storages:
        if why := places.absent(storage):
            show(suite.row("kills", "kill -9 of workers and coordinator", storage, 0, 0, 0.0, note=why))
            continue

        def work(storage: str = storage) -> Row:
            with places.fresh(storage, options.folder) as address:
                return kills.kills(address(), storage, options.quick, options.seed, options.kills)

        show(report.do("kills", storage, work))


def do_moments(report: Report, options: argparse.Namespace) -> None:
    for library in options.libraries:
        for storage in options.storages:
            for attack in () if places.absent(storage) else options.attacks or moments.ATTACKS:

                def work(library: str = library, storage: str = storage, attack: str = attack) -> Row:
                    with places.fresh(storage, options.folder) as address:
                        more = {"quick": options.quick, "seed": options.seed, "count": options.count, "seconds": options.seconds}
                        return moments.drill(library, attack, address(), storage, **more)

                show(report.do("moments", f"{library} {storage} {attack}", work))


def do_throughput(report: Report, options: argparse.Namespace) -> None:
    """SQLite, whatever --storage says."""
    for name, measure in throughput.MEASURES.items():

        def work(measure: Callable[[Path, bool], Any] = measure) -> Any:
            with tempfile.TemporaryDirectory(prefix="shoestring-throughput-", dir=options.folder) as folder:
                return measure(Path(folder), options.quick)

        print(json.dumps({name: report.do("throughput", name, work)}, indent=1), flush=True)


DOING = {"items": do_items, "kills": do_kills, "moments": do_moments, "throughput": do_throughput}


def key(found: dict[str, Any]) -> dict[str, Any]:
    """The figures that matter, from what is stored."""
    rows = [row for row in found.get("items", {}).values() if row is not None]
    counts = {name: sum(row[name] for row in rows) for name in ("tried", "survived", "lost")}
    figures: dict[str, Any] = {"items": counts | {"of": sorted({row["item"] for row in rows}, key=table.order)}}
    named = ("tried", "survived", "lost", "wrong")
    figures["kills"] = {storage: {name: row[name] for name in named} for storage, row in found.get("kills", {}).items()}
    figures["moments"] = {name: {part: row[part] for part in named} for name, row in found.get("moments", {}).items()}
    measured = found.get("throughput", {})
    if "tells" in measured:
        figures["tells_per_second"] = measured["tells"].get("per_second")
    if "ask_and_tell" in measured:
        figures["times_optuna"] = {name: rates["ratios"] for name, rates in measured["ask_and_tell"].items() if name != "seconds"}
    if "large" in measured:
        figures["large"] = measured["large"]
    return figures


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reliability", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="short forms, 10 kills, small studies; a report of its own")
    parser.add_argument("--json", action="store_true", help="end with one line of JSON: the key figures")
    parser.add_argument("--part", choices=PARTS, action="append", help="may be repeated; all by default")
    parser.add_argument("--storage", choices=(*places.KINDS, "both"), default="both", help="of items and kills")
    parser.add_argument("--only", type=lambda text: text.split(","), help="numbers of items: 1,5,a3")
    parser.add_argument("--table", action="store_true", help="run nothing; print the table of all rows and write it to the docs")
    parser.add_argument("--again", action="store_true", help="run what is stored too")
    parser.add_argument("--kills", type=int, help=f"how many; {kills.KILLS} by default")
    parser.add_argument("--count", type=int, help=f"attacks of each kind at moments; {moments.COUNT} by default")
    parser.add_argument("--seconds", type=float, default=moments.MAX_SECONDS, help="at most, of one drill at moments")
    parser.add_argument("--library", choices=attacked.LIBRARIES, action="append", dest="libraries", help="of moments; both")
    parser.add_argument("--attack", choices=moments.ATTACKS, action="append", dest="attacks", help="of moments; all by default")
    parser.add_argument("--seed", type=int, help="of the moments of the kills; a random one by default, which is stored")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the report")
    parser.add_argument("--folder", type=Path, help="where the databases are made, on the disk that is to be measured")
    options = parser.parse_args(arguments)
    options.libraries = options.libraries or attacked.LIBRARIES
    options.storages = places.KINDS if options.storage == "both" else (options.storage,)
    return options


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    report = Report(options.results / ("report_quick.json" if options.quick else "report.json"), options.again)
    if options.table:
        table.publish(report.found, None if options.quick else table.PAGE)
        return
    for part in options.part or (PARTS if not options.only else PARTS[:1]):
        DOING[part](report, options)
    if options.json:
        print(json.dumps({"quick": options.quick, **key(report.found)}))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))  # so that what was started is ended
    main()
