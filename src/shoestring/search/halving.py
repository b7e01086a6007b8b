"""Two ways through the brackets: rung by rung, or whenever a configuration is good enough.

``can_begin`` says whether there is a configuration that has not been tried. In a finite space there is an end of them: then a
rung makes do with those that it has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import count

from ..parameters import plain
from .rungs import Bracket
from .standing import Standing, Step


def in_turn(brackets: Sequence[Bracket], standing: Standing, can_begin: bool) -> Step | None:
    """Hyperband: bracket after bracket, and again from the first with new configurations; None if there is nothing to do.

    A rung is filled before it is judged, and all of its trials must have finished. While some of them run and more is asked
    for, the work goes on with the next bracket, and comes back as soon as the rung can be judged.
    """
    for number in count():
        rungs = brackets[number % len(brackets)].rungs
        if can_begin and len(standing.on(number, 0)) < rungs[0].count:
            return standing.beginning(number)
        if not standing.on(number, 0):
            return None
        for rung in range(1, len(rungs)):
            if standing.waits(number, rung - 1):
                break
            room = rungs[rung].count
            step = standing.promotion(number, rung, room) if len(standing.on(number, rung)) < room else None
            if step is not None:
                return step
    raise AssertionError  # a bracket that has not begun ends the loop


def without_waiting(brackets: Sequence[Bracket], standing: Standing, can_begin: bool, eta: float) -> Step | None:
    """ASHA (Li et al. 2020, algorithm 2): from the top, promote what is among the best 1 / eta of its rung, or else begin anew.

    Each bracket has one set of rungs, which grows without end. The brackets take turns: each gets as much of the resource
    as one pass of Hyperband over it would take, and then the next.
    """
    passes = [passes_over(bracket, standing, number) for number, bracket in enumerate(brackets)]
    for number in sorted(range(len(brackets)), key=lambda number: (passes[number], number)):
        for rung in range(len(brackets[number].rungs) - 1, 0, -1):
            share = standing.finished(number, rung - 1) / Fraction(plain(eta))
            keep = math.floor(share) if can_begin else math.ceil(share)  # a rung that cannot grow sends on its best in any case
            step = standing.promotion(number, rung, keep)
            if step is not None:
                return step
        if can_begin:
            return standing.beginning(number)
    return None


def passes_over(bracket: Bracket, standing: Standing, number: int) -> int:
    """How often what a bracket has taken of the resource would have been enough for one pass over it."""
    taken = sum(len(standing.on(number, rung)) * each.amount for rung, each in enumerate(bracket.rungs))
    return int(taken // bracket.budget)
