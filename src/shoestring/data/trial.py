"""What was asked and what came of it: immutable records."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any

from ..space.space import Config


class State(StrEnum):
    """running: asked, no result yet; abandoned: given up without a result, the config may be asked again."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    ABANDONED = "abandoned"


@dataclass(frozen=True)
class Suggestion:
    """A config, and what the optimizer knew when it chose it.

    by           the method's name
    why          the choice in words
    predicted    the model's mean at the config, in the user's units
    gain         the expected improvement on the best value, in the user's units
    cost         the expected cost
    front        a few points of the EI-cost front at that moment, the choice, and the alpha that it amounts to
    model        what the next fit starts from: hyperparameters, how values are modelled, the number of trials then
    plan         the place of the trial in what the method has set out to do, JSON-ready
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

    def to_dict(self) -> dict[str, Any]:
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {name: value for name, value in values.items() if value is not None and name != "config"}


@dataclass(frozen=True, slots=True)  # slots: of a hundred thousand trials, 12 MB less
class Trial:
    """One evaluation. ``config`` is a plain dict with the fidelities included; ``fidelity`` is that part alone."""

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
    censored: bool = False  # the cost is a lower bound: the evaluation was cut off
    asked_at: float | None = field(default=None, compare=False)  # seconds since 1970
    basis: Mapping[str, Any] = field(default_factory=dict, compare=False)  # what the suggestion was made from: see ``replay``

    @property
    def finished(self) -> bool:
        return self.state is not State.RUNNING

    def finish(self, state: State, **results: Any) -> Trial:
        """The same trial with its results."""
        return replace(self, state=state, **results)

    def detached(self) -> Trial:
        """A copy that shares nothing: what is done to its dicts does not reach the study."""
        names = ("config", "gradient", "fidelity", "reports", "suggestion", "basis")
        copied = copy.deepcopy([getattr(self, name) for name in names])
        return replace(self, **dict(zip(names, copied, strict=True)))

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; ``from_dict`` is its inverse. A fold that is not finite is written as null."""
        copied = self.detached()
        record = {item.name: getattr(copied, item.name) for item in fields(self)}
        record["state"] = str(self.state)
        record["reports"] = list(copied.reports)
        if self.folds is not None:
            record["folds"] = [fold if math.isfinite(fold) else None for fold in self.folds]
        return record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Trial:
        known = {item.name: record[item.name] for item in fields(cls) if item.name in record}
        known["state"] = State(known.get("state", "running"))
        if known.get("folds") is not None:
            known["folds"] = tuple(math.nan if fold is None else fold for fold in known["folds"])
        known["reports"] = tuple(known.get("reports") or ())
        return cls(**known)
