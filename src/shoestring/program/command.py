"""A program's arguments with places for the parameters: ``python train.py --lr {lr} --out model-{trial}.pt``.

``{name}`` may stand anywhere in an argument, ``{{`` and ``}}`` are braces. The arguments go to the program as they are, one by
one: there is no shell that could read anything into them.

A parameter that is not active has no value. An argument that names one is left out; and where it is nothing but the placeholder
and an option stands before it (``--rate-drop {rate_drop}``), that option is left out as well.

One run of a program: in a process group of its own, its output into files, nothing on its standard input.

Its own group (and session) means that Ctrl-C in the terminal reaches Shoestring alone, which then decides; that everything the
program has started ends with it; and that it cannot ask a terminal for anything.

A program as an objective: what ``Study.minimize`` calls with a config and the live trial.

It only waits while the program runs, so several can run at once in threads of one process. The program's environment tells what
its arguments do not:

    SHOESTRING_CONFIG           the config as JSON
    SHOESTRING_TRIAL            the trial's number;   SHOESTRING_STUDY  the study's name
    SHOESTRING_RESULT           a file that may be written in place of a last line of output
    SHOESTRING_CHECKPOINT_DIR   a folder that all trials of this configuration share, whatever their fidelity
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from .._format import duration
from ..data.outcome import Outcome
from ..errors import ConfigError
from ..execution.evaluate import Failure, LiveTrial
from ..execution.orphan_guard import Guard
from ..space.space import Config, Space
from . import command as process
from .result_reader import Logs, TrialFiles, cut, read_answer, tail

EXTRAS = ("trial", "study", "result", "checkpoint_dir")  # unless a parameter is called so
_TOKEN = re.compile(r"(?P<open>\{\{)|(?P<close>\}\})|\{(?P<name>[^{}]*)\}|(?P<lone>[{}])")


@dataclass(frozen=True)
class Place:
    """Where a value goes."""

    name: str


@dataclass(frozen=True)
class Template:
    """Arguments for one space, checked when it is made.

    rest_by_environment  parameters that no placeholder names are the program's to read from SHOESTRING_CONFIG
    """

    arguments: tuple[str, ...]
    space: Space
    rest_by_environment: bool = False

    def __post_init__(self) -> None:
        if not self.arguments or not self.arguments[0]:
            raise ConfigError("there is no program to run; write it after --, for example: -- python train.py --lr {lr}")
        known = [*self.space, *(extra for extra in EXTRAS if extra not in self.space)]
        for place in self._places:
            if place not in known:
                names = ", ".join(f"{{{name}}}" for name in known)
                raise ConfigError(f"{{{place}}} is not a parameter; there are {names} (for a brace write {{{{ or }}}})")
        first = [piece.name for piece in self._pieces[0] if isinstance(piece, Place) and piece.name in self.space]
        if conditional := [name for name in first if self.space.parents(name)]:
            raise ConfigError(f"the program itself cannot depend on {conditional[0]}, which is not always active")
        if self.by_environment or self.rest_by_environment:
            return
        if unnamed := [name for name in self.space if name not in self._places]:
            raise ConfigError(
                f"no argument names {', '.join(f'{{{name}}}' for name in unnamed)}, so the program would not learn of it; "
                "add it to the program's arguments, or give --pass-as-json if the program reads SHOESTRING_CONFIG"
            )

    @property
    def by_environment(self) -> bool:
        """Whether no argument names a parameter at all: then the program reads SHOESTRING_CONFIG."""
        return not any(name in self.space for name in self._places)

    def fill(self, config: Mapping[str, Any], extras: Mapping[str, Any]) -> list[str]:
        """The arguments for a config; ``extras`` are the values of what is no parameter."""
        values = {**extras, **config}
        filled: list[str] = []
        option = False  # whether the argument before is an option by itself
        for text, pieces in zip(self.arguments, self._pieces, strict=True):
            if any(isinstance(piece, Place) and piece.name not in values for piece in pieces):  # not active
                if option and len(pieces) == 1:
                    filled.pop()
                option = False
                continue
            filled.append("".join(text_of(values[piece.name]) if isinstance(piece, Place) else piece for piece in pieces))
            option = text.startswith("-") and len(text) > 1 and "{" not in text
        return filled

    @cached_property
    def _pieces(self) -> list[list[str | Place]]:
        return [split(argument) for argument in self.arguments]

    @cached_property
    def _places(self) -> list[str]:
        return [piece.name for pieces in self._pieces for piece in pieces if isinstance(piece, Place)]


def split(argument: str) -> list[str | Place]:
    """An argument as texts and places."""
    pieces: list[str | Place] = []
    text, position = "", 0
    for token in _TOKEN.finditer(argument):
        text, position = text + argument[position : token.start()], token.end()
        if token["open"] or token["close"]:
            text += token[0][0]
            continue
        if token["lone"] or not token["name"]:
            raise ConfigError(f"{argument!r} has a brace that is no placeholder such as {{lr}}; write {{{{ or }}}} for a brace")
        pieces += [text, Place(token["name"])] if text else [Place(token["name"])]
        text = ""
    text += argument[position:]
    return [*pieces, text] if text or not pieces else pieces


def text_of(value: Any) -> str:
    """A value as an argument: texts as they are, numbers with all their digits, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


