"""A program as an objective: what ``Study.minimize`` calls with a config and the live trial.

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
import signal
import threading
from dataclasses import dataclass, field
from pathlib import Path

from ..evaluate import Failure, LiveTrial
from ..outcome import Outcome
from ..space import Config
from ..wording import duration
from . import process
from .answer import cut, read_answer, tail
from .guard import Guard
from .logs import Logs, TrialFiles
from .template import Template

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

