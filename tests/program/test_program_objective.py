"""Programs as objectives: real processes, their process groups, and how they are ended."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import shoestring as st
from shoestring.budget import Allowance
from shoestring.execution.evaluate import Failure, LiveTrial
from shoestring.program import Cancelled, CommandTemplate, ProgramObjective, command
from shoestring.program.result_reader import Logs, default_log_folder

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals and process groups differ")
SPACE = st.Space(x=st.Float(0, 1))


@pytest.fixture(autouse=True)
def short_grace_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a second between SIGTERM and SIGKILL, to save time."""
    monkeypatch.setattr(command, "TERMINATION_GRACE_SECONDS", 0.5)


def program(tmp_path: Path, code: str, **options: Any) -> ProgramObjective:
    """The objective of a Python program that gets x as its argument."""
    script = tmp_path / "program.py"
    script.write_text(f"import json, os, signal, subprocess, sys, time\nx = float(sys.argv[1])\n{code}\n")
    template = CommandTemplate((sys.executable, str(script), "{x}"), SPACE)
    return ProgramObjective(template, Logs(tmp_path / "logs"), "test", **options)


def live(tmp_path: Path, number: int = 17, x: float = 0.5) -> LiveTrial:
    folder = tmp_path / "checkpoints"
    folder.mkdir(exist_ok=True)
    return LiveTrial(number, {"x": x}, {}, SPACE, Allowance, lambda: folder)


def call(objective: ProgramObjective, tmp_path: Path) -> st.Outcome:
    with objective:
        return objective({"x": 0.5}, live(tmp_path))


def gone(pid: int, within: float = 5.0) -> bool:
    """Whether a process ends within so many seconds (a zombie that is not reaped has ended too)."""
    until = time.monotonic() + within
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_the_last_line_is_the_result_and_the_output_is_kept(tmp_path: Path) -> None:
    outcome = call(program(tmp_path, "print('hello'); print('oh', file=sys.stderr); print(2 * x)"), tmp_path)
    assert outcome == st.Outcome(1.0)
    assert (tmp_path / "logs" / "trial-00017.out").read_text() == "hello\n1.0\n"
    assert (tmp_path / "logs" / "trial-00017.err").read_text() == "oh\n"


def test_the_environment_holds_what_the_arguments_do_not(tmp_path: Path) -> None:
    code = """
env = {key: value for key, value in os.environ.items() if key.startswith("SHOESTRING_")}
assert sys.stdin.read() == "" and not os.isatty(0)
assert os.path.isdir(env["SHOESTRING_CHECKPOINT_DIR"])
with open(env["SHOESTRING_RESULT"], "w") as file:
    json.dump({"value": json.loads(env["SHOESTRING_CONFIG"])["x"], "cost": 2.5}, file)
print(env["SHOESTRING_TRIAL"], env["SHOESTRING_STUDY"])
"""
    assert call(program(tmp_path, code), tmp_path) == st.Outcome(0.5, cost=2.5)
    assert (tmp_path / "logs" / "trial-00017.out").read_text() == "17 test\n"
    assert json.loads((tmp_path / "logs" / "trial-00017.result").read_text())["cost"] == 2.5


def test_an_earlier_log_of_the_same_number_is_kept(tmp_path: Path) -> None:
    objective = program(tmp_path, "print(x)")
    for _ in range(3):
        call(objective, tmp_path)
    names = sorted(path.name for path in (tmp_path / "logs").iterdir())
    assert [name for name in names if name.endswith("out")] == ["trial-00017.1.out", "trial-00017.2.out", "trial-00017.out"]


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("sys.exit(3)", "exit code 3 (log: "),
        ("1 / 0", "exit code 1: ZeroDivisionError: "),
        ("os.kill(os.getpid(), signal.SIGKILL)", "ended by SIGKILL, perhaps because memory ran out (log"),
        ("pass", "it printed no result"),
        ("print('loss: 3')", "neither a number nor a JSON object: 'loss: 3'"),
        ("print('{\"error\": \"diverged\"}')", "diverged (log: "),
    ],
)
def test_failures_say_why_and_where_the_log_is(tmp_path: Path, code: str, says: str) -> None:
    with pytest.raises(Failure) as caught:
        call(program(tmp_path, code), tmp_path)
    assert says in caught.value.reason
    assert re.search(r"trial-00017\.(err|out)\)$", caught.value.reason)
    assert not caught.value.censored