GRACE = 2.0  # seconds between the request to end and the end
LOOK = 0.25  # seconds between two looks at whether to go on


class TimedOut(Exception):
    """It ran longer than it was allowed to."""


class Interrupted(Exception):
    """Somebody wanted it to end."""


class Watchman(Protocol):
    """Somebody who ends the groups that he watches if we are killed."""

    def watch(self, group: int) -> None: ...
    def release(self, group: int) -> None: ...


def run(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    out: Path,
    err: Path,
    *,
    timeout: float | None = None,
    unwanted: Callable[[], bool] = lambda: False,
    watchman: Watchman | None = None,
) -> int:
    """Run it to its end and return its exit code; TimedOut or Interrupted after ending it, OSError if it cannot be started."""
    with out.open("wb") as output, err.open("wb") as errors:
        process = subprocess.Popen(
            list(arguments), env=dict(environment), stdin=subprocess.DEVNULL, stdout=output, stderr=errors, start_new_session=True
        )
    try:
        if watchman is not None:
            watchman.watch(process.pid)
        return wait(process, timeout, unwanted)
    except BaseException:  # KeyboardInterrupt too: whatever ends us ends the program
        end(process)
        raise
    finally:
        if watchman is not None:
            watchman.release(process.pid)


def wait(process: subprocess.Popen[bytes], timeout: float | None, unwanted: Callable[[], bool]) -> int:
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        if unwanted():
            raise Interrupted
        left = LOOK if deadline is None else min(LOOK, deadline - time.monotonic())
        try:
            return process.wait(max(left, 0.0))
        except subprocess.TimeoutExpired:
            if deadline is not None and time.monotonic() >= deadline:
                raise TimedOut from None


def end(process: subprocess.Popen[bytes]) -> None:
    """Ask the whole group to end, and end what has not after two seconds. An interruption in between only makes it quicker."""
    try:
        deadline = time.monotonic() + GRACE
        there = send(process, signal.SIGTERM)
        while time.monotonic() < deadline and (process.poll() is None or there):
            time.sleep(0.02)
            there = send(process, 0)
    finally:
        if hasattr(signal, "SIGKILL"):
            send(process, signal.SIGKILL)
        else:
            process.kill()
        process.wait()


def send(process: subprocess.Popen[bytes], number: int) -> bool:
    """A signal to the group; False when nobody is left in it."""
    if not hasattr(os, "killpg"):  # Windows has no groups of this kind
        if number:
            process.terminate()
        return process.poll() is None
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # macOS says so of a group of which only zombies are left
        return False
    return True


LINES = 5  # of standard error that are part of a failed trial's reason


class Cancelled(KeyboardInterrupt):
    """The program was ended since the whole run was: this is no result, and the trial may be asked again."""


