"""What a trial has started ends with it: in its process group or not, after success, time limits and kills."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import shoestring as st
from shoestring.execution.orphan_guard import OrphanGuard
from shoestring.execution.process_tree import MARK_VARIABLE, end_marked, find_marked, find_orphans, is_running, marked_environment
from shoestring.execution.worker import LeftBehind
from shoestring.program import CommandTemplate, ProgramObjective
from shoestring.program.result_reader import Logs
from tests.execution.helpers import SPACE, alive, states, until

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="left-over processes are found through /proc")

# Prints the numbers of three processes: one in the background, one in a session of its own, one that ignores SIGTERM.
LEAVE_BEHIND = """
sleep 61 >/dev/null & a=$!
setsid sleep 61 >/dev/null & b=$!
(trap '' TERM; exec setsid sleep 61 >/dev/null) & c=$!
echo $a $b $c
"""


def started(mark, script=LEAVE_BEHIND):
    """Run a shell script under a mark, and return the process numbers that it prints."""
    found = subprocess.run(["sh", "-c", script], env=os.environ | marked_environment(mark), stdout=subprocess.PIPE, check=True)
    return [int(word) for word in found.stdout.split()]


@pytest.fixture
def mark(request):
    """A mark; what still has it after the test is ended."""
    mark = f"mark-of-{request.node.name}"
    yield mark
    end_marked([mark], 0.0)


def test_processes_are_found_by_their_mark_wherever_they_went(mark):
    numbers = started(mark)
    until(lambda: set(find_marked([mark])) == set(numbers))
    assert set(find_orphans(mark)) == set(numbers)
    assert not find_marked([mark + "of another worker"])
    assert not find_marked([])
    end_marked([mark], 0.05)
    assert not any(alive(number) for number in numbers)
    assert not find_marked([mark])


def test_a_process_that_was_asked_to_end_is_not_asked_again(mark, tmp_path):
    count = tmp_path / "count"
    child = subprocess.Popen(
        ["sh", "-c", f"trap 'echo x >> {count}' TERM; echo; while :; do sleep 0.01; done"],
        env=os.environ | marked_environment(mark), stdout=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    with child:
        child.stdout.readline()
        assert is_running(child.pid)
        os.killpg(child.pid, signal.SIGTERM)
        end_marked([mark], 0.1, asked_groups=[child.pid])
    assert child.returncode == -signal.SIGKILL
    assert count.read_text() == "x\n"
    assert not is_running(child.pid)


def test_a_mark_is_added_to_that_of_an_outer_study(monkeypatch):
    monkeypatch.setenv(MARK_VARIABLE, "outer")
    assert marked_environment("inner") == {MARK_VARIABLE: "outer,inner"}


def test_what_lost_its_parent_ends_after_the_trial_and_what_the_worker_holds_stays(mark, monkeypatch):
    monkeypatch.setenv(MARK_VARIABLE, f"outer,{mark}")
    left_behind = LeftBehind()
    with subprocess.Popen(["sleep", "61"]) as held:
        (orphan,) = (int(word) for word in subprocess.check_output("sleep 61 >/dev/null & echo $!", shell=True).split())
        until(lambda: find_orphans(mark).keys() == {orphan})
        left_behind.end()
        assert not alive(orphan)
        assert alive(held.pid)
        held.kill()


def test_nothing_is_searched_for_where_a_trial_has_started_no_process(monkeypatch):
    monkeypatch.setenv(MARK_VARIABLE, "mark")
    monkeypatch.setattr(LeftBehind, "_has_children", staticmethod(lambda: False))
    monkeypatch.setattr("shoestring.execution.worker.end_marked", None)
    LeftBehind().end()


def test_what_a_program_that_ended_well_has_left_behind_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr("shoestring.program.command.TERMINATION_GRACE_SECONDS", 0.05)
    template = CommandTemplate(("sh", "-c", f"{LEAVE_BEHIND}echo {{x}}"), SPACE)
    with ProgramObjective(template, Logs(tmp_path), "test") as objective:
        history = st.Study(SPACE, st.Random()).minimize(objective, 1).history
    assert states(history) == ["done"]
    numbers = [int(word) for word in (tmp_path / "trial-00000.out").read_text().split()[:3]]
    assert not any(alive(number) for number in numbers)


def test_what_a_worker_has_left_behind_is_ended_with_it(tmp_path):
    """After a trial that ended well, at its time limit, and at the end of the run; in a session of its own too."""

    def objective(config):
        if config["x"] == 0.1:
            subprocess.run("sleep 61 & setsid sleep 61 & echo $! > 1", shell=True, check=True, cwd=tmp_path)
        elif config["x"] == 0.2:  # on the same worker
            assert not alive(int((tmp_path / "1").read_text()))
            subprocess.run("setsid sleep 61 & echo $! > 2", shell=True, check=True, cwd=tmp_path)
            time.sleep(61)
        else:
            assert not alive(int((tmp_path / "2").read_text()))
            (tmp_path / "3").write_text(str(subprocess.Popen(["setsid", "sleep", "61"]).pid))
        return config["x"]

    found = st.Study(SPACE, st.Random())
    for x in (0.1, 0.2, 0.3):
        found.enqueue({"x": x})
    history = found.minimize(objective, 3, workers=1, timeout=0.5).history
    assert [trial.error for trial in history] == [None, "timed out after 500 ms", None]
    assert not alive(int((tmp_path / "3").read_text()))


def test_the_watchdog_ends_what_has_left_the_group_of_a_coordinator_that_was_killed(mark):
    guard = OrphanGuard()
    guard.__enter__()
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", "import time; time.sleep(61)"],
        env=os.environ | marked_environment(mark), start_new_session=True,
    ) as worker:  # fmt: skip
        daemon, _ = started(mark, "setsid sleep 61 >/dev/null & echo $! 0")
        guard.watch(worker.pid, mark)
        guard.watch(1 << 22, "another")
        guard.release(1 << 22, "another")
        guard.__exit__()  # the pipe closes, as it does when the coordinator dies
        assert worker.wait(1) == -signal.SIGTERM
    assert not alive(daemon)
