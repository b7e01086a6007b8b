"""An external program as an objective: its command line, its process, and the function that ``Study.minimize`` calls.

**Command line.** ``python train.py --lr {lr} --out model-{trial}.pt``: ``{name}`` may stand anywhere in an argument, and ``{{``
and ``}}`` are literal braces. Each argument is passed to the program as it is. No shell is involved, so no character has a
special meaning. A conditional parameter that is inactive has no value: an argument that names it is dropped. If that argument is
only the placeholder and follows an option (``--rate-drop {rate_drop}``), the option is dropped too.

**Process.** Each run has its own process group and session, its output goes to files, and its standard input is empty. So
Ctrl-C in the terminal reaches only Shoestring, which decides what to do, and the program cannot wait for input from a terminal.
When the program has ended, or a timeout or an interruption ends it, everything that it started is ended too: its process group,
and what has left the group and is found by a mark in its environment (see ``execution/process_tree.py``).

**Objective.** It only waits while the program runs, so several programs can run at once in threads of one process. These
environment variables give the program what its arguments do not:

    SHOESTRING_CONFIG           the config as JSON
    SHOESTRING_TRIAL            the trial's number;   SHOESTRING_STUDY  the study's name
    SHOESTRING_RESULT           a file that may be written instead of printing the result as the last line
    SHOESTRING_CHECKPOINT_DIR   a folder that all trials of this configuration share, at every fidelity; also {checkpoint}
    SHOESTRING_RESUMED_FROM     what the trial goes on from, as JSON: {"number": 3, "fidelity": {"epochs": 10}}, if it does
"""

from __future__ import annotations

import contextlib
import json
import math
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
from typing import Any

from .._format import duration
from ..data.outcome import Outcome
from ..errors import ConfigError
from ..execution.describe import MAX_TRACEBACK_BYTES
from ..execution.evaluate import Failure, LiveTrial
from ..execution.orphan_guard import OrphanGuard
from ..execution.process_tree import end_marked, has_exited, is_running, marked_environment, new_mark
from ..space.space import Config, Space
from .result_reader import Logs, TrialFiles, open_private, read_result, shorten, tail

EXTRA_PLACEHOLDERS = ("trial", "study", "result", "checkpoint_dir", "checkpoint")  # a parameter of the same name takes precedence
TERMINATION_GRACE_SECONDS = 2.0  # between SIGTERM and SIGKILL
POLL_SECONDS = 0.05  # how often a running program is checked for its end and for cancellation
MIN_POLL_SECONDS = 0.0005  # at its start: a program may be fast
EXIT_POLL_SECONDS = 0.02  # how often a program that was sent SIGTERM is checked for its end
_TOKEN = re.compile(r"(?P<open>\{\{)|(?P<close>\}\})|\{(?P<name>[^{}]*)\}|(?P<lone>[{}])")


# -- the command line ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Placeholder:
    """``{name}`` in an argument."""

    name: str


@dataclass(frozen=True)
class CommandTemplate:
    """The arguments of a program with placeholders for the parameters of one space; checked when it is made.

    rest_from_environment   allow parameters that no placeholder names: the program reads them from SHOESTRING_CONFIG
    """

    arguments: tuple[str, ...]
    space: Space
    rest_from_environment: bool = False

    def __post_init__(self) -> None:
        if not self.arguments or not self.arguments[0]:
            raise ConfigError("there is no program to run; write it after --, for example: -- python train.py --lr {lr}")
        known = [*self.space, *(extra for extra in EXTRA_PLACEHOLDERS if extra not in self.space)]
        for used in self._names:
            if used not in known:
                names = ", ".join(f"{{{name}}}" for name in known)
                raise ConfigError(f"{{{used}}} is not a parameter; there are {names} (for a brace write {{{{ or }}}})")
        program = [part.name for part in self._parsed[0] if isinstance(part, Placeholder) and part.name in self.space]
        if conditional := [name for name in program if self.space.parents(name)]:
            raise ConfigError(f"the program itself cannot depend on {conditional[0]}, which is not always active")
        if self.config_from_environment or self.rest_from_environment:
            return
        if unnamed := [name for name in self.space if name not in self._names]:
            raise ConfigError(
                f"no argument names {', '.join(f'{{{name}}}' for name in unnamed)}, so the program would not get the value; "
                "add it to the program's arguments, or give --pass-as-json if the program reads SHOESTRING_CONFIG"
            )

    @property
    def config_from_environment(self) -> bool:
        """Whether no argument names any parameter: then the program reads SHOESTRING_CONFIG."""
        return not any(name in self.space for name in self._names)

    def fill(self, config: Mapping[str, Any], extras: Mapping[str, Any]) -> list[str]:
        """The arguments for a config; ``extras`` are the values of the placeholders that are no parameters."""
        values = {**extras, **config}
        filled: list[str] = []
        after_option = False  # whether the argument before is an option without a value
        for text, parts in zip(self.arguments, self._parsed, strict=True):
            if any(isinstance(part, Placeholder) and part.name not in values for part in parts):  # inactive
                if after_option and len(parts) == 1:
                    filled.pop()
                after_option = False
                continue
            filled.append("".join(argument_text(values[part.name]) if isinstance(part, Placeholder) else part for part in parts))
            after_option = text.startswith("-") and len(text) > 1 and "{" not in text
        return filled

    @cached_property
    def _parsed(self) -> list[list[str | Placeholder]]:
        return [parse_argument(argument) for argument in self.arguments]

    @cached_property
    def _names(self) -> list[str]:
        return [part.name for parts in self._parsed for part in parts if isinstance(part, Placeholder)]


