"""The settings of a study: what it was made with, shared by all processes that work on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ..budget import Budget

Direction = Literal["minimize", "maximize"]


@dataclass
class StudySettings:
    """What a study was made with, shared by all processes that work on it.

    unit      of the trials' costs;   per_hour  what an hour costs in it, None if that is not known
    budget    that of the last run, or the one that ``ask`` plans with
    code      the texts of method, stop, model, cost_model and subset; None where there is no such text
    id        the identity of the study, see ``persistence.study_id``; empty if it is stored without one
    """

    direction: Direction
    seed: int
    initial: int
    unit: str = "s"
    per_hour: float | None = None
    budget: Budget | None = None
    code: Mapping[str, str | None] = field(default_factory=dict)
    id: str = ""

    @property
    def maximize(self) -> bool:
        return self.direction == "maximize"

    @property
    def price_of_a_second(self) -> float:
        """What a second counts as in the study's unit."""
        return 1.0 if self.per_hour is None else self.per_hour / 3600.0

    @property
    def time_has_a_price(self) -> bool:
        """Whether seconds can be charged in the study's unit."""
        return self.unit == "s" or self.per_hour is not None
