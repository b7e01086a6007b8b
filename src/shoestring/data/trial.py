"""Trials and suggestions: immutable records of what was evaluated, and of why it was suggested."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, NamedTuple

from .._format import rounded
from .._optuna_names import OF_A_RECORD, hint_attributes
from ..space.space import Config

MAX_CONFIG_ENTRIES_SHOWN = 6  # in the repr of a trial
MAX_CHARACTERS_SHOWN = 40  # of one value or error, in the repr of a trial


class State(StrEnum):
    """The state of a trial: running, done, failed or abandoned.

    Compare with it, or with its text. Running: no result yet. Abandoned: ended without a result, and the config may be suggested
    again.

    >>> trial = st.Trial(0, {"x": 0.5}, state=st.State.DONE, value=0.1)
    >>> trial.state == "done", trial.state is st.State.DONE
    (True, True)
    """

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    ABANDONED = "abandoned"


class ResumedFrom(NamedTuple):
    """What a trial went on from: the earlier trial, the fidelities that it had reached, and what was paid up to there.

    number    of the earlier trial
    fidelity  the fidelities that it had reached, by name
    paid      what all trials of the run up to it have cost; None if that is not known
    """

    number: int
    fidelity: Mapping[str, float]
    paid: float | None = None


@dataclass(frozen=True)
class Suggestion:
    """A suggested config, and what the optimizer knew when it chose it.

    A search method of your own returns one. ``trial.suggestion`` holds it as a dict.

    by         name of the search method
    why        the reason in words
    predicted  posterior mean at the config, in the user's units
    gain       expected improvement on the best value, in the user's units
    cost       expected cost
    front      a few points of the EI-cost Pareto front, the chosen point, and the alpha that it corresponds to
    model      warm start of the next fit: hyperparameters, output transform, the number of trials at the time
    plan       place of the trial in the schedule of a method such as Hyperband, ready for JSON
    decision   why ``method="auto"`` chose this method and not another, in words: see ``study.explain()``

    >>> st.Suggestion({"x": 0.5}, by="Middle", why="a first guess").to_dict()
    {'by': 'Middle', 'why': 'a first guess'}
    """

    config: Config
    by: str
    why: str
    predicted: float | None = None
    gain: float | None = None
    cost: float | None = None
    front: Mapping[str, Any] | None = None
    model: Mapping[str, Any] | None = None
    plan: Mapping[str, Any] | None = None
    decision: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """All that is known, without the config; ready for JSON."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {name: value for name, value in values.items() if value is not None and name != "config"}


