"""The arithmetic of Hyperband (Li et al. 2016, algorithm 1): how many configurations get how much of the resource.

    R         the target of the resource in units of its smallest amount
    s_max     floor(log_eta R): how often a bracket can halve at most
    s         a bracket, s_max .. 0: n = ceil((s_max + 1) / (s + 1) eta^s) configurations begin at target eta^-s, and rung i,
              at target eta^(i - s), has room for floor(n eta^-i) of them

Amounts are moved to values that the fidelity can take, and rungs of one bracket that then coincide are one, with the larger
number of configurations.

Where the configurations of a Hyperband run stand, read from the plans that the trials' suggestions carry.

A plan says which run it belongs to (``scheme``: settings and rungs as a text, so that a study that goes on with other settings
begins anew), and the place of the trial in it: ``bracket``, ``rung``, and ``config``, the number of the configuration within
the bracket. The trial that it continues is the one of the same configuration on the rung below. Trials without a plan, such
as those that were enqueued or added, have no place; an abandoned trial has none until it is asked again.

Two ways through the brackets: rung by rung, or whenever a configuration is good enough.

``can_begin`` says whether there is a configuration that has not been tried. In a finite space there is an end of them: then a
rung makes do with those that it has.

Hyperband: many configurations with little of a resource, few with much of it.

Successive halving gives every configuration a small amount, keeps the best 1 / eta, gives those eta times as much, and so on
up to the target. How many to begin with, and with how little, depends on how much small amounts say; Hyperband (Li et al. 2016)
does not decide it and goes through all sensible answers, its brackets. ``rungs`` has the arithmetic, ``halving`` the order of
the steps, ``standing`` what has been done; configurations are drawn at random.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from typing import Any

from .._format import plural
from .._validation import plain
from ..acquisition.optimize.candidates import is_visited, random_unvisited, small_grid
from ..data.history import History
from ..data.trial import State, Suggestion, Trial
from ..errors import MethodError, SpaceExhausted
from ..space.parameters import Fidelity
from ..space.space import Config, Space
from .base import SearchContext

HALVINGS = 4  # of a fidelity that begins at 0, which has no smallest amount by itself
ROUNDING = 1e-9  # target eta^-i is at the smallest amount but for this: log_3 of 243 is 4.999...


@dataclass(frozen=True)
class Rung:
    """Room for ``count`` configurations, each with ``amount`` of the resource."""

    count: int
    amount: float | int


@dataclass(frozen=True)
class Bracket:
    """Rungs from the smallest amount to the target."""

    rungs: tuple[Rung, ...]

    @property
    def budget(self) -> float:
        """What one pass over the rungs takes of the resource."""
        return float(sum(rung.count * rung.amount for rung in self.rungs))


def find_resource(space: Space, named: str | None) -> str:
    """The fidelity that Hyperband divides up: the one that is named, or else the only one."""
    there = space.fidelities
    if not there:
        raise MethodError("Hyperband needs a resource to divide up; give the space a fidelity, such as epochs=st.Fidelity(1, 81)")
    if named is None and len(there) > 1:
        choices = " or ".join(f'st.Hyperband(resource="{name}")' for name in there)
        raise MethodError(f"Hyperband divides up one resource, and this space has {len(there)} fidelities; write {choices}")
    if named is not None and named not in there:
        raise MethodError(f"Hyperband: resource={named!r} is not a fidelity of this space (it has: {', '.join(there)})")
    return there[0] if named is None else named


def amounts(fidelity: Fidelity, name: str, eta: float, smallest: float | None = None) -> list[float | int]:
    """target eta^-i for i = 0 .. s_max, as the fidelity can take them; the smallest is its low end unless given.

    A fidelity that begins at 0 has s_max = HALVINGS unless the smallest is given: eta^0, ..., eta^-4 of the target.
    """
    target, ratio = fidelity.goal, Fraction(plain(eta))
    if target <= 0:
        raise MethodError(f"Hyperband: the target of {name} is {target:g}; a resource must be above 0")
    if smallest is None:
        smallest = fidelity.low if fidelity.low > 0 else float(Fraction(target) / ratio**HALVINGS)
    elif not max(fidelity.low, 0) <= smallest <= target or smallest <= 0:
        lowest = f"{fidelity.low:g}" if fidelity.low > 0 else "a number above 0"
        raise MethodError(f"Hyperband: smallest={smallest!r} must lie between {lowest} and the target of {name}, {target:g}")
    found: list[float | int] = [target]
    while (amount := float(Fraction(target) / ratio ** len(found))) >= smallest * (1 - ROUNDING):
        amount = max(amount, float(fidelity.low))
        found.append(amount if fidelity.levels is None else fidelity.from_unit(float(fidelity.to_unit(amount))))
    return [amount for amount in found if amount > 0]  # a whole number may have been rounded to 0, which buys nothing


def make_brackets(sizes: list[float | int], eta: float, most: int | None = None) -> tuple[Bracket, ...]:
    """The brackets s = s_max .. 0 over the amounts target eta^-i, or the first ``most`` of them: those that halve most often."""
    s_max, ratio = len(sizes) - 1, Fraction(plain(eta))
    brackets = []
    for s in range(s_max, -1, -1):
        n = math.ceil(Fraction(s_max + 1, s + 1) * ratio**s)
        rungs: list[Rung] = []
        for i in range(s + 1):
            if not rungs or rungs[-1].amount != sizes[s - i]:
                rungs.append(Rung(math.floor(n / ratio**i), sizes[s - i]))
        brackets.append(Bracket(tuple(rungs)))
    return tuple(brackets[:most])


def number_above(value: object, least: float, what: str) -> None:
    """A MethodError unless the value is a finite number of ``least`` or more."""
    value = plain(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < math.inf:
        raise MethodError(f"Hyperband: {what} must be a number of {least:g} or more, not {value!r}")


Place = tuple[int, int]  # bracket and rung


@dataclass(frozen=True)
class Step:
    """What to do next: a new configuration on the lowest rung of a bracket, or one that is promoted to a rung.

    config   the number of the configuration within its bracket
    below    the trial that is continued; None for a new configuration
    rank     its place among those on the rung below, the best being 1, of how many
    """

    bracket: int
    rung: int
    config: int
    below: Trial | None = None
    rank: tuple[int, int] = (0, 0)

    def plan(self, scheme: str) -> dict[str, Any]:
        """For the suggestion; says nothing of trials' numbers, which an interruption shifts."""
        return {"scheme": scheme, "bracket": self.bracket, "rung": self.rung, "config": self.config}


