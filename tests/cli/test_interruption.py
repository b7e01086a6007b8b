"""Ctrl-C, SIGTERM and a closed terminal in the middle of a run (item 16), with real processes."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.programs import SPACE, environment, read, script
from tests.program.test_objective import gone
from tests.storage.server import PASSWORD, QUOTED

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals differ")

SLOW = """
import os, signal, sys, time
if len(sys.argv) > 3:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(os.getpid(), flush=True)
if not os.path.exists("quick"):
    time.sleep(60)
print(float(sys.argv[1]))
"""


def listen() -> None:
    """A shell's background jobs are started deaf to Ctrl-C, and what they start is deaf too."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@contextmanager
def started(here: Path, *words: str, arguments: tuple[str, ...] = ("{x}", "{y}")) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "shoestring", "run", *SPACE, "--method", "random", *words]
    with subprocess.Popen(
        [*command, "--", *script(here, SLOW), *arguments],
        cwd=here, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=listen,
    ) as process:
        try:
            yield process
        finally:
            process.kill()  # does nothing to a process that has ended


def interrupted(process: subprocess.Popen[str], number: int) -> tuple[str, str, float]:
    """What it says after a signal, and how long it takes to be gone."""
    began = time.monotonic()
    process.send_signal(number)
    output, errors = process.communicate(timeout=30)
    return output, errors, time.monotonic() - began


def running(here: Path, count: int) -> list[int]:
    """The process numbers of the programs, once so many run."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        texts = [path.read_text() for path in sorted((here / "shoestring-logs" / "train").glob("*.out"))]
        if len([text for text in texts if text.endswith("\n")]) >= count:
            return [int(text.split()[0]) for text in texts]
        time.sleep(0.02)
    raise AssertionError("the programs did not start")


@contextmanager
def looking() -> Iterator[Callable[[], None]]:
    """A call that returns as soon as the study's file is there, or somebody new has connected to its server."""
    address = os.environ.get("SHOESTRING_STORAGE")

    def wait(condition: Callable[[], bool]) -> None:
        until = time.monotonic() + 60
        while not condition() and time.monotonic() < until:
            time.sleep(0.002)

    if address is None:
        yield lambda: wait(Path("shoestring.db").exists)
        return
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:

        def connected() -> set[int]:
            return {pid for (pid,) in connection.execute("SELECT pid FROM pg_stat_activity WHERE usename IS NOT NULL")}

        before = connected()
        yield lambda: wait(lambda: bool(connected() - before))


def test_ctrl_c_ends_everything_and_prints_how_to_go_on(anywhere: Path) -> None:
    with started(anywhere, "--budget", "3", "--workers", "2") as process:
        pids = running(anywhere, 2)
        output, errors, took = interrupted(process, signal.SIGINT)
    assert process.returncode == 130, errors
    assert took < 3.0
    assert all(gone(pid, 0.5) for pid in pids)
    assert "Traceback" not in errors
    assert "interrupted; trials 0 and 1 will be asked again" in output
    resume = errors.splitlines()[-1].strip()
    assert resume == "python -m shoestring resume train"
    assert read("show")["states"] == {"abandoned": 2}
    assert read("show")["waiting"] == 2

    (anywhere / "quick").touch()
    words = [sys.executable, *shlex.split(resume)[1:], "--json"]
    again = subprocess.run(words, cwd=anywhere, env=environment(), capture_output=True, text=True, timeout=60)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["states"] == {"abandoned": 2, "done": 3}
    trials = read("export")["trials"]
    assert [trial["config"] for trial in trials[2:4]] == [trial["config"] for trial in trials[:2]]  # asked again first


@pytest.mark.slow
def test_the_printed_command_names_the_storage(anywhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = os.environ.get("SHOESTRING_STORAGE", "elsewhere.db").replace(f":{QUOTED}", "")
    monkeypatch.delenv("SHOESTRING_STORAGE", raising=False)
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    with started(anywhere, "--budget", "2", "--storage", address) as process:
        running(anywhere, 1)
        _, errors, _ = interrupted(process, signal.SIGINT)
    resume = errors.splitlines()[-1].strip()
    assert resume == f"python -m shoestring resume train --storage {shlex.quote(address)}"
    (anywhere / "quick").touch()
    words = [sys.executable, *shlex.split(resume)[1:], "--json"]
    again = subprocess.run(words, cwd=anywhere, env=environment(), capture_output=True, text=True, timeout=60)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["states"] == {"abandoned": 1, "done": 2}


@pytest.mark.parametrize("anywhere", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True)
@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.slow)])
def test_sigterm_does_the_same_and_a_program_that_does_not_listen_is_killed(anywhere: Path, number: int) -> None:
    with started(anywhere, "--budget", "3", "--json", arguments=("{x}", "{y}", "deaf")) as process:
        (pid,) = running(anywhere, 1)
        output, errors, took = interrupted(process, number)
    assert process.returncode == 143, errors
    assert took < 4.0
    assert gone(pid, 0.5)
    found = json.loads(output)
    assert (found["stop_kind"], found["resume"]) == ("interrupted", "python -m shoestring resume train")
    assert errors.splitlines()[-1].strip() == found["resume"]


@pytest.mark.slow
@pytest.mark.parametrize("step", range(16))
def test_ctrl_c_at_any_moment(anywhere: Path, step: int) -> None:
    """From the moment it listens to Python code of ours on: no traceback, 130, nothing runs on, and it can be gone on with."""
    (anywhere / "quick").touch()
    with looking() as wait_for_its_first_look, started(anywhere, "--budget", "400", "--workers", "3") as process:
        wait_for_its_first_look()
        time.sleep(0.05 * step)
        _, errors, _ = interrupted(process, signal.SIGINT)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    pids = [int(path.read_text().split()[0]) for path in (anywhere / "shoestring-logs").glob("*/*.out") if path.read_text()]
    assert all(gone(pid, 0.5) for pid in pids)
    assert read("db", "check")["ok"]
    if (anywhere / "shoestring-logs").exists():
        assert errors.splitlines()[-1].strip() == "python -m shoestring resume train"
        trials = read("show")["trials"]
        again = subprocess.run(
            [sys.executable, "-m", "shoestring", "resume", "train", "--budget", str(trials + 2), "--quiet"],
            cwd=anywhere, env=environment(), capture_output=True, text=True, timeout=60,
        )
        assert again.returncode == 0, again.stderr
