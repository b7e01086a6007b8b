"""Processes that a trial has started and left behind: found by a mark in their environment, and ended.

A process group holds what a trial starts in the usual way. A process that starts a session of its own (``setsid``, a daemon, most
servers) leaves the group, and if its parent has ended, nothing in the process table connects it with the trial any more. But it
still has the environment that it was started with. So a worker, or a program, gets a mark of its own in the environment variable
SHOESTRING_PROCESSES, and all that it starts inherits the mark. CI servers find left-over processes in the same way. A Linux
"child subreaper" would be the alternative; it cannot tell the processes of trials that run at the same time apart, and it has to
be the caller's own process.

A mark is added to one that is there already: a study inside of a trial adds its own, and is found by both.

This needs ``/proc``, which Linux has. A process that clears or overwrites its environment is not found; one that is started
without the variable (``env -u SHOESTRING_PROCESSES``) is left alone on purpose.

The source of this module is also a part of the watchdog's program (see ``orphan_guard``): it imports the standard library only.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
import uuid
from collections.abc import Container
from typing import Any

MARK_VARIABLE = "SHOESTRING_PROCESSES"
POLL_SECONDS = 0.01  # between two looks whether processes that were asked to end have done so
MAX_KILL_ROUNDS = 100  # a process that cannot be killed (it hangs in the kernel) is not waited for any longer than this


def new_mark() -> str:
    """A mark that no other worker or program has."""
    return uuid.uuid4().hex


def marked_environment(mark: str) -> dict[str, str]:
    """The variable that marks a process and all that it starts: to add to its environment."""
    outer = os.environ.get(MARK_VARIABLE)
    return {MARK_VARIABLE: f"{outer},{mark}" if outer else mark}


def find_marked(marks: list[str]) -> dict[int, int]:
    """The processes with one of these marks, without this one: process number -> number of its parent. Empty without /proc."""
    wanted, found = [mark.encode() for mark in marks], dict[int, int]()
    for number in process_numbers() if wanted else ():
        if number == os.getpid():
            continue
        try:
            with open(f"/proc/{number}/environ", "rb", buffering=0) as file:
                environment = file.read()
            if any(mark in environment for mark in wanted):
                found[number] = int(status_of(number)[1])
        except OSError:  # it has ended meanwhile, or is another user's
            continue
    return found


def process_numbers() -> list[int]:
    """The numbers of all processes; empty without /proc."""
    try:
        return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
    except OSError:
        return []


def status_of(number: int) -> list[bytes]:
    """State, parent, process group and more of a process, as /proc has them after its name."""
    with open(f"/proc/{number}/stat", "rb", buffering=0) as file:
        return file.read().rpartition(b")")[2].split()


def is_running(group: int) -> bool:
    """Whether a process group has members that run.

    Those that have exited do not count, even if their exit status was not collected: in a container there may be no process that
    ever does.
    """
    numbers = process_numbers()
    if not numbers:
        try:
            os.killpg(group, 0)
        except (OSError, AttributeError):  # macOS: PermissionError if all have exited
            return False
        return True
    for number in numbers:
        try:
            state, _, member_of, *_ = status_of(number)
        except (OSError, ValueError):  # it has ended meanwhile
            continue
        if int(member_of) == group and state not in (b"Z", b"X"):
            return True
    return False


def find_orphans(mark: str) -> dict[int, int]:
    """The processes with a mark whose parent has ended, and all that these have started; not the children of this process.

    What a trial still holds (a pool of processes, a server for the next trials) is a child of its worker. What has lost its
    parent was left behind.
    """
    found = find_marked([mark])

    def is_held(number: int) -> bool:
        while number in found:
            number = found[number]
        return number == os.getpid()

    return {number: parent for number, parent in found.items() if not is_held(number)}


def end_marked(marks: list[str], grace: float, *, asked_groups: Container[int] = (), orphans_only: bool = False) -> None:
    """End all processes with one of these marks: ask them to, and kill those that are left after ``grace`` seconds.

    asked_groups  process groups that were asked already: some programs take a second request for an order to hurry
    orphans_only  see ``find_orphans``; with one mark
    """
    asked, deadline, rounds = set[int](), time.monotonic() + grace, 0
    while found := (find_orphans(marks[0]) if orphans_only else find_marked(marks)):
        kills = time.monotonic() >= deadline
        rounds += kills
        if rounds > MAX_KILL_ROUNDS:
            break
        for number in found if kills else found.keys() - asked:
            try:
                if kills or os.getpgid(number) not in asked_groups:
                    os.kill(number, signal.SIGKILL if kills else signal.SIGTERM)
            except OSError:  # it has ended meanwhile
                continue
        asked |= found.keys()
        time.sleep(POLL_SECONDS)


def has_exited(process: subprocess.Popen[Any]) -> bool:
    """Whether a child process has exited. Its exit status is not collected: until it is, its number and group stay its own."""
    if not hasattr(os, "waitid"):
        return process.poll() is not None
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # other code in this process has collected its exit status
        return True