class HyperbandState:
    """The trials of one run by bracket, rung and configuration."""

    def __init__(self, history: History, scheme: str) -> None:
        self._sign = -1.0 if history.maximize else 1.0
        self._on: dict[Place, dict[int, Trial]] = defaultdict(dict)
        self._begun: dict[int, int] = defaultdict(int)
        for trial in history:
            plan = trial.suggestion.get("plan") or {}
            if plan.get("scheme") != scheme:
                continue
            bracket, config = plan["bracket"], plan["config"]
            self._begun[bracket] = max(self._begun[bracket], config + 1)
            there = self._on[bracket, plan["rung"]]
            before = there.get(config)  # an abandoned trial may have got a late result: then two have the same place
            if trial.state is not State.ABANDONED and (before is None or before.state is not State.DONE):
                there[config] = trial

    def on(self, bracket: int, rung: int) -> dict[int, Trial]:
        """The trials on a rung, by configuration."""
        return self._on.get((bracket, rung), {})

    def finished(self, bracket: int, rung: int) -> int:
        """How many trials of a rung are done or have failed."""
        return sum(trial.finished for trial in self.on(bracket, rung).values())

    def waits(self, bracket: int, rung: int) -> bool:
        """Whether trials of a rung are still running."""
        return self.finished(bracket, rung) < len(self.on(bracket, rung))

    def ranked(self, bracket: int, rung: int) -> list[int]:
        """The configurations that have a value on a rung, best first; failed ones are not among them."""
        done = {config: trial.value for config, trial in self.on(bracket, rung).items() if trial.value is not None}
        return sorted(done, key=lambda config: (self._sign * done[config], config))

    def beginning(self, bracket: int) -> Step:
        """A new configuration."""
        return Step(bracket, 0, self._begun.get(bracket, 0))

    def promotion(self, bracket: int, rung: int, keep: int) -> Step | None:
        """To a rung, the best of the ``keep`` best on the rung below that is not there yet."""
        ranked, there = self.ranked(bracket, rung - 1), self.on(bracket, rung)
        best = next((config for config in ranked[:keep] if config not in there), None)
        if best is None:
            return None
        rank = ranked.index(best) + 1, self.finished(bracket, rung - 1)
        return Step(bracket, rung, best, self.on(bracket, rung - 1)[best], rank)


def in_turn(brackets: Sequence[Bracket], standing: HyperbandState, can_begin: bool) -> Step | None:
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


