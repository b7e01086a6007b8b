"""The program of a worker process, and the message channel between it and the coordinator.

A worker loads the objective once. It then evaluates one trial after the other until the coordinator closes the channel. The
objective gets an ordinary live trial. Its questions go to the coordinator, which knows the budget and the model and answers while
it waits for results. Its reports are sent at once, so that they are kept even if the worker is killed.

Messages are pickles over a socket, each preceded by its length. Both ends are processes of this library on the same machine, and
no other process can connect to the socket. None of these messages is stored or sent over a network.

    coordinator -> worker   (objective, space, raise_errors) once; (trial, folder) for each trial; (ok, answer) for each question
    worker -> coordinator   (trial number, "started", time), (trial number, "report", report), (trial number, question), and at
                            the end of a trial (trial number, *reply), with a reply of ``serialization``
    questions               "allowance", "checkpoint_dir", "prune_reason"
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
from .describe import safe_text
from .evaluate import LiveTrial, Objective
from .process_tree import MARK_VARIABLE, end_marked
from .serialization import evaluate_to_reply

LENGTH_PREFIX = struct.Struct("!Q")
RECEIVE_BYTES = 1 << 16
ORPHAN_GRACE_SECONDS = 1.0  # from the request to end to the kill, for what a trial has left behind
QUESTIONS = ("allowance", "checkpoint_dir", "prune_reason")


# -- the worker process ------------------------------------------------------------------------------------------------


def run_worker(fileno: int) -> None:
    """Evaluate trials until the coordinator closes its end of the socket, or has died."""
    with socket.socket(fileno=fileno) as end:
        channel, left_behind = Channel(end), LeftBehind()
        try:
            pickled, space, raise_errors = channel.receive()
            objective = load_objective(pickled, channel)
            while objective is not None:
                trial, folder = channel.receive()
                evaluate_trial(objective, trial, folder, space, raise_errors, channel)
                left_behind.end()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            pass  # the coordinator is gone


def load_objective(pickled: bytes, channel: Channel) -> Objective | None:
    """The objective. If it cannot be loaded here, the reason is sent and the result is None."""
    try:
        objective: Objective = pickle.loads(pickled)
    except (Exception, SystemExit) as error:
        channel.send(None, "load_error", f"{type(error).__name__}: {safe_text(error)}")
        return None
    return objective


def evaluate_trial(
    objective: Objective, trial: Trial, folder: str, space: Space, raise_errors: bool, channel: Channel
) -> None:
    """Evaluate one trial in the coordinator's working directory: the trial before it may have changed the worker's."""
    os.chdir(folder)
    connection = TrialConnection(trial.number, channel)
    connection.send("started", time.perf_counter())  # all processes of a machine share this clock
    try:
        reply = evaluate_to_reply(objective, trial, remote_live_trial(trial, space, connection), raise_errors)
    finally:
        for stream in (sys.stdout, sys.stderr):  # so that the output is seen even if this process is killed next
            with contextlib.suppress(Exception):  # the objective may have closed it, or set it to None
                stream.flush()
    connection.close(*reply)


def remote_live_trial(trial: Trial, space: Space, connection: TrialConnection) -> LiveTrial:
    """The live trial of an objective in a worker process: the coordinator answers its questions."""

    def left() -> Allowance:
        allowance: Allowance = connection.ask("allowance")
        return allowance

    def folder() -> Path:
        return Path(connection.ask("checkpoint_dir"))

    def prune_reason(reports: Sequence[Mapping[str, Any]]) -> str | None:
        reason: str | None = connection.ask("prune_reason")  # the coordinator has the reports already
        return reason

    def on_report(report: Mapping[str, Any]) -> None:
        connection.send("report", report)

    own, before = dict(trial.fidelity), trial.resumed_from
    return LiveTrial(trial.number, trial.config, own, space, left, folder, prune_reason, on_report, resumed_from=before)


def answer_question(live: LiveTrial, question: str) -> tuple[bool, Any]:
    """The coordinator's answer to a question of ``remote_live_trial``: (True, answer), or (False, reason why there is none)."""
    answers: dict[str, Callable[[], Any]] = {
        "allowance": live.left,
        "checkpoint_dir": lambda: str(live.folder()),
        "prune_reason": lambda: live.prune_reason(live.reports),
    }
    try:
        return True, answers[question]()
    except OSError as error:  # the folder cannot be created
        return False, str(error)


