"""What open pages cost a running study of cheap trials.

The same run is done without pages and with five of them, in turns. Pages are real ones, in Chromium. On a machine with few cores
Chromium takes time from the run that on another machine it would not. So with ``browser=False`` a program asks for all that five
pages at the top of a study ask for, at the same times, and does nothing else. The server is a process of its own, or with
``beside`` a thread of the run, as in ``shoestring run --serve``; then it shares the interpreter's lock with the run.

    ratio          seconds of the run with pages, divided by those without
    server_share   processor time of the server as a share of the seconds of the run
"""

import contextlib
import json
import logging
import shutil
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

import psutil

import shoestring as st

NAME, TOKEN = "page", "a-token-for-the-benchmark"
TRIALS, PAGES, WARM_UP_TRIALS = 1500, 5, 20
PARTS = {"parts/live": 2.0, "pictures/best_against_cost": 10.0, "pictures/best_against_trials": 10.0}  # in view


# -- servers -----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def shoestring_server(file: Path) -> Iterator[tuple[psutil.Process, str]]:
    """``shoestring serve`` as a process of its own, and the address of the study's page."""
    command = [sys.executable, "-m", "shoestring", "serve", str(file), "--port", "0", "--json", "--token", TOKEN]
    with running(command, stdout=subprocess.PIPE, text=True) as process:
        text = ""
        assert process.stdout is not None
        for line in process.stdout:
            text += line
            with contextlib.suppress(ValueError):
                address = json.loads(text)["page"].partition("/#")[0]
                break
        yield psutil.Process(process.pid), f"{address}/studies/{NAME}"


@contextlib.contextmanager
def running(command: list[str], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    process = subprocess.Popen(command, **options)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(timeout=20)


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    program = next(found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


def signed_in(browser: Any, address: str) -> Any:
    """A context of the browser with an empty cache, that may open our pages."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    if "/dashboard/" not in address:
        origin = address.partition("/studies/")[0]
        answer = context.request.post(f"{origin}/login", data={"key": TOKEN})
        assert answer.status == 204, answer.text()
    return context


# -- the run -----------------------------------------------------------------------------------------------------------


def rows(folder: Path, repetitions: int, count: int, *, beside: bool, browser: bool) -> Iterator[dict[str, Any]]:
    """One row for each repetition: the seconds of a run without pages and with ``PAGES`` of them, in turns."""
    logging.getLogger("shoestring").setLevel(logging.WARNING)
    with chromium() if browser else contextlib.nullcontext() as found:
        for repetition in range(repetitions):
            order = (0, PAGES) if repetition % 2 == 0 else (PAGES, 0)
            took = {pages: one_run(folder, found, count, pages, beside=beside) for pages in order}
            without, with_pages = took[0], took[PAGES]
            yield {
                "repetition": repetition, "trials": count, "pages": PAGES, "beside": beside, "browser": browser,
                "seconds_without": without["seconds"], "seconds_with": with_pages["seconds"],
                "ratio": with_pages["seconds"] / without["seconds"],
                "server_share": with_pages["server_processor"] / with_pages["seconds"],
                "ratio_of_processor": with_pages["run_processor"] / without["run_processor"],
            }  # fmt: skip


def one_run(folder: Path, browser: Any | None, count: int, pages: int, *, beside: bool) -> dict[str, float]:
    """One run of a study of cheap trials, with pages open."""
    file = folder / f"load-{time.monotonic_ns()}.db"
    study = st.Study(st.Space(x=st.Float(0, 1), y=st.Float(0, 1)), st.Random(), storage=file, name=NAME)
    study.minimize(lambda config: config["x"], WARM_UP_TRIALS, progress=False)
    with contextlib.ExitStack() as stack:
        # The server is there in both cases: it is the pages that are measured.
        process, address = stack.enter_context(own_thread_server(file) if beside else shoestring_server(file))
        if browser is not None:
            opened = [open_page(stack, browser, address) for _ in range(pages)]
        else:
            opened = []
            visitor = [sys.executable, "-m", "benchmarks.page_load", address, str(pages)]
            visiting = stack.enter_context(running(visitor, stdout=subprocess.PIPE, text=True))
            assert visiting.stdout is not None
            assert visiting.stdout.readline() == "ready\n"
        took = timed(study, count, opened, process)
    study.close()
    for each in (file, *folder.glob(f"{file.name}-*")):
        each.unlink(missing_ok=True)
    return took


def timed(study: st.Study, count: int, pages: list[Any], server: psutil.Process | None) -> dict[str, float]:
    """The run in a thread, while the pages are kept alive; the time of the processor is that of the run's thread."""
    took: dict[str, float] = {}

    def work() -> None:
        began, used = time.perf_counter(), time.thread_time()
        study.minimize(lambda config: config["x"], WARM_UP_TRIALS + count, progress=False)
        took.update(seconds=time.perf_counter() - began, run_processor=time.thread_time() - used)

    before = server_seconds(server)
    thread = threading.Thread(target=work)
    thread.start()
    while thread.is_alive():
        if pages:
            pages[0].wait_for_timeout(100)  # events of the browser are read
        else:
            thread.join(0.1)
    used = server_seconds(server) - before
    return took | {"server_processor": used if server is not None else max(used - took["run_processor"], 0.0)}


def server_seconds(server: psutil.Process | None) -> float:
    """The processor time of a server; None: of this process, in which it runs."""
    return time.process_time() if server is None else sum(server.cpu_times()[:2])


def open_page(stack: contextlib.ExitStack, browser: Any, address: str) -> Any:
    context = signed_in(browser, address)
    stack.callback(context.close)
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector("main[data-live=yes]", state="attached")
    return page


@contextlib.contextmanager
def own_thread_server(file: Path) -> Iterator[tuple[None, str]]:
    """The server of ``shoestring run --serve``: a thread of this process."""
    from shoestring.web.keys import Keys
    from shoestring.web.server import Server
    from shoestring.web.site import Site

    with Server(Site(st.open_storage(file), Keys(TOKEN)), port=0).in_background() as server:
        yield None, f"{server.address}/studies/{NAME}"


# -- pages without a browser -------------------------------------------------------------------------------------------


def ask(address: str, **headers: str) -> HTTPResponse:
    asked = {"Authorization": f"Bearer {TOKEN}", "Accept": "text/html", "Accept-Encoding": "gzip", **headers}
    answer: HTTPResponse = urllib.request.urlopen(urllib.request.Request(address, headers=asked), timeout=60)
    return answer


def visit(address: str) -> None:
    """Ask for what the script of an open page asks for: the events, and after each the parts in view that are old enough."""
    ask(address).read()
    asked, shown = dict.fromkeys(PARTS, 0.0), dict.fromkeys(PARTS, "")
    for line in ask(f"{address}/events", Accept="text/event-stream"):
        if line.startswith(b"data: {"):
            version = json.loads(line[6:])["version"]
            for part, every in PARTS.items():
                if shown[part] != version and time.monotonic() - asked[part] >= every:
                    asked[part] = time.monotonic()
                    answer = ask(f"{address}/{part}", **{"X-Fragment": "1"})
                    answer.read()
                    shown[part] = answer.headers["X-Version"]


def main() -> None:
    address, pages = sys.argv[1], int(sys.argv[2])
    for _ in range(pages):
        threading.Thread(target=visit, args=[address], daemon=True).start()
    time.sleep(1.0)
    print("ready", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