def test_a_wrong_result_is_looked_for_where_it_was_written(tmp_path: Path) -> None:
    write = "import os, pathlib; pathlib.Path(os.environ['SHOESTRING_RESULT']).write_text('low')"
    for code, kind in (("print('low')", "out"), (write, "result"), ("print('oh', file=sys.stderr)", "err")):
        with pytest.raises(Failure, match=rf"\(log: .*trial-00017\.{kind}\)$"):
            call(program(tmp_path, code), tmp_path)


def test_the_reason_is_one_line_and_the_end_of_standard_error_is_the_traceback(tmp_path: Path) -> None:
    with pytest.raises(Failure) as caught:
        call(program(tmp_path, "for i in range(9999): print('line', i, file=sys.stderr)\nsys.exit(1)"), tmp_path)
    assert caught.value.reason.startswith("exit code 1: line 9998 (log: ")
    assert "\n" not in caught.value.reason
    assert caught.value.traceback is not None
    assert caught.value.traceback.endswith("line 9997\nline 9998")
    assert 9_000 < len(caught.value.traceback) <= 10_000


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("sys.exit(3)", "exit code 3"),
        ("os.kill(os.getpid(), signal.SIGTERM)", "ended by SIGTERM"),
        ("print('loss', x)", "no result"),
        ("pass", "no result"),
        ("print('{\"error\": \"diverged\"}')", "diverged"),
    ],
)
def test_failures_of_one_kind_can_be_told_from_others(tmp_path: Path, code: str, kind: str) -> None:
    with pytest.raises(Failure) as caught:
        call(program(tmp_path, code), tmp_path)
    assert caught.value.kind == kind


def test_a_failure_may_report_its_cost(tmp_path: Path) -> None:
    with pytest.raises(Failure) as caught:
        call(program(tmp_path, "print(json.dumps({'error': 'no\\nway', 'cost': 9, 'attrs': {'host': 'gpu3'}}))"), tmp_path)
    assert caught.value.reason.startswith("no way (log: ")
    assert (caught.value.cost, caught.value.attrs) == (9, {"host": "gpu3"})


def test_a_program_that_cannot_be_started_is_a_failure(tmp_path: Path) -> None:
    objective = ProgramObjective(CommandTemplate((str(tmp_path / "nothing"), "{x}"), SPACE), Logs(tmp_path / "logs"), "test")
    with pytest.raises(Failure, match="could not be started") as caught:
        call(objective, tmp_path)
    assert caught.value.kind == "could not be started"


PARENT_AND_CHILD = """
code = "import signal, time; {setup}; print(1, flush=True); time.sleep(60)"
child = subprocess.Popen([sys.executable, "-I", "-S", "-c", code], stdout=subprocess.PIPE)
child.stdout.readline()
print(os.getpid(), child.pid, flush=True)
time.sleep(60)
"""

IGNORE_SIGTERM = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"


def timed_out(tmp_path: Path, setup: str, timeout: float = 1.5) -> tuple[Failure, float, list[int]]:
    """The failure of a program that ran into its timeout, the seconds beyond it, and the processes that there were.

    On a busy machine the program may not have started by then; it is run again with a longer timeout.
    """
    objective = program(tmp_path, PARENT_AND_CHILD.format(setup=setup), timeout=timeout)
    began = time.monotonic()
    with pytest.raises(Failure) as caught:
        call(objective, tmp_path)
    beyond = time.monotonic() - began - timeout
    assert f"longer than its timeout of {timeout:g} s" in caught.value.reason
    pids = printed_pids(tmp_path)
    if len(pids) < 2 and timeout < 20:
        (again := tmp_path / f"{timeout:g}").mkdir()
        return timed_out(again, setup, 4 * timeout)
    return caught.value, beyond, pids