def parse_argument(argument: str) -> list[str | Placeholder]:
    """Split an argument into literal texts and placeholders."""
    parts: list[str | Placeholder] = []
    text, position = "", 0
    for token in _TOKEN.finditer(argument):
        text, position = text + argument[position : token.start()], token.end()
        if token["open"] or token["close"]:
            text += token[0][0]
            continue
        if token["lone"] or not token["name"]:
            raise ConfigError(f"{argument!r} has a brace that is no placeholder such as {{lr}}; write {{{{ or }}}} for a brace")
        parts += [text, Placeholder(token["name"])] if text else [Placeholder(token["name"])]
        text = ""
    text += argument[position:]
    return [*parts, text] if text or not parts else parts


def argument_text(value: Any) -> str:
    """A value as an argument: a string as it is, a number with all its digits, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


# -- the process -----------------------------------------------------------------------------------------------------


class ProgramTimeout(Exception):
    """The program ran longer than its timeout and was ended."""


class Cancelled(KeyboardInterrupt):
    """The program was ended because the whole run ends. This is not a result: the trial may be asked again."""


def run_program(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    files: TrialFiles,
    *,
    timeout: float | None,
    cancelled: Callable[[], bool],
    guard: OrphanGuard,
) -> int:
    """Run a program until it exits and return its exit code. What it has started and left behind is ended.

    OSError if it cannot be started; ProgramTimeout or Cancelled after it was ended.
    """
    mark = new_mark()
    with open_private(files.out) as output, open_private(files.err) as errors:
        process = subprocess.Popen(
            list(arguments), env={**environment, **marked_environment(mark)},
            stdin=subprocess.DEVNULL, stdout=output, stderr=errors, start_new_session=True,
        )  # fmt: skip
    try:
        guard.watch(process.pid, mark)
        wait_for_exit(process, timeout, cancelled)
    finally:  # after KeyboardInterrupt too: nothing must outlive this call
        end_processes(process, mark)
        guard.release(process.pid, mark)
    return process.returncode


def wait_for_exit(process: subprocess.Popen[bytes], timeout: float | None, cancelled: Callable[[], bool]) -> None:
    """Wait until it has exited; ProgramTimeout or Cancelled if that comes first. Its exit code is not collected yet."""
    deadline = math.inf if timeout is None else time.monotonic() + timeout
    pause = MIN_POLL_SECONDS
    while not has_exited(process):
        if cancelled():
            raise Cancelled
        if time.monotonic() >= deadline:
            raise ProgramTimeout
        time.sleep(max(0.0, min(pause, deadline - time.monotonic())))
        pause = min(2 * pause, POLL_SECONDS)


def end_processes(process: subprocess.Popen[bytes], mark: str) -> None:
    """End the program's group and all that has its mark: by SIGTERM, and by SIGKILL after the grace time; collect its exit code.

    An interruption in between only skips the wait.
    """
    interrupted = True
    try:
        deadline = time.monotonic() + TERMINATION_GRACE_SECONDS
        signal_group(process, signal.SIGTERM)
        end_marked([mark], TERMINATION_GRACE_SECONDS, asked_groups=[process.pid])
        while (not has_exited(process) or is_running(process.pid)) and time.monotonic() < deadline:
            time.sleep(EXIT_POLL_SECONDS)
        interrupted = False
    finally:
        if hasattr(signal, "SIGKILL"):
            signal_group(process, signal.SIGKILL)
        else:
            process.kill()
        if interrupted:
            end_marked([mark], 0.0)
        process.wait()


def signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    """Send a signal to the process group, if there is anybody left in it."""
    if not hasattr(os, "killpg"):  # Windows has no process groups of this kind
        process.terminate()
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):  # PermissionError: on macOS, if all of them have exited
        os.killpg(process.pid, number)


def exit_text(code: int) -> str:
    """An exit code in words: "exit code 1", "ended by SIGKILL"."""
    if code >= 0:
        return f"exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"ended by {name}" + (", perhaps because memory ran out" if name == "SIGKILL" else "")


# -- the objective ---------------------------------------------------------------------------------------------------


class CallCounter:
    """Counts the calls, in all threads, that have not returned yet."""

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
        """Wait until all calls have returned, at most for so many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self._open == 0, seconds)


