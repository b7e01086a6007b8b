"""Random search and quasi-random search: suggestions without a model."""

from __future__ import annotations

from dataclasses import dataclass

from ..acquisition.optimize.candidates import random_unvisited
from ..data.trial import Suggestion
from .base import SearchContext, SearchMethod
from .initial_design import space_filling


@dataclass(frozen=True)
class Random(SearchMethod):
    """Random search: independent draws from each parameter's natural distribution."""

    def suggest(self, context: SearchContext) -> Suggestion:
        u = random_unvisited(context.space, context.visited, context.rng)
        return Suggestion(context.space.decode(u), by="Random", why="random search")


@dataclass(frozen=True)
class Sobol(SearchMethod):
    """Quasi-random search: a scrambled Sobol sequence, which covers the space more evenly than random points."""

    def suggest(self, context: SearchContext) -> Suggestion:
        return Suggestion(context.space.decode(space_filling(context)), by="Sobol", why="quasi-random search")
