"""Search without a model: random and quasi-random points."""

from __future__ import annotations

from dataclasses import dataclass

from ..acquisition.optimize.candidates import unseen
from ..data.trial import Suggestion
from .base import Situation
from .initial_design import space_filling


@dataclass(frozen=True)
class Random:
    """Independent draws from each parameter's natural distribution."""

    def suggest(self, situation: Situation) -> Suggestion:
        u = unseen(situation.space, situation.taken, situation.rng)
        return Suggestion(situation.space.decode(u), by="Random", why="random search")


@dataclass(frozen=True)
class Sobol:
    """A scrambled Sobol sequence: covers the space more evenly than random points."""

    def suggest(self, situation: Situation) -> Suggestion:
        return Suggestion(situation.space.decode(space_filling(situation)), by="Sobol", why="quasi-random search")