def without_waiting(brackets: Sequence[Bracket], standing: HyperbandState, can_begin: bool, eta: float) -> Step | None:
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


def passes_over(bracket: Bracket, standing: HyperbandState, number: int) -> int:
    """How often what a bracket has taken of the resource would have been enough for one pass over it."""
    taken = sum(len(standing.on(number, rung)) * each.amount for rung, each in enumerate(bracket.rungs))
    return int(taken // bracket.budget)


@dataclass(frozen=True)
class Hyperband:
    """Successive halving of random configurations over the amounts of one fidelity; the others stay at their target.

    eta            each rung keeps the best 1 / eta and gives them eta times as much
    asynchronous   promote as soon as a configuration is good enough, instead of rung by rung (ASHA; for many workers)
    resource       the name of the fidelity, where there are several
    smallest       the least amount that is worth trying; the fidelity's low end, or target / eta^4 where that is 0
    brackets       how many, from the one that halves most often; all by default. 1 is plain successive halving, or ASHA
    """

    eta: float = 3
    asynchronous: bool = False
    resource: str | None = None
    smallest: float | None = None
    brackets: int | None = None

    def __post_init__(self) -> None:
        number_above(self.eta, 2.0, "eta")
        if not isinstance(self.asynchronous, bool):
            raise MethodError(f"Hyperband: asynchronous must be True or False, not {self.asynchronous!r}")
        if self.resource is not None and not isinstance(self.resource, str):
            raise MethodError(f'Hyperband: resource must be the name of a fidelity, such as "epochs", not {self.resource!r}')
        if self.smallest is not None:
            number_above(self.smallest, 0.0, "smallest")
        most = plain(self.brackets)
        if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
            raise MethodError(f"Hyperband: brackets must be a whole number of 1 or more, or None for all, not {self.brackets!r}")

    def suggest(self, context: SearchContext) -> Suggestion:
        space = context.space
        resource, brackets, scheme = self._scheme(space)
        standing = HyperbandState(context.history, scheme)
        new = new_config(context)
        if self.asynchronous:
            step = without_waiting(brackets, standing, new is not None, self.eta)
        else:
            step = in_turn(brackets, standing, new is not None)
        if step is None:
            raise exhausted_error(context)
        rungs = brackets[step.bracket % len(brackets)].rungs
        chosen = new if step.below is None else step.below.config
        assert chosen is not None  # nothing begins unless there is something new
        config = chosen | {resource: rungs[step.rung].amount}
        why = f"bracket {step.bracket + 1}, rung {step.rung + 1} of {len(rungs)}: {describe_step(step, config, resource)}"
        return Suggestion(config, by="Hyperband", why=why, plan=step.plan(scheme))

    def _scheme(self, space: Space) -> tuple[str, tuple[Bracket, ...], str]:
        """The resource, the brackets, and both as a text that tells this run from one with other settings."""
        resource = find_resource(space, self.resource)
        fidelity = space[resource]
        assert isinstance(fidelity, Fidelity)
        brackets = make_brackets(amounts(fidelity, resource, self.eta, self.smallest), self.eta, self.brackets)
        steps = ", ".join(f"{rung.amount:g}" for rung in brackets[0].rungs)
        order = "asynchronous" if self.asynchronous else "in turn"
        return resource, brackets, f"{resource} {steps}; {plural(len(brackets), 'bracket')} by {self.eta:g}, {order}"


def new_config(context: SearchContext) -> Config | None:
    """A random configuration that was not tried at any fidelity, at the target of all; None if a finite space has none."""
    space = context.space
    seen = space.at_target(context.data.visited)
    grid = small_grid(space)
    if grid is not None and len(seen) >= len(grid) and is_visited(grid, seen).all():
        return None  # without the many draws that would fail
    try:
        return space.decode(random_unvisited(space, seen, context.rng))
    except SpaceExhausted:
        return None


def exhausted_error(context: SearchContext) -> SpaceExhausted:
    tried = f"all {context.space.cardinality():.0f} configurations of this space have been tried"
    running = len(context.data.pending)
    return SpaceExhausted(f"{tried}; who is promoted depends on {plural(running, 'running trial')}" if running else tried)


def describe_step(step: Step, config: Config, resource: str) -> str:
    if step.below is None:
        return f"a new random configuration at {resource} = {config[resource]:g}"
    before, now, (rank, among) = step.below.config[resource], config[resource], step.rank
    return f"promoted from {resource} = {before:g} to {now:g}, as number {rank} of {among} there"