@dataclass
class ProgramObjective:
    """An objective that runs a program for each trial; use it inside ``with objective:``.

    ``study.minimize(ProgramObjective(template, logs, "xgb"), budget, workers=4, threads=True)``

    timeout   seconds for one run; None for no limit
    """

    template: CommandTemplate
    logs: Logs
    study: str
    timeout: float | None = None
    cancelled: bool = field(default=False, init=False)
    _guard: OrphanGuard = field(default_factory=OrphanGuard, init=False, repr=False)
    _calls: CallCounter = field(default_factory=CallCounter, init=False, repr=False)

    def __enter__(self) -> ProgramObjective:
        self.logs.create()
        self.cancelled = False
        self._guard.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        """End the programs that still run in other threads, and wait until they have ended."""
        self.cancel()
        self._calls.wait(2 * TERMINATION_GRACE_SECONDS)
        self._guard.__exit__(*error)

    def __call__(self, config: Config, trial: LiveTrial) -> Outcome:
        with self._calls:
            return self.evaluate(config, trial)

    def cancel(self) -> None:
        """End all running programs and start no others. Any thread and any signal handler may call this."""
        self.cancelled = True  # no lock: a signal handler must not wait for one

    def evaluate(self, config: Config, trial: LiveTrial) -> Outcome:
        """Run the program for one trial and read its result; Failure if it failed, Cancelled if the run ends."""
        if self.cancelled:
            raise Cancelled
        files = self.logs.files(trial.number)
        files.rotate()
        folder = trial.checkpoint_dir
        extras = {"trial": trial.number, "study": self.study, "result": files.result.absolute(), "checkpoint_dir": folder}
        extras["checkpoint"] = folder
        arguments = self.template.fill(config, {name: str(value) for name, value in extras.items()})
        try:
            code = run_program(
                arguments, self.environment(config, trial, files, folder), files,
                timeout=self.timeout, cancelled=lambda: self.cancelled, guard=self._guard,
            )
        except ProgramTimeout:
            assert self.timeout is not None
            reason = f"it ran longer than its timeout of {duration(self.timeout)}"
            raise self.failure(reason, files, kind="timeout", censored=True) from None
        except (OSError, ValueError) as error:  # ValueError: an argument holds a NUL character, for example
            raise Failure(f"{arguments[0]} could not be started: {error}", kind="could not be started") from None
        return self.outcome(code, files)

    def environment(self, config: Config, trial: LiveTrial, files: TrialFiles, checkpoints: Path) -> dict[str, str]:
        """The environment variables of the program."""
        before = trial.resumed_from
        outer = {name: value for name, value in os.environ.items() if name != "SHOESTRING_RESUMED_FROM"}
        known = {} if before is None else {"number": before.number, "fidelity": dict(before.fidelity)}
        return {
            **outer,
            **({"SHOESTRING_RESUMED_FROM": json.dumps(known)} if known else {}),
            "SHOESTRING_CONFIG": json.dumps(config),
            "SHOESTRING_TRIAL": str(trial.number),
            "SHOESTRING_STUDY": self.study.replace("\0", ""),
            "SHOESTRING_RESULT": str(files.result.absolute()),
            "SHOESTRING_CHECKPOINT_DIR": str(checkpoints),
        }

    def outcome(self, code: int, files: TrialFiles) -> Outcome:
        """The outcome of a run that ended with an exit code; Failure if it failed or reported no result."""
        if code != 0:
            raise self.failure(exit_text(code), files, kind=exit_text(code))
        result = read_result(files.result, files.out)
        if result.error is not None:
            attrs = result.outcome.attrs if isinstance(result.outcome.attrs, dict) else None
            kind = None if result.kind is None else shorten(result.kind, 500)
            raise self.failure(result.error, files, kind=kind, cost=result.outcome.cost, attrs=attrs)
        return result.outcome

    def failure(self, reason: str, files: TrialFiles, **how: Any) -> Failure:
        """The failure with its reason on one line: with the last line of standard error, and the path of a log that is not empty.

        The end of standard error is kept with the trial as its traceback: the log files are on this machine only.
        """
        errors = tail(files.err, MAX_TRACEBACK_BYTES).strip()
        line = shorten(" ".join(reason.split()), 500)
        last = f": {shorten(errors.splitlines()[-1].strip())}" if errors else ""
        log = files.err if errors else next((path for path in (files.result, files.out) if tail(path, 1)), files.out)
        return Failure(f"{line}{last} (log: {log})", traceback=errors or None, **how)
