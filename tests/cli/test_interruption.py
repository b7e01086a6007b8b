"""Ctrl-C, SIGTERM and a closed terminal in the middle of a run, with real processes."""

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

from tests.cli.programs import SPACE, begin, call, environment, read, script
from tests.program.test_program_objective import gone
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


def reset_signals() -> None:
    """A shell starts background jobs with SIGINT ignored, and their children inherit that."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@contextmanager
def started(here: Path, *words: str, arguments: tuple[str, ...] = ("{x}", "{y}")) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "shoestring", "run", *SPACE, "--method", "random", *words]
    with subprocess.Popen(
        [*command, "--", *script(here, SLOW), *arguments],
        cwd=here, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=reset_signals,
    ) as process:
        try:
            yield process
        finally:
            process.kill()  # does nothing to a process that has ended


def interrupt(process: subprocess.Popen[str], number: int) -> tuple[str, str, float]:
    """Send a signal; return standard output, standard error, and the seconds until the process has ended."""
    began = time.monotonic()
    process.send_signal(number)
    output, errors = process.communicate(timeout=30)
    return output, errors, time.monotonic() - began


def running(here: Path, count: int) -> list[int]:
    """Wait until so many programs run; return their process numbers."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        texts = [path.read_text() for path in sorted((here / "shoestring-logs").glob("train-*/*.out"))]
        if len([text for text in texts if text.endswith("\n")]) >= count:
            return [int(text.split()[0]) for text in texts]
        time.sleep(0.02)
    raise AssertionError("the programs did not start")


@contextmanager
def storage_access() -> Iterator[Callable[[], None]]:
    """A function that waits until the storage file exists, or until a new connection to the server is open."""
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


def test_ctrl_c_ends_all_programs_and_prints_how_to_continue(anywhere: Path) -> None:
    with started(anywhere, "--budget", "3", "--workers", "2") as process:
        pids = running(anywhere, 2)
        output, errors, took = interrupt(process, signal.SIGINT)
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
    assert read(*shlex.split(resume)[3:])["states"] == {"abandoned": 2, "done": 3}
    trials = read("export")["trials"]
    assert [trial["config"] for trial in trials[2:4]] == [trial["config"] for trial in trials[:2]]  # asked again first


@pytest.mark.slow
def test_the_printed_command_names_the_storage(anywhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = os.environ.get("SHOESTRING_STORAGE", "elsewhere.db").replace(f":{QUOTED}", "")
    monkeypatch.delenv("SHOESTRING_STORAGE", raising=False)
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    with started(anywhere, "--budget", "2", "--storage", address) as process:
        running(anywhere, 1)
        _, errors, _ = interrupt(process, signal.SIGINT)
    resume = errors.splitlines()[-1].strip()
    assert resume == f"python -m shoestring resume train --storage {shlex.quote(address)}"
    (anywhere / "quick").touch()
    assert read(*shlex.split(resume)[3:])["states"] == {"abandoned": 1, "done": 2}


@pytest.mark.parametrize("anywhere", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True)
@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.slow)])
def test_sigterm_does_the_same_and_a_program_that_ignores_it_is_killed(anywhere: Path, number: int) -> None:
    with started(anywhere, "--budget", "3", "--json", arguments=("{x}", "{y}", "ignore-sigterm")) as process:
        (pid,) = running(anywhere, 1)
        output, errors, took = interrupt(process, number)
    assert process.returncode == 143, errors
    assert took < 4.0
    assert gone(pid, 0.5)
    found = json.loads(output)
    assert (found["stop_kind"], found["resume"]) == ("interrupted", "python -m shoestring resume train")
    assert errors.splitlines()[-1].strip() == found["resume"]


@pytest.mark.parametrize("moment", ["before the plan is stored", "before there are logs"])
def test_ctrl_c_before_the_first_trial_says_what_works(anywhere: Path, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    early = moment == "before the plan is stored"
    with monkeypatch.context() as patch:
        patch.setattr("shoestring.cli.execute_plan." + ("make_request" if early else "Logs.create"), interrupted)
        run = begin(anywhere, trials=2)
    assert run.exit_code == 130
    if early:
        assert run.stderr.splitlines()[-1] == "interrupted before the first trial; run the same command again"
        assert begin(anywhere, trials=2).exit_code == 0
    else:
        assert run.stderr.splitlines()[-1].strip().endswith("resume train")
        assert call("resume", "train").exit_code == 0
    assert read("show")["states"] == {"done": 2}


@pytest.mark.slow
@pytest.mark.parametrize("step", range(16))
def test_ctrl_c_at_any_moment(anywhere: Path, step: int) -> None:
    """From the first access to the storage on: no traceback, exit code 130, no program runs on, and the study can be resumed."""
    (anywhere / "quick").touch()
    with storage_access() as wait_for_first_access, started(anywhere, "--budget", "400", "--workers", "3") as process:
        wait_for_first_access()
        time.sleep(0.05 * step)
        _, errors, _ = interrupt(process, signal.SIGINT)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    pids = [int(path.read_text().split()[0]) for path in (anywhere / "shoestring-logs").glob("*/*.out") if path.read_text()]
    assert all(gone(pid, 0.5) for pid in pids)
    assert read("db", "check")["ok"]
    if (anywhere / "shoestring-logs").exists():
        assert errors.splitlines()[-1].strip() == "python -m shoestring resume train"
        trials = read("show")["trials"]
        again = call("resume", "train", "--budget", str(trials + 2), "--quiet")
        assert again.exit_code == 0, again.output