class LeftBehind:
    """Ends the processes that a trial has left behind, after the trial: a worker lives on for the next one.

    They are searched for only if this process has started any. Children of this process stay until it ends itself, as its memory
    does: they may be a pool or a server that the next trial uses again.
    """

    def __init__(self) -> None:
        self._mark = os.environ.get(MARK_VARIABLE, "").rpartition(",")[2]
        self._ended = self._ended_children()

    def end(self) -> None:
        """End what has lost its parent."""
        before, self._ended = self._ended, self._ended_children()
        if self._mark and (before != self._ended or self._has_children()):
            end_marked([self._mark], ORPHAN_GRACE_SECONDS, orphans_only=True)

    @staticmethod
    def _ended_children() -> object:
        """The resources that ended children have used: they become more with each of them."""
        import resource  # Linux and macOS have it; this module is imported on other systems too

        return resource.getrusage(resource.RUSAGE_CHILDREN)

    @staticmethod
    def _has_children() -> bool:
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return False
        except AttributeError:  # macOS
            return True
        return True


class TrialConnection:
    """The connection of one trial to the coordinator, for any thread of its objective. Each message starts with its number.

    It closes with the trial. Else a thread that the objective has left behind would read the messages of the next trial.
    """

    def __init__(self, number: int, channel: Channel) -> None:
        self.number, self.channel, self.open, self._lock = number, channel, True, Lock()

    def send(self, *message: Any) -> None:
        """Send a message; nothing happens once the trial is over."""
        with self._lock:
            if self.open:
                self.channel.send(self.number, *message)

    def ask(self, question: str) -> Any:
        """Send a question and wait for the answer; raises OSError if there is none."""
        with self._lock:
            if not self.open:
                raise OSError(f"trial {self.number} is over")
            self.channel.send(self.number, question)
            answered, answer = self.channel.receive()
        if not answered:
            raise OSError(answer)
        return answer

    def close(self, *message: Any) -> None:
        """Send the last message."""
        self.send(*message)
        self.open = False


# -- messages ----------------------------------------------------------------------------------------------------------


class Channel:
    """One end of a socket that carries messages. ``closed`` is True once the other end is gone."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self.closed = False
        self._bytes = bytearray()

    def send(self, *message: Any) -> None:
        """Send a whole message; raises OSError if the other end is gone."""
        data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
        self.socket.sendall(LENGTH_PREFIX.pack(len(data)) + data)

    def receive(self) -> Any:
        """Wait for the next message; raises EOFError once the other end is gone."""
        while (message := self._next_message()) is None:
            self._read(0)
            if self.closed:
                raise EOFError
        return message

    def received(self) -> Iterator[Any]:
        """The messages that have arrived completely; never waits. Those that the caller does not take stay for the next call."""
        while not self.closed and self._read(socket.MSG_DONTWAIT):
            pass
        while (message := self._next_message()) is not None:
            yield message

    def _read(self, flags: int) -> bool:
        """Read some more bytes; False if there are none at present."""
        try:
            piece = self.socket.recv(RECEIVE_BYTES, flags)
        except BlockingIOError:
            return False
        except OSError:  # connection reset: the process was killed with unread data
            piece = b""
        self._bytes += piece
        self.closed = not piece
        return True

    def _next_message(self) -> Any:
        """Remove and return the first message; None if it has not arrived completely."""
        if len(self._bytes) < LENGTH_PREFIX.size:
            return None
        (length,) = LENGTH_PREFIX.unpack_from(self._bytes)
        end = LENGTH_PREFIX.size + length
        if len(self._bytes) < end:
            return None
        message = pickle.loads(bytes(self._bytes[LENGTH_PREFIX.size : end]))
        del self._bytes[:end]
        return message

    def shut_down(self) -> None:
        """Tell the other end that no more messages will come."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.socket.close()
