"""The page beside optuna-dashboard on the same 10,000 trials, and what open pages cost a running study.

    python -m benchmarks.page --json                 bytes sent until the first plot, time to it, memory of the server
    python -m benchmarks.page --load --json          how much five open pages slow a study of cheap trials (see ``page_load``)

Both servers get the same trials in an SQLite file, start anew for each repetition, and are opened in a Chromium with an empty
cache. The two take turns. The first plot is there when its lines are in the document and have a size. Bytes are those of the
network, as Chromium counts them, headers included. Memory is the peak of the server's process up to then.
"""

import argparse
import contextlib
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil

import shoestring as st
from benchmarks import machine, page_load
from benchmarks.page_load import NAME, chromium, running, shoestring_server, signed_in

TRIALS = 10_000
OPTIONS = ("relu", "tanh", "gelu")
RESULTS = Path(__file__).parent / "results" / "page.json"
DASHBOARD = "optuna-dashboard"
PLOTS = {"shoestring": "figure svg.st-chart path", DASHBOARD: ".js-plotly-plot .main-svg .trace"}
# Notes when the first plot is in the document and has a size, by the clock of the page.
WATCH = """
const look = () => {
  const drawn = [...document.querySelectorAll(%s)].some((each) => each.getBoundingClientRect().width > 0);
  if (drawn) window.firstPlot = performance.now(); else requestAnimationFrame(look);
};
look();
"""


# -- the same trials for both ------------------------------------------------------------------------------------------


def trials(count: int = TRIALS) -> Iterator[tuple[dict[str, Any], float, float, float]]:
    """Settings, value, start and duration of each trial; always the same."""
    chance = random.Random(0)
    begins = time.time() - 5.0 * count
    for number in range(count):
        config = {
            "lr": 10 ** chance.uniform(-5, -1), "width": chance.randint(8, 512), "dropout": chance.random(),
            "activation": chance.choice(OPTIONS),
        }  # fmt: skip
        value = (config["dropout"] - 0.3) ** 2 + abs(config["width"] - 200) / 400 + chance.gauss(0, 0.05)
        yield config, value, begins + 5.0 * number, chance.uniform(1.0, 4.5)


def fill_shoestring(file: Path) -> None:
    space = st.Space(
        lr=st.Float(1e-5, 1e-1, log=True), width=st.Int(8, 512), dropout=st.Float(0, 1), activation=st.Choice(*OPTIONS)
    )
    storage = st.open_storage(file)
    study = st.Study(space, st.Random(), storage=storage, name=NAME, budget=2 * TRIALS)
    for number, (config, value, start, seconds) in enumerate(trials()):
        ended = {"state": st.State.DONE, "value": value, "cost": seconds, "seconds": seconds, "asked_at": start}
        storage.write(study.state.study, st.Trial(number, config, **ended))
    storage.close_connections()


def fill_optuna(file: Path) -> None:
    import optuna
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    ranges = {
        "lr": FloatDistribution(1e-5, 1e-1, log=True), "width": IntDistribution(8, 512), "dropout": FloatDistribution(0, 1),
        "activation": CategoricalDistribution(OPTIONS),
    }  # fmt: skip
    study = optuna.create_study(storage=f"sqlite:///{file}", study_name=NAME)
    frozen = []
    for number, (config, value, start, seconds) in enumerate(trials()):
        times = {"datetime_start": datetime.fromtimestamp(start), "datetime_complete": datetime.fromtimestamp(start + seconds)}
        frozen.append(
            optuna.trial.FrozenTrial(
                number=number, trial_id=number, state=optuna.trial.TrialState.COMPLETE, value=value, params=config,
                distributions=ranges, user_attrs={}, system_attrs={}, intermediate_values={}, **times,
            )
        )
    study.add_trials(frozen)


def data(folder: Path) -> dict[str, Path]:
    """The two databases in a folder, made where they are missing."""
    found = {"shoestring": folder / "shoestring.db", DASHBOARD: folder / "optuna.db"}
    for name, fill in (("shoestring", fill_shoestring), (DASHBOARD, fill_optuna)):
        if not found[name].exists():
            being_made = found[name].with_suffix(".part")
            being_made.unlink(missing_ok=True)
            fill(being_made)
            being_made.rename(found[name])
    return found


