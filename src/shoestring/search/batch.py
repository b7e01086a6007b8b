"""Several suggestions at once.

Greedily: each is made with those before it pending, which is what asking for one after the other gives. An acquisition whose
value with pending trials is that of the whole batch (``joint = True``: the knowledge gradient) is then improved jointly, by block
ascent: each point in turn is chosen anew with the others pending, and moves if the batch gains by it.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ..data.dataset import Dataset
from ..data.trial import Suggestion, Trial
from ..errors import NothingFits, SpaceExhausted
from ..numerics import Array
from .auto import Auto
from .base import Method, SearchContext, fit_context_belief, optimizer_for
from .bayes import Bayes
from .budget_filter import filter_by_budget

ROUNDS = 1
MIN_LOG_GAIN = 0.01  # of log value: less is not worth a move


def suggest_many(method: Method, context: SearchContext, count: int) -> list[Suggestion]:
    """``count`` suggestions that take each other into account; fewer, but one, where the space or the budget holds no more."""
    suggestions: list[Suggestion] = []
    if isinstance(method, Auto) and context.space.fidelities:
        method = method.choice(context)
    for _ in range(count):
        there = with_suggestions(context, suggestions)
        try:
            suggestions.append(filter_by_budget(as_batch_member(method, suggestions).suggest(there), there))
        except (SpaceExhausted, NothingFits):
            if not suggestions:
                raise
            break  # as many as there are
    if count > 1 and isinstance(method, Bayes) and method.acquisition.values_batches:
        chosen = [j for j, suggestion in enumerate(suggestions) if suggestion.model is not None]  # not those of the start
        for _ in range(ROUNDS if len(chosen) > 1 else 0):
            for j in chosen:
                suggestions[j] = improve_member(method, context, suggestions, j)
    return suggestions


def with_suggestions(context: SearchContext, suggestions: list[Suggestion]) -> SearchContext:
    """The situation once these have been asked."""
    if not suggestions:
        return context
    space, past = context.space, context.history
    points = np.array([space.encode(suggestion.config) for suggestion in suggestions])
    opened = [Trial(len(past) + j, each.config, suggestion=each.to_dict()) for j, each in enumerate(suggestions)]
    known = next((suggestion.model for suggestion in reversed(suggestions) if suggestion.model), context.warm_start)

    def load_dataset() -> Dataset:
        return replace(context.data, pending=np.vstack([context.data.pending, points]))

    return replace(
        context, load_dataset=load_dataset, visited=context.visited.also(points), number=context.number + len(suggestions),
        history=past.also(opened), warm_start=known,
    )


def as_batch_member(method: Method, others: list[Suggestion]) -> Method:
    """The method as it values a further member of a batch, if it tells members of a batch from single trials."""
    if not isinstance(method, Bayes):
        return method
    known = [(each.model["log_gain"], each.cost) for each in others if each.cost and each.model and "log_gain" in each.model]
    if not known:
        return method
    return Bayes(method.acquisition.as_batch_member(sum(math.exp(gain) for gain, _ in known), max(cost for _, cost in known)))


def improve_member(method: Bayes, context: SearchContext, suggestions: list[Suggestion], j: int) -> Suggestion:
    """Suggestion j, or a better one given the others."""
    rest = suggestions[:j] + suggestions[j + 1 :]
    others, joined = with_suggestions(context, rest), as_batch_member(method, rest)
    assert isinstance(joined, Bayes)
    again, old = joined.suggest(others), suggestions[j]
    belief, optimizer = fit_context_belief(others, costs=joined.acquisition.uses_cost), optimizer_for(others)
    surface = joined.acquisition.averaged_surface(belief, optimizer.rng)
    points: Array = np.array([context.space.encode(each.config) for each in (again, old)])
    new, kept = surface(points, False)[0]
    return again if new > kept + MIN_LOG_GAIN else old
