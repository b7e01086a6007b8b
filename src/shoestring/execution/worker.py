"""Messages between a coordinator and one of its workers: pickles over a socket, each after its length.

Both ends are processes of ours on the same machine, and the socket has no name that anybody else could use; nothing of this goes
to storage or over a network.

What runs in a worker process: it loads the objective once, and evaluates one trial after the other until nobody asks.

The live trial that an objective gets here is the ordinary one; its questions go to the coordinator, which knows the budget and
the model and answers while it waits, and its reports go there at once, so that they are kept even if this process is killed.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

from ..budget import Allowance
from ..data.trial import Trial
from ..space.space import Space
from .evaluate import LiveTrial, Objective
from .serialization import attempt

LENGTH = struct.Struct("!Q")
PIECE = 1 << 16


class Channel:
    """One end. ``closed`` once the other end is gone."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self.closed = False
        self._bytes = bytearray()

    def send(self, *message: Any) -> None:
        """The whole message; raises OSError if nobody is there to take it."""
        data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
        self.socket.sendall(LENGTH.pack(len(data)) + data)

    def receive(self) -> Any:
        """The next message, when it comes; raises EOFError when none can come any more."""
        while (message := self._next()) is None:
            self._take(0)
            if self.closed:
                raise EOFError
        return message

    def arrived(self) -> Iterator[Any]:
        """The messages that are here as a whole; never waits. One that was not asked for stays for the next time."""
        while not self.closed and self._take(socket.MSG_DONTWAIT):
            pass
        while (message := self._next()) is not None:
            yield message

    def _take(self, flags: int) -> bool:
        """Some more bytes; False if there are none at present."""
        try:
            piece = self.socket.recv(PIECE, flags)
        except BlockingIOError:
            return False
        except OSError:  # a reset: the process was killed with something unread
            piece = b""
        self._bytes += piece
        self.closed = not piece
        return True

    def _next(self) -> Any:
        """The first message if it is here as a whole, or else None."""
        if len(self._bytes) < LENGTH.size:
            return None
        (length,) = LENGTH.unpack_from(self._bytes)
        end = LENGTH.size + length
        if len(self._bytes) < end:
            return None
        message = pickle.loads(bytes(self._bytes[LENGTH.size : end]))
        del self._bytes[:end]
        return message

    def hang_up(self) -> None:
        """Say that nothing more will come."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.socket.close()


def work(fileno: int) -> None:
    """Until the coordinator closes its end, or is gone."""
    with socket.socket(fileno=fileno) as end:
        channel = Channel(end)
        try:
            packed, space, raise_errors = channel.receive()
            objective = load(packed, channel)
            while objective is not None:
                trial, folder = channel.receive()
                serve(objective, trial, folder, space, raise_errors, channel)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            pass  # nobody is there any more


def load(packed: bytes, channel: Channel) -> Objective | None:
    """The objective; None, after saying why, if it cannot be had here."""
    try:
        objective: Objective = pickle.loads(packed)
    except Exception as error:
        channel.send(None, "unusable", f"{type(error).__name__}: {error}")
        return None
    return objective


def serve(objective: Objective, trial: Trial, folder: str, space: Space, raise_errors: bool, channel: Channel) -> None:
    """Evaluate one trial, in the coordinator's folder whatever the last one did."""
    os.chdir(folder)
    line = Line(trial.number, channel)
    line.say("begun", time.perf_counter())  # the same clock in all processes of a machine
    try:
        reply = attempt(objective, trial, distant(trial, space, line), raise_errors)
    finally:
        for stream in (sys.stdout, sys.stderr):  # what was printed is seen even if this process is killed next
            stream.flush()
    line.close(*reply)


class Line:
    """To the coordinator, for as long as a trial runs, and for any thread of its objective. Messages begin with its number."""

    def __init__(self, number: int, channel: Channel) -> None:
        self.number, self.channel, self.open, self._lock = number, channel, True, Lock()

    def say(self, *message: Any) -> None:
        with self._lock:
            if self.open:
                self.channel.send(self.number, *message)

    def ask(self, question: str) -> Any:
        """The answer; an OSError if there is none."""
        with self._lock:
            if not self.open:  # a thread that goes on after its trial would take what is meant for the next one
                raise OSError(f"trial {self.number} is over")
            self.channel.send(self.number, question)
            answered, answer = self.channel.receive()
        if not answered:
            raise OSError(answer)
        return answer

    def close(self, *message: Any) -> None:
        """The last message."""
        self.say(*message)
        self.open = False


def distant(trial: Trial, space: Space, line: Line) -> LiveTrial:
    """The trial as its objective sees it, from another process than the coordinator's."""

    def left() -> Allowance:
        allowance: Allowance = line.ask("left")
        return allowance

    def folder() -> Path:
        return Path(line.ask("folder"))

    def hopeless(reports: Sequence[Mapping[str, Any]]) -> str | None:
        reason: str | None = line.ask("hopeless")  # the reports are there already
        return reason

    def told(report: Mapping[str, Any]) -> None:
        line.say("report", report)

    return LiveTrial(trial.number, trial.config, dict(trial.fidelity), space, left, folder, hopeless, told)


def answer(live: LiveTrial, question: Sequence[Any]) -> tuple[bool, Any]:
    """The other end: (True, answer), or (False, why there is none)."""
    asked: dict[str, Callable[[], Any]] = {
        "left": live.left,
        "folder": lambda: str(live.folder()),
        "hopeless": lambda: live.hopeless(live.reports),
    }
    try:
        return True, asked[question[0]]()
    except OSError as error:  # no folder can be made
        return False, str(error)