# -- servers -----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def dashboard_server(file: Path, program: str) -> Iterator[tuple[psutil.Process, str]]:
    port = 20_000 + random.randrange(20_000)
    command = [program, f"sqlite:///{file}", "--port", str(port)]
    with running(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        address = f"http://127.0.0.1:{port}"
        wait_for(address)
        yield psutil.Process(process.pid), f"{address}/dashboard/studies/1"


def wait_for(address: str) -> None:
    until = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def peak_bytes(process: psutil.Process) -> int:
    """The largest memory of a process and its children so far."""
    total = 0
    for each in (process, *process.children(recursive=True)):
        lines = Path(f"/proc/{each.pid}/status").read_text().splitlines()
        total += next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    return total


# -- the first plot ----------------------------------------------------------------------------------------------------


def first_plot(browser: Any, address: str, selector: str) -> dict[str, float]:
    """Open a page with an empty cache: seconds until the first plot, until the first paint, and bytes until the plot."""
    context = signed_in(browser, address)
    page = context.new_page()
    network = context.new_cdp_session(page)
    received: list[float] = []
    network.on("Network.loadingFinished", lambda event: received.append(event["encodedDataLength"]))
    network.send("Network.enable")
    page.add_init_script(WATCH % json.dumps(selector))
    page.goto(address, wait_until="commit", timeout=400_000)
    page.wait_for_function("() => window.firstPlot !== undefined", timeout=400_000)
    page.wait_for_load_state("load", timeout=400_000)  # all that the first plot is made of has come, and is counted
    page.wait_for_timeout(50)
    paint = page.evaluate("() => performance.getEntriesByName('first-contentful-paint').map((each) => each.startTime)[0] || null")
    found = {
        "seconds_to_first_plot": page.evaluate("() => window.firstPlot") / 1000, "bytes": sum(received),
        "seconds_to_first_paint": None if paint is None else paint / 1000,
    }  # fmt: skip
    context.close()
    return found


def compare(folder: Path, program: str, repetitions: int) -> Iterator[dict[str, Any]]:
    """One row for each server and repetition, in turns."""
    files = data(folder)
    with chromium() as browser:
        for repetition in range(repetitions):
            for name in PLOTS:
                server = shoestring_server(files[name]) if name == "shoestring" else dashboard_server(files[name], program)
                with server as (process, address):
                    time.sleep(3.0)  # what the servers do by themselves at the start has ended
                    cold = first_plot(browser, address, PLOTS[name])
                    memory = peak_bytes(process)
                    again = first_plot(browser, address, PLOTS[name])
                yield {
                    "server": name, "repetition": repetition, "trials": TRIALS, **cold, "server_bytes": memory,
                    "seconds_to_first_plot_again": again["seconds_to_first_plot"],
                }  # fmt: skip


# -- rows --------------------------------------------------------------------------------------------------------------


def commit() -> str:
    root: dict[str, Any] = {"capture_output": True, "text": True, "cwd": RESULTS.parents[2]}
    asked = subprocess.run(["git", "rev-parse", "--short", "HEAD"], **root)
    changed = subprocess.run(["git", "status", "--porcelain", "src/shoestring"], **root)
    return asked.stdout.strip() + (" and changes" if changed.stdout.strip() else "")


def version_of_dashboard(program: str) -> str:
    found = subprocess.run([program, "--version"], capture_output=True, text=True)
    return (found.stdout or found.stderr).strip().split()[-1]


def medians(rows: list[dict[str, Any]], by: str | None) -> dict[str, Any]:
    """The median of each number, for each value of a column."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(str(row[by]) if by else "all", []).append(row)
    return {
        name: {
            key: statistics.median(row[key] for row in group)
            for key, value in group[0].items()
            if isinstance(value, float | int) and not isinstance(value, bool) and key != "repetition"
        }
        for name, group in groups.items()
    }


def write(part: str, document: dict[str, Any]) -> None:
    stored = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    RESULTS.write_text(json.dumps(stored | {part: document}, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--load", action="store_true", help="measure what open pages cost a running study")
    parser.add_argument("--beside", action="store_true", help="with --load: the server is a thread of the run")
    parser.add_argument("--no-browser", action="store_true", help="with --load: programs ask for the same as pages in Chromium")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--trials", type=int, default=page_load.TRIALS, help="of the run of --load")
    parser.add_argument("--dashboard", default=DASHBOARD, help="the program of optuna-dashboard")
    parser.add_argument("--data", type=Path, help="a folder that keeps the two databases")
    parser.add_argument("--no-store", action="store_true", help=f"do not write {RESULTS.name}")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.data or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        found = (
            page_load.rows(folder, given.repetitions, given.trials, beside=given.beside, browser=not given.no_browser)
            if given.load
            else compare(folder, given.dashboard, given.repetitions)
        )
        facts = machine.facts() | {"commit": commit()}
        if not given.load:
            facts["versions"] = facts["versions"] | {DASHBOARD: version_of_dashboard(given.dashboard)}
        part = "load" + "_beside" * given.beside + "_without_browser" * given.no_browser if given.load else "first_plot"
        rows: list[dict[str, Any]] = []
        for row in found:
            rows.append(row | {"load_average": os.getloadavg()[0]})
            print(rows[-1], file=sys.stderr, flush=True)
            document = {"machine": facts, "rows": rows, "medians": medians(rows, None if given.load else "server")}
            if not given.no_store:  # at once: what was measured stays if this is ended
                write(part, document)
    if given.json:
        print(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
