"""A watchdog for servers that accept a request and never answer: it cuts their connections off.

The database driver waits for an answer without a limit, and after Ctrl-C it waits for ten seconds more. The limits of TCP
(keep-alive, ``tcp_user_timeout``) find a machine that is gone, but not a server that stands still: its system goes on to answer.
So one thread looks after the connections that wait, and shuts down the socket of one that has waited for too long. The driver
then reports a lost connection, and the transaction is retried like after any other loss.

If the process itself was suspended, the thread sees that it was not called for long, and that time does not count.

A server that sends is not silent, however long its answer is. Where the time of its last data is not known (a socket that is not
TCP's, a system other than Linux), it gets more time.
"""

from __future__ import annotations

import math
import os
import queue
import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from .transactions import DEFAULT_WAIT_SECONDS, SHORT_WAIT_SECONDS, Suspension, is_late

TICK_SECONDS = 0.05
SUSPENDED_SECONDS = 1.0  # without a tick: then this process was suspended, or the machine is very busy
IDLE_SECONDS = 5.0  # without anything to look after, until the thread ends
LAST_DATA_OFFSET = 52  # of tcpi_last_data_recv in Linux's struct tcp_info, in milliseconds

Value = TypeVar("Value")


@dataclass
class Silence:
    """When a server was last cut off because it did not answer, and has not answered since."""

    at: float = -math.inf

    def was_within(self, seconds: float) -> bool:
        return time.monotonic() - self.at < seconds


class SilenceGuard:
    """Inside, the connection of psycopg is cut off if its server is silent for so many seconds.

    silence  takes note of it;   strict  the server gets no more time where the time of its last data is not known
    """

    __slots__ = ("_connection", "_seconds", "_silence", "_since", "_strict")

    def __init__(self, connection: Any, silence: Silence, seconds: float, strict: bool = False) -> None:
        self._connection, self._silence, self._seconds, self._strict = connection, silence, seconds, strict
        self._since = 0.0

    def __enter__(self) -> None:
        self._since = time.monotonic()
        _watched[id(self)] = self
        if not _Thread.alive:
            _start()

    def __exit__(self, *error: object) -> None:
        _watched.pop(id(self), None)
        if error[0] is None:
            self._silence.at = -math.inf
        else:  # perhaps since this process was suspended, and the thread has not noticed yet
            note_suspension(time.monotonic() - max(_Thread.ticked, self._since))

    def add_time(self, seconds: float) -> None:
        """So many seconds do not count: this process was suspended."""
        self._since += seconds

    def look(self) -> None:
        """Cut the connection off if it is time."""
        waited = time.monotonic() - self._since
        limit = min(self._seconds, SHORT_WAIT_SECONDS) if is_late() else self._seconds
        if waited < limit:
            return
        silent = seconds_since_data(self._connection)
        if silent is None and not self._strict and not is_late():
            limit = max(limit, DEFAULT_WAIT_SECONDS)
        if min(waited, waited if silent is None else silent) >= limit:
            self._silence.at = time.monotonic()
            cut_off(self._connection)


def note_suspension(seconds: float) -> bool:
    """Whether so many seconds between two looks mean that this process was suspended; then they are counted."""
    if seconds <= SUSPENDED_SECONDS:
        return False
    Suspension.seconds += seconds
    return True


def cut_off(connection: Any) -> None:
    """Shut a connection's socket down, so that a thread that waits for it gets an error at once."""
    with suppress(Exception), socket.socket(fileno=os.dup(connection.pgconn.socket)) as copy:
        copy.shutdown(socket.SHUT_RDWR)


def seconds_since_data(connection: Any) -> float | None:
    """How long ago the server sent something; None if that is not known."""
    with suppress(Exception), socket.socket(fileno=os.dup(connection.pgconn.socket)) as copy:
        state = copy.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, LAST_DATA_OFFSET + 4)
        return float(struct.unpack_from("I", state, LAST_DATA_OFFSET)[0]) / 1000.0
    return None


def within(seconds: float, work: Callable[[], Value], discard: Callable[[Value], object], late: Callable[[], Exception]) -> Value:
    """What ``work`` returns. It is done in a thread, so that after so many seconds, or after Ctrl-C, the caller goes on.

    Seconds for which this process was suspended do not count.

    discard  is called with what it returns after that;   late  makes the error
    """
    answers: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()
    given_up = threading.Event()

    def do() -> None:
        try:
            answer = work()
        except Exception as error:
            answers.put((False, error))
            return
        answers.put((True, answer))
        if given_up.is_set():
            with suppress(Exception):
                discard(answer)

    threading.Thread(target=do, name="shoestring-connect", daemon=True).start()
    looked = time.monotonic()
    deadline = looked + seconds
    try:
        while True:
            left = deadline - looked
            if left <= 0 or is_late():
                raise late()
            found = None
            with suppress(queue.Empty):
                found = answers.get(timeout=min(left, TICK_SECONDS))
            before, looked = looked, time.monotonic()
            if note_suspension(looked - before):
                deadline += looked - before
            if found is not None:
                good, answer = found
                if not good:
                    raise answer
                return answer  # type: ignore[no-any-return]
    except BaseException:
        given_up.set()
        raise


# -- the thread --------------------------------------------------------------------------------------------------------

_watched: dict[int, SilenceGuard] = {}


class _Thread:
    alive = False
    ticked = -math.inf  # when it looked last
    lock = threading.Lock()


def _start() -> None:
    with _Thread.lock:
        if not _Thread.alive:
            _Thread.alive = True
            threading.Thread(target=_watch, name="shoestring-watchdog", daemon=True).start()


def _watch() -> None:
    used = _Thread.ticked = time.monotonic()
    while True:
        time.sleep(TICK_SECONDS)
        before, _Thread.ticked = _Thread.ticked, time.monotonic()
        _look_at_all(_Thread.ticked - before)
        now = time.monotonic()
        used = now if _watched else used
        if now - used > IDLE_SECONDS:
            with _Thread.lock:
                if not _watched:
                    _Thread.alive = False
                    return


def _look_at_all(since_last: float) -> None:
    """Look at all connections that wait, so many seconds after the last look."""
    suspended = note_suspension(since_last)
    for guard in list(_watched.values()):
        if suspended:
            guard.add_time(since_last)
        guard.look()


def _after_fork_in_child() -> None:
    _watched.clear()
    _Thread.alive, _Thread.lock = False, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
