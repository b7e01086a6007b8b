"""Batches: several suggestions at once.

A batch is chosen greedily: each suggestion is made with those before it pending, which is what asking for one after the other
gives. An acquisition whose value with pending trials is that of the whole batch (``values_batches``: the knowledge gradient) is
then improved jointly, by block ascent: each point in turn is chosen anew with the others pending, and moves if the batch gains.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ..acquisition.kg_fidelity import assumed_negative_log_cost
from ..cost.incremental import started_runs
from ..data.trial import Suggestion, Trial
from ..errors import NothingFits, SpaceExhausted
from ..numerics import Array
from .auto import Auto, prepared
from .base import Method, SearchContext
from .bayes import Bayes
from .budget_filter import filter_by_budget
from .halving_start import halving_suggestion

ASCENT_ROUNDS = 1
MIN_LOG_GAIN = 0.01  # of the acquisition's logarithm: less is not worth a move


def suggest_many(method: Method, context: SearchContext, count: int) -> list[Suggestion]:
    """``count`` suggestions that take each other into account; fewer, but one, where the space or the budget holds no more."""
    suggestions: list[Suggestion] = []
    curves = isinstance(method, Auto) and bool(context.space.fidelities)
    while curves and len(suggestions) < count:
        after = with_suggestions(context, suggestions)
        start = halving_suggestion(after)
        if start is None:
            break
        try:
            suggestions.append(filter_by_budget(start, after))
        except NothingFits:
            if not suggestions:
                raise
            return suggestions  # as many as there are
    if isinstance(method, Auto) and context.space.fidelities:
        context = prepared(context)
        method = method.choice(context)
    for _ in range(count - len(suggestions)):
        after = with_suggestions(context, suggestions)
        try:
            suggestions.append(filter_by_budget(as_batch_member(method, suggestions, context).suggest(after), after))
        except (SpaceExhausted, NothingFits):
            if not suggestions:
                raise
            break  # as many as there are
    if count > 1 and isinstance(method, Bayes) and method.acquisition.values_batches:
        chosen = [j for j, suggestion in enumerate(suggestions) if suggestion.model is not None]  # not the initial design
        for _ in range(ASCENT_ROUNDS if len(chosen) > 1 else 0):
            for j in chosen:
                suggestions[j] = improve_member(method, context, suggestions, j)
    return suggestions


def with_suggestions(context: SearchContext, suggestions: list[Suggestion]) -> SearchContext:
    """The context once these suggestions have been asked and are pending."""
    if not suggestions:
        return context
    space, past, number = context.space, context.history, context.number + len(suggestions)
    points = np.array([space.encode(suggestion.config) for suggestion in suggestions])
    opened = [Trial(len(past) + j, each.config, suggestion=each.to_dict()) for j, each in enumerate(suggestions)]
    warm_start = next((suggestion.model for suggestion in reversed(suggestions) if suggestion.model), context.warm_start)
    data = replace(context.data, pending=np.vstack([context.data.pending, points]))
    after = replace(context, visited=context.visited.with_points(points), number=number, history=past.with_trials(opened))
    return after.with_data(data, warm_start=warm_start)


def as_batch_member(method: Method, others: list[Suggestion], context: SearchContext) -> Method:
    """The method as it values a further member of a batch, if it tells members of a batch from single trials.

    Costs that are not known are those that an acquisition assumes then.
    """
    if not isinstance(method, Bayes):
        return method
    valued = [each for each in others if each.model and "log_gain" in each.model]
    if not valued or not (context.space.fidelities or all(each.cost for each in valued)):
        return method
    assumed = assumed_negative_log_cost(context.space, started_runs(context.data, context.space))

    def cost(each: Suggestion) -> float:
        return each.cost or math.exp(-float(assumed(context.space.encode(each.config)[None, :], False)[0][0]))

    gain = sum(math.exp(each.model["log_gain"]) for each in valued if each.model is not None)
    return replace(method, acquisition=method.acquisition.as_batch_member(gain, max(map(cost, valued))))


def improve_member(method: Bayes, context: SearchContext, suggestions: list[Suggestion], j: int) -> Suggestion:
    """Suggestion j, or a better one given the others."""
    rest = suggestions[:j] + suggestions[j + 1 :]
    others, member = with_suggestions(context, rest), as_batch_member(method, rest, context)
    assert isinstance(member, Bayes)
    again, old = member.suggest(others), suggestions[j]
    belief = others.belief(costs=member.acquisition.uses_cost)
    surface = member.acquisition.averaged_surface(belief, others.rng)
    points: Array = np.array([context.space.encode(each.config) for each in (again, old)])
    new, kept = surface(points, False)[0]
    return again if new > kept + MIN_LOG_GAIN else old