class Calls:
    """Counts calls that have not returned, in whatever thread."""

    def __init__(self) -> None:
        self._open, self._changed = 0, threading.Condition()

    def __enter__(self) -> None:
        with self._changed:
            self._open += 1

    def __exit__(self, *error: object) -> None:
        with self._changed:
            self._open -= 1
            self._changed.notify_all()

    def wait(self, seconds: float) -> None:
        """Until all have returned, but no longer than so."""
        with self._changed:
            self._changed.wait_for(lambda: self._open == 0, seconds)


@dataclass
class ProgramObjective:
    """``study.minimize(ProgramObjective(template, logs, "xgb"), budget, workers=4, threads=True)``, within ``with objective:``.

    timeout  seconds for one run, None for as long as it takes
    """

    template: Template
    logs: Logs
    study: str
    timeout: float | None = None
    cancelled: bool = field(default=False, init=False)
    _guard: Guard = field(default_factory=Guard, init=False, repr=False)
    _calls: Calls = field(default_factory=Calls, init=False, repr=False)

    def __enter__(self) -> ProgramObjective:
        self.logs.prepare()
        self.cancelled = False
        self._guard.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        """End what still runs, in threads that nobody waits for any more, and see it ended."""
        self.cancel()
        self._calls.wait(2 * process.GRACE)
        self._guard.__exit__(*error)

    def __call__(self, config: Config, trial: LiveTrial) -> Outcome:
        with self._calls:
            return self.evaluate(config, trial)

    def evaluate(self, config: Config, trial: LiveTrial) -> Outcome:
        if self.cancelled:
            raise Cancelled
        files = self.logs.of(trial.number)
        files.fresh()
        folder = trial.checkpoint_dir
        extras = {"trial": trial.number, "study": self.study, "result": files.result.absolute(), "checkpoint_dir": folder}
        arguments = self.template.fill(config, {name: str(value) for name, value in extras.items()})
        try:
            code = process.run(
                arguments, self.environment(config, trial.number, files, folder), files.out, files.err,
                timeout=self.timeout, unwanted=lambda: self.cancelled, watchman=self._guard,
            )
        except process.TimedOut:
            assert self.timeout is not None
            late = f"it ran longer than its timeout of {duration(self.timeout)}"
            raise Failure(self.explain(late, files), censored=True) from None
        except process.Interrupted:
            raise Cancelled from None
        except (OSError, ValueError) as error:  # ValueError: a NUL in an argument, say
            raise Failure(f"{arguments[0]} could not be started: {error}") from None
        return self.outcome(code, files)

    def cancel(self) -> None:
        """End all programs that run, and start no other. It may be called by any thread, and by a signal handler."""
        self.cancelled = True  # no lock: a signal handler must not wait for one

    def environment(self, config: Config, number: int, files: TrialFiles, checkpoints: Path) -> dict[str, str]:
        return {
            **os.environ,
            "SHOESTRING_CONFIG": json.dumps(config),
            "SHOESTRING_TRIAL": str(number),
            "SHOESTRING_STUDY": self.study.replace("\0", ""),
            "SHOESTRING_RESULT": str(files.result.absolute()),
            "SHOESTRING_CHECKPOINT_DIR": str(checkpoints),
        }

    def outcome(self, code: int, files: TrialFiles) -> Outcome:
        """What came of a run that ended with an exit code."""
        if code != 0:
            raise Failure(self.explain(exit_text(code), files))
        answer = read_answer(files.result, files.out)
        if answer.error is not None:
            raise Failure(self.explain(answer.error, files), cost=answer.outcome.cost)
        return answer.outcome

    def explain(self, reason: str, files: TrialFiles) -> str:
        """A reason with the last lines of standard error, and where to read the rest; its first line says the most."""
        said = [line.rstrip() for line in tail(files.err, 8192).splitlines() if line.strip()][-LINES:]
        first = f"{reason}: {cut(said[-1].strip())}" if said else reason
        return "\n".join([f"{first} (log: {files.err})", *(f"  {line}" for line in said if len(said) > 1)])


def exit_text(code: int) -> str:
    """Exit code 1; ended by SIGKILL."""
    if code >= 0:
        return f"exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"ended by {name}" + (", perhaps for want of memory" if name == "SIGKILL" else "")
