"""Random search and quasi-random search: suggestions without a model."""

from __future__ import annotations

from dataclasses import dataclass

from ..acquisition.optimize.candidates import random_unvisited
from ..data.trial import Suggestion
from .base import SearchContext, SearchMethod
from .initial_design import space_filling


@dataclass(frozen=True)
class Random(SearchMethod):
    """Random search: independent draws from each parameter's natural distribution.

    Use it as the baseline that any other method must beat, and where the objective is as fast as a suggestion.

    >>> space = st.Space(x=st.Float(0, 1))
    >>> result = st.minimize(lambda c: (c["x"] - 0.3) ** 2, space, budget=20, method=st.Random())
    >>> len(result.history)
    20
    """

    def suggest(self, context: SearchContext) -> Suggestion:
        u = random_unvisited(context.space, context.visited, context.rng)
        return Suggestion(context.space.decode(u), by="Random", why="random search")


@dataclass(frozen=True)
class Sobol(SearchMethod):
    """Quasi-random search: a scrambled Sobol sequence, which covers the space more evenly than random points.

    Use it in place of ``Random`` where the parameters are few, and where a model will learn from the trials later.

    >>> space = st.Space(x=st.Float(0, 1))
    >>> values = sorted(t.config["x"] for t in st.minimize(lambda c: c["x"], space, 8, method=st.Sobol()).history)
    >>> max(high - low for low, high in zip(values, values[1:])) < 0.3
    True
    """

    def suggest(self, context: SearchContext) -> Suggestion:
        return Suggestion(context.space.decode(space_filling(context)), by="Sobol", why="quasi-random search")