def printed_pids(tmp_path: Path) -> list[int]:
    out = tmp_path / "logs" / "trial-00017.out"
    return [int(number) for number in out.read_text().split()] if out.is_file() else []


def wait_for_pids(tmp_path: Path) -> list[int]:
    """Wait for the two process numbers that the program prints, its own and its child's."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        if len(pids := printed_pids(tmp_path)) == 2:
            return pids
        time.sleep(0.02)
    raise AssertionError("the program did not start")


def test_a_timeout_ends_the_program_and_its_child(tmp_path: Path) -> None:
    failure, beyond, pids = timed_out(tmp_path, "pass")
    assert failure.censored
    assert beyond < 4.5
    assert all(gone(pid) for pid in pids)


def test_a_program_that_ignores_sigterm_is_killed_after_the_grace_time(tmp_path: Path) -> None:
    _, beyond, pids = timed_out(tmp_path, IGNORE_SIGTERM)
    assert 0.4 < beyond < 4.5
    assert all(gone(pid, 0.5) for pid in pids)


def test_cancelling_ends_what_runs_in_other_threads(tmp_path: Path) -> None:
    objective = program(tmp_path, PARENT_AND_CHILD.format(setup="pass"))
    ended: list[BaseException] = []

    def run() -> None:
        try:
            objective({"x": 0.5}, live(tmp_path))
        except BaseException as error:
            ended.append(error)

    with objective:
        thread = threading.Thread(target=run)
        thread.start()
        pids = wait_for_pids(tmp_path)
        objective.cancel()
        thread.join(5)
        assert [type(error) for error in ended] == [Cancelled]
        assert all(gone(pid) for pid in pids)
        with pytest.raises(Cancelled):  # no other program is started
            objective({"x": 0.5}, live(tmp_path, number=18))
    assert not (tmp_path / "logs" / "trial-00018.out").exists()


def test_leaving_the_context_ends_programs_that_still_run_in_a_daemon_thread(tmp_path: Path) -> None:
    objective = program(tmp_path, PARENT_AND_CHILD.format(setup="pass"))

    def run() -> None:
        with pytest.raises(Cancelled):
            objective({"x": 0.5}, live(tmp_path))

    with objective:
        threading.Thread(target=run, daemon=True).start()
        pids = wait_for_pids(tmp_path)
    assert all(gone(pid, 0.5) for pid in pids)


COORDINATOR = """
import sys, threading
sys.path.insert(0, {here!r})
from pathlib import Path
from tests.program.test_program_objective import PARENT_AND_CHILD, live, program
objective = program(Path({folder!r}), PARENT_AND_CHILD.format(setup="pass"))
with objective:
    objective({{"x": 0.5}}, live(Path({folder!r})))
"""


def test_when_the_coordinator_process_is_killed_its_programs_end_too(tmp_path: Path) -> None:
    code = COORDINATOR.format(here=str(Path(__file__).parents[2]), folder=str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", code]) as coordinator:
        try:
            pids = wait_for_pids(tmp_path)
        finally:
            coordinator.send_signal(signal.SIGKILL)
    assert all(gone(pid) for pid in pids)


def test_the_log_folder_is_named_after_the_study_with_unsafe_characters_replaced() -> None:
    identity = "1a2b3c4d-0000-4000-8000-000000000000"
    assert default_log_folder("xgb", identity) == Path("shoestring-logs/xgb-1a2b3c4d")
    assert default_log_folder("../a b/c", identity) == Path("shoestring-logs/a-b-c-1a2b3c4d")
    assert default_log_folder("..", identity) == Path("shoestring-logs/study-1a2b3c4d")
    assert len(default_log_folder("\N{GRINNING FACE}x" * 200, identity).name.encode()) < 255


def test_a_log_folder_that_cannot_be_created_is_an_error_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(st.StudyError, match="--logs"):
        Logs(tmp_path / "file" / "logs").create()
