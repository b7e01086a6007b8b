"""A training loop as a trial: report each epoch, stop when the study says so, save checkpoints and go on from them.

``TrainingCallback`` is for any loop, and the base of the adapters for XGBoost, LightGBM, Keras and PyTorch Lightning.
An adapter calls ``step`` at the end of each epoch and ends the training when ``step`` says so. An epoch that was not validated
has no value: it is counted, and not reported.

Epochs are counted from the start of the run, over all trials that go on from each other. The checkpoint folder holds

    epoch-10.ubj      the state after 10 epochs; the ending is that of the library
    training.json     {"epoch": 10, "value": 0.31, "file": "epoch-10.ubj"}

The second file is replaced in one step after the first is complete. So a process that is killed while it saves leaves the
checkpoint before it.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from .._format import listed
from .._validation import whole_number
from ..data.outcome import read_value
from ..errors import ConfigError, MethodError, OutcomeError
from ..execution.evaluate import LiveTrial

MAX_REPORTS = 50  # of one run, unless ``every`` says otherwise: each of them may ask a model whether to go on
INDEX = "training.json"


class TrainingCallback:
    """A training loop as a trial: ``step`` reports an epoch and says whether to stop.

    trial       the second argument of the objective
    fidelity    the fidelity that counts epochs, if the space has several
    epochs      how many epochs to train, if the space has no fidelity
    every       report every so many epochs, and the last; None: so that a run has at most 50 reports
    checkpoint  whether to save the state at the end, also of a run that is stopped. A number: after every so many epochs as well.
                None: if the fidelity says ``resumable=True``

    value       the value of the last epoch that has one: return it from the objective
    epoch       the last epoch
    done        how many epochs earlier trials of this run have trained
    asked       how many epochs this trial is to reach
    file        what the earlier trial has saved; None: train from the start

    >>> from shoestring.integrations.callback import TrainingCallback
    >>> def train(config, trial):
    ...     loop = TrainingCallback(trial)
    ...     state = loop.file.read_text() if loop.file else "new"
    ...     for epoch in loop:
    ...         if loop.step(1 / epoch, save=lambda path: path.write_text("weights")):
    ...             break
    ...     return loop.value
    >>> space = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 4, resumable=True))
    >>> st.minimize(train, space, 1, method=st.Random()).best.value
    0.25
    """

    suffix = ""  # of the checkpoint files, for libraries that look at it

    def __init__(
        self,
        trial: LiveTrial,
        *,
        fidelity: str | None = None,
        epochs: int | None = None,
        every: int | None = None,
        checkpoint: bool | int | None = None,
    ) -> None:
        if not isinstance(trial, LiveTrial):
            how = "write def train(config, trial): and give it that trial"
            raise MethodError(f"{type(self).__name__} needs the second argument of the objective, not {trial!r}; {how}")
        self.trial, self.fidelity = trial, _counting_fidelity(trial, fidelity)
        if self.fidelity is None:
            self.asked = None if epochs is None else whole_number(epochs, "epochs", 1)
        elif epochs is not None:
            raise MethodError(f"epochs= is what the fidelity {self.fidelity!r} says already; leave it out")
        else:
            self.asked = math.ceil(trial.fidelity[self.fidelity])
        if checkpoint is None:
            checkpoint = self.fidelity is not None and trial.space[self.fidelity].resumable is True  # type: ignore[union-attr]
        self._saves = bool(checkpoint)
        self._save_every = None if isinstance(checkpoint, bool) else whole_number(checkpoint, "checkpoint", 1)
        self._every = whole_number(every, "every", 1) if every is not None else max(1, math.ceil((self.asked or 0) / MAX_REPORTS))
        self.value: float | None = None
        self.file: Path | None = None
        self.done = 0
        if self._saves:
            self._load()
        self.epoch = self._reported_epoch = self.done
        self.stopped = False

    @property
    def remaining(self) -> int:
        """How many epochs are left to train."""
        if self.asked is None:
            raise MethodError("how many epochs to train is not known: give epochs=, or the space a fidelity: st.Fidelity(1, 50)")
        return max(0, self.asked - self.done)

    def __iter__(self) -> Iterator[int]:
        """The epochs that are left to train, counted from 1 at the start of the run."""
        return iter(range(self.done + 1, self.done + 1 + self.remaining))

    def step(self, value: float | None, epoch: int | None = None, save: Callable[[Path], object] | None = None) -> bool:
        """An epoch has ended with this value; True: end the training now, and return ``value`` from the objective.

        value   None: the epoch was not validated. The one before it stays
        epoch   counted from 1 at the start of the run; None: the one after the last
        save    a function that writes the state to a path
        """
        self.epoch = self.epoch + 1 if epoch is None else whole_number(epoch, "epoch", 1)
        last = self.asked is not None and self.epoch >= self.asked
        if value is not None:
            self.value = read_value(value)
            due = self.epoch // self._every > self._reported_epoch // self._every  # validation may skip the one that is due
            if last or due:
                self._report()
                self._reported_epoch = self.epoch
                self.stopped = not last and self.trial.should_stop()
        elif last:
            self.require_value()
        ends = last or self.stopped
        if self._saves and save is not None and (ends or (self._save_every and self.epoch % self._save_every == 0)):
            self._save(save)
        return ends

    def require_value(self) -> None:
        """Raise OutcomeError at the end of a training of which no epoch has a value."""
        if self.value is None:
            raise OutcomeError(
                f"the training has ended after epoch {self.epoch}, and none was validated: there is no value; validate more "
                "often, or give the fidelity a higher lowest value"
            )

    def _report(self) -> None:
        """Report the value, at the fidelity that the epoch is, where it is one."""
        value = self.value
        if value is None or not math.isfinite(value):
            return  # the result says so, and fails the trial
        if self.fidelity is None:
            self.trial.report(value)
            return
        try:  # an epoch below the lowest fidelity, or between two steps of it, is none
            at = self.trial.space[self.fidelity].check(min(self.epoch, self.trial.fidelity[self.fidelity]), self.fidelity)
        except ConfigError:
            return
        self.trial.report(value, **{self.fidelity: at})

    # -- checkpoints -------------------------------------------------------------------------------------------------

    def _save(self, save: Callable[[Path], object]) -> None:
        folder = self.trial.checkpoint_dir
        path = folder / f"epoch-{self.epoch}{self.suffix}"
        save(path)
        index = folder / f"{INDEX}.new"
        finite = self.value is not None and math.isfinite(self.value)
        index.write_text(json.dumps({"epoch": self.epoch, "value": self.value if finite else None, "file": path.name}))
        os.replace(index, folder / INDEX)
        for old in folder.glob(f"epoch-*{self.suffix}"):
            if old != path and old.is_file():
                with contextlib.suppress(OSError):
                    old.unlink()

    def _load(self) -> None:
        """Find what an earlier trial of this run has saved, if it is not beyond what this one is asked for."""
        folder = self.trial.checkpoint_dir
        try:
            known = json.loads((folder / INDEX).read_text())
            epoch, path = int(known["epoch"]), folder / Path(str(known["file"])).name
        except (OSError, ValueError, KeyError, TypeError):
            return
        if path.exists() and (self.asked is None or epoch <= self.asked):
            self.done, self.file, self.value = epoch, path, known.get("value")


def _counting_fidelity(trial: LiveTrial, name: str | None) -> str | None:
    """The fidelity that counts epochs; None if the space has none."""
    names = list(trial.space.fidelities)
    if name is not None and name not in names:
        raise MethodError(f"fidelity={name!r} is not a fidelity of this space; it has {listed(names) or 'none'}")
    if name is None and len(names) > 1:
        raise MethodError(f"the space has the fidelities {listed(names)}; say which one counts epochs: fidelity={names[0]!r}")
    return name or (names[0] if names else None)


def monitored(found: dict[str, Any], monitor: str | None, default: str | None) -> Any:
    """The value of the metric to watch, of those that a library has computed; an OutcomeError that names them."""
    name = monitor if monitor is not None else default
    if name is None or name not in found:
        known = listed([repr(each) for each in found]) or "none"
        what = "there is no metric to watch" if name is None else f"the metric {name!r} was not computed"
        raise OutcomeError(f"{what}; there are {known}: give monitor=, and data to validate on")
    return found[name]


def framework(name: str, package: str, what: str) -> Any:
    """A module of the library that an adapter is for; an ImportError that says how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f"{what} needs {package}, which cannot be imported ({error}): pip install {package}") from error