@hint_attributes(OF_A_RECORD)
@dataclass(frozen=True, slots=True)  # slots: of a hundred thousand trials, 12 MB less
class Trial:
    """One evaluation of the objective: what ``study.ask()`` returns, and what the history consists of. It never changes.

    number      counts from 0
    config      a plain dict, fidelities included
    fidelity    the fidelities alone
    state       an ``st.State``
    value       the result, None without one
    folds       the results of the folds of a cross-validation
    gradient    d value / d parameter, by name
    cost        in the study's unit; of a trial that went on from an earlier one, what was paid for the rest
    seconds     the measured time
    error       why it failed, in one line, with the line of the user's code
    traceback   the whole story
    reports     intermediate values, as the objective reported them
    metrics     further numbers to look at, by name
    attrs       further facts, ready for JSON
    added       a result from elsewhere: the study has not paid for it
    suggestion  ``Suggestion.to_dict()``, and as ``rule`` the numbers that the stopping rule had looked at before it
    basis       the data that the suggestion was computed from (see ``replay``)

    >>> study = st.Study(st.Space(x=st.Float(0, 1)))
    >>> trial = study.tell(study.ask(), 0.31, cost=12.5, metrics={"accuracy": 0.93})
    >>> trial.number, str(trial.state), trial.value, trial.cost, trial.metrics["accuracy"]
    (0, 'done', 0.31, 12.5, 0.93)
    >>> trial.finished, trial.charge, trial.error
    (True, 12.5, None)
    """

    number: int
    config: Config
    state: State = State.RUNNING
    value: float | None = None
    cost: float | None = None
    folds: tuple[float, ...] | None = None
    gradient: Mapping[str, float] | None = None
    fidelity: Mapping[str, float] = field(default_factory=dict)
    seconds: float | None = None
    error: str | None = None
    reports: tuple[Mapping[str, Any], ...] = ()
    suggestion: Mapping[str, Any] = field(default_factory=dict)
    censored: bool = False  # the cost is a lower bound, since the evaluation was cut off
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    attrs: Mapping[str, Any] = field(default_factory=dict)
    traceback: str | None = field(default=None, compare=False)
    added: bool = False
    asked_at: float | None = field(default=None, compare=False)  # seconds since 1970
    basis: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def __repr__(self) -> str:
        """``Trial 12: done, value 0.031, cost 12.5, lr=0.001, depth=5``"""
        parts = [str(self.state)]
        for name, shown in (("value", self.value), ("cost", self.cost)):
            if shown is not None:
                parts.append(f"{name} {_short(shown)}")
        if self.error is not None:
            parts.append(f"error: {_short(self.error)}")
        config = list(self.config.items())
        parts += [f"{name}={_short(value)}" for name, value in config[:MAX_CONFIG_ENTRIES_SHOWN]]
        if len(config) > MAX_CONFIG_ENTRIES_SHOWN:
            parts.append(f"and {len(config) - MAX_CONFIG_ENTRIES_SHOWN} more")
        return f"Trial {self.number}: {', '.join(parts)}"

    @property
    def finished(self) -> bool:
        """Whether the trial has ended, with a result or without."""
        return self.state is not State.RUNNING

    @property
    def charge(self) -> float:
        """What the trial has cost the study so far: nothing if it comes from elsewhere."""
        return 0.0 if self.added or self.cost is None else self.cost

    @property
    def resumed_from(self) -> ResumedFrom | None:
        """What the trial went on from, where its fidelity is resumable; None for a run from the start.

        >>> study = st.Study(st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 50, resumable=True)))
        >>> for epochs in (10, 50):
        ...     study.enqueue({"x": 0.5, "epochs": epochs})
        ...     _ = study.tell(study.ask(), 1 / epochs, cost=epochs if epochs == 10 else 40)
        >>> study.history[1].resumed_from
        ResumedFrom(number=0, fidelity={'epochs': 10}, paid=10.0)
        """
        found = self.suggestion.get("resumed_from")
        return None if found is None else ResumedFrom(found["number"], found["fidelity"], found.get("paid"))

    def finish(self, state: State, **results: Any) -> Trial:
        """The same trial with its results.

        >>> st.Trial(0, {"x": 0.5}).finish(st.State.DONE, value=0.1).value
        0.1
        """
        return replace(self, state=state, **results)

    def detached(self) -> Trial:
        """A deep copy: changes to its dicts do not reach the study.

        >>> trial = st.Trial(0, {"x": 0.5})
        >>> trial.detached() == trial, trial.detached().config is trial.config
        (True, False)
        """
        names = ("config", "gradient", "fidelity", "reports", "suggestion", "basis", "metrics", "attrs")
        copied = [copy.deepcopy(value) if (value := getattr(self, name)) else copy.copy(value) for name in names]
        return replace(self, **dict(zip(names, copied, strict=True)))

    def to_dict(self) -> dict[str, Any]:
        """The trial ready for JSON; ``from_dict`` is the inverse. A fold that is not finite becomes null.

        >>> trial = st.Trial(0, {"x": 0.5}, st.State.DONE, value=0.1)
        >>> trial.to_dict()["value"], st.Trial.from_dict(trial.to_dict()) == trial
        (0.1, True)
        """
        copied = self.detached()
        record = {item.name: getattr(copied, item.name) for item in fields(self)}
        record["state"] = str(self.state)
        record["reports"] = list(copied.reports)
        if self.folds is not None:
            record["folds"] = [fold if math.isfinite(fold) else None for fold in self.folds]
        return record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Trial:
        """The trial from its dict. Unknown keys, of a later version, are ignored."""
        known = {item.name: record[item.name] for item in fields(cls) if item.name in record}
        known["state"] = State(known.get("state", "running"))
        if known.get("folds") is not None:
            known["folds"] = tuple(math.nan if fold is None else fold for fold in known["folds"])
        known["reports"] = tuple(known.get("reports") or ())
        return cls(**known)


def _short(value: Any) -> str:
    """A value on one short line: floats with four digits."""
    text = rounded(value) if isinstance(value, float) else " ".join(str(value).split())
    return text if len(text) <= MAX_CHARACTERS_SHOWN else text[: MAX_CHARACTERS_SHOWN - 3] + "..."
