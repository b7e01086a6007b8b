"""Hyperband and ASHA: many configurations with little of a resource, few with much of it.

Successive halving gives every configuration a small amount of the resource, promotes the best 1 / eta, gives those eta times as
much, and so on up to the target. It is not known beforehand how many configurations to start with, and with how little. Hyperband
(Li et al. 2018, "Hyperband: a novel bandit-based approach to hyperparameter optimization") tries all sensible answers in turn,
its brackets. ASHA (Li et al. 2020, "A system for massively parallel hyperparameter tuning") does not wait for a rung to be full:
it promotes a configuration as soon as it is among the best 1 / eta of its rung. Configurations are drawn at random.

Notation (Hyperband, algorithm 1)
    R       the target of the resource, in units of its smallest amount
    eta     the best 1 / eta of a rung are promoted
    s_max   floor(log_eta R), the largest number of promotions in a bracket
    s       a bracket, s_max, ..., 0. It starts with n = ceil((s_max + 1) / (s + 1) eta^s) configurations
    n_i     floor(n eta^-i), the number of configurations on rung i;  r_i  target eta^(i - s), their amount of the resource

Amounts are rounded to values that the fidelity can take. Rungs of one bracket with equal amounts become one rung, with the larger
number of configurations.

The state of a run is read from the history, since each suggestion carries a plan with its place. ``scheme`` is the run: settings
and rungs as a text, so that a study that goes on with other settings starts a new run. ``bracket``, ``rung`` and ``config`` (the
number of the configuration within the bracket) are the place. A promoted trial continues the trial of the same configuration on
the rung below; where the fidelity is resumable, it pays for the rest alone (``data/training_run``). Trials without a plan, such
as those that were enqueued or added, have no place. An abandoned trial has none until its config is suggested again.
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
from .._validation import number_between, plain, whole_number
from ..acquisition.optimize.candidates import is_visited, random_unvisited, small_grid
from ..data.history import History
from ..data.trial import State, Suggestion, Trial
from ..errors import MethodError, SpaceExhausted
from ..space.parameters import Fidelity
from ..space.space import Config, Space
from .base import SearchContext, SearchMethod

PROMOTIONS_FROM_ZERO = 4  # s_max of a fidelity whose low end is 0, which gives no smallest amount
AMOUNT_TOLERANCE = 1e-9  # relative; target eta^-i may fall short of the smallest amount by this: log_3 of 243 is 4.999...


@dataclass(frozen=True)
class Hyperband(SearchMethod):
    """Successive halving of random configs over the amounts of one fidelity; other fidelities stay at their target.

    Use it where a trial takes less time than a suggestion of a model, with ``asynchronous=True`` for many workers. ``CFKG`` and
    ``BOCA`` learn more from each trial.

    eta           each rung promotes its best 1 / eta, with eta times as much of the resource
    asynchronous  ASHA: promote as soon as a config is among the best of its rung; for many workers
    resource      the name of the fidelity, where there are several
    smallest      the smallest amount; without it the fidelity's low end, or target / eta^4 where that is 0
    brackets      how many brackets, starting with the one of most rungs; all by default. 1 is plain successive halving, or ASHA

    >>> space = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 9))
    >>> result = st.minimize(lambda c: c["x"] + 1 / c["epochs"], space, 13, method=st.Hyperband())
    >>> sorted({trial.fidelity["epochs"] for trial in result.history})
    [1, 3, 9]
    """

    eta: float = 3
    asynchronous: bool = False
    resource: str | None = None
    smallest: float | None = None
    brackets: int | None = None

    def __post_init__(self) -> None:
        number_between(self.eta, "Hyperband: eta", 2.0)
        if not isinstance(self.asynchronous, bool):
            raise MethodError(f"Hyperband: asynchronous must be True or False, not {self.asynchronous!r}")
        if self.resource is not None and not isinstance(self.resource, str):
            raise MethodError(f'Hyperband: resource must be the name of a fidelity, such as "epochs", not {self.resource!r}')
        number_between(self.smallest, "Hyperband: smallest", 0.0, optional=True)
        if self.brackets is not None:
            whole_number(self.brackets, "Hyperband: brackets", 1)

    def suggest(self, context: SearchContext) -> Suggestion:
        resource, brackets, scheme = self._scheme(context.space)
        state = HyperbandState(context.history, scheme)
        new = new_config(context)
        if self.asynchronous:
            goes_on = resource in context.space.resumable and not context.space.resumable_if_saved
            job = asynchronous_job(brackets, state, new is not None, self.eta, goes_on)
        else:
            job = synchronous_job(brackets, state, new is not None)
        if job is None:
            raise exhausted_error(context)
        rungs = brackets[job.bracket % len(brackets)].rungs
        chosen = new if job.promoted is None else job.promoted.config
        assert chosen is not None  # a job without a promoted trial is made only if there is a new configuration
        config = chosen | {resource: rungs[job.rung].amount}
        why = f"bracket {job.bracket + 1}, rung {job.rung + 1} of {len(rungs)}: {describe_job(job, config, resource)}"
        return Suggestion(config, by="Hyperband", why=why, plan=job.plan(scheme))

    def _scheme(self, space: Space) -> tuple[str, tuple[Bracket, ...], str]:
        """The resource, the brackets, and both as a text that tells this run from one with other settings."""
        resource = find_resource(space, self.resource)
        fidelity = space[resource]
        assert isinstance(fidelity, Fidelity)
        brackets = make_brackets(resource_amounts(fidelity, resource, self.eta, self.smallest), self.eta, self.brackets)
        steps = ", ".join(f"{rung.amount:g}" for rung in brackets[0].rungs)
        order = "asynchronous" if self.asynchronous else "in turn"
        return resource, brackets, f"{resource} {steps}; {plural(len(brackets), 'bracket')} by {self.eta:g}, {order}"


# -- brackets and rungs --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rung:
    """n_i configurations (``count``), each with r_i of the resource (``amount``)."""

    count: int
    amount: float | int


@dataclass(frozen=True)
class Bracket:
    """Rungs from the smallest amount to the target."""

    rungs: tuple[Rung, ...]

    @property
    def budget(self) -> float:
        """The amount of the resource that one pass over the rungs takes, if each trial begins from the start."""
        return self.used([rung.count for rung in self.rungs])

    def used(self, counts: Sequence[int], goes_on: bool = False) -> float:
        """The amount of the resource that so many trials on the rungs take; ``goes_on``: a promoted one takes the rest alone."""
        amounts = [float(rung.amount) for rung in self.rungs]
        below = [0.0, *amounts[:-1]] if goes_on else [0.0] * len(amounts)
        return sum(count * (amount - less) for count, amount, less in zip(counts, amounts, below, strict=True))


def find_resource(space: Space, named: str | None) -> str:
    """The fidelity that is the resource: the one that is named, or the only one."""
    there = space.fidelities
    if not there:
        raise MethodError("Hyperband needs a resource; give the space a fidelity, such as epochs=st.Fidelity(1, 81)")
    if named is None and len(there) > 1:
        choices = " or ".join(f'st.Hyperband(resource="{name}")' for name in there)
        raise MethodError(f"Hyperband has one resource, and this space has {len(there)} fidelities; write {choices}")
    if named is not None and named not in there:
        raise MethodError(f"Hyperband: resource={named!r} is not a fidelity of this space (it has: {', '.join(there)})")
    return there[0] if named is None else named


def resource_amounts(fidelity: Fidelity, name: str, eta: float, smallest: float | None = None) -> list[float | int]:
    """target eta^-i for i = 0, ..., s_max, rounded to values of the fidelity.

    The smallest amount is the fidelity's low end unless it is given. A fidelity that starts at 0 has s_max = PROMOTIONS_FROM_ZERO
    unless the smallest amount is given.
    """
    target, ratio = fidelity.goal, Fraction(plain(eta))
    if target <= 0:
        raise MethodError(f"Hyperband: the target of {name} is {target:g}; a resource must be above 0")
    if smallest is None:
        smallest = fidelity.low if fidelity.low > 0 else float(Fraction(target) / ratio**PROMOTIONS_FROM_ZERO)
    elif not max(fidelity.low, 0) <= smallest <= target or smallest <= 0:
        lowest = f"{fidelity.low:g}" if fidelity.low > 0 else "a number above 0"
        raise MethodError(f"Hyperband: smallest={smallest!r} must lie between {lowest} and the target of {name}, {target:g}")
    amounts: list[float | int] = [target]
    while (amount := float(Fraction(target) / ratio ** len(amounts))) >= smallest * (1 - AMOUNT_TOLERANCE):
        amount = max(amount, float(fidelity.low))
        amounts.append(amount if fidelity.levels is None else fidelity.from_unit(float(fidelity.to_unit(amount))))
    return [amount for amount in amounts if amount > 0]  # a whole number may have been rounded to 0


def make_brackets(amounts: list[float | int], eta: float, limit: int | None = None) -> tuple[Bracket, ...]:
    """The brackets s = s_max, ..., 0 over the amounts target eta^-i, or the first ``limit`` of them: those of most rungs."""
    s_max, ratio = len(amounts) - 1, Fraction(plain(eta))
    brackets = []
    for s in range(s_max, -1, -1):
        n = math.ceil(Fraction(s_max + 1, s + 1) * ratio**s)  # Hyperband, algorithm 1, line 2
        rungs: list[Rung] = []
        for i in range(s + 1):
            if not rungs or rungs[-1].amount != amounts[s - i]:
                rungs.append(Rung(math.floor(n / ratio**i), amounts[s - i]))  # algorithm 1, lines 5 and 6: n_i and r_i
        brackets.append(Bracket(tuple(rungs)))
    return tuple(brackets[:limit])


# -- the state of a run --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Job:
    """The next evaluation: a new configuration on the lowest rung of a bracket, or a promotion to a rung.

    config     the number of the configuration within its bracket
    promoted   the trial on the rung below that is continued; None for a new configuration
    rank       the place of that trial on its rung, 1 for the best, and among how many
    """

    bracket: int
    rung: int
    config: int
    promoted: Trial | None = None
    rank: tuple[int, int] = (0, 0)

    def plan(self, scheme: str) -> dict[str, Any]:
        """For the suggestion. It does not name trials by number, which an interruption would shift."""
        return {"scheme": scheme, "bracket": self.bracket, "rung": self.rung, "config": self.config}


class HyperbandState:
    """The trials of one run by bracket, rung and configuration. Brackets are numbered on when all have been gone through."""

    def __init__(self, history: History, scheme: str) -> None:
        self._sign = -1.0 if history.maximize else 1.0
        self._rungs: dict[tuple[int, int], dict[int, Trial]] = defaultdict(dict)  # (bracket, rung) -> configuration -> trial
        self._configs: dict[int, int] = defaultdict(int)  # bracket -> number of configurations
        for trial in history:
            plan = trial.suggestion.get("plan") or {}
            if plan.get("scheme") != scheme:
                continue
            bracket, config = plan["bracket"], plan["config"]
            self._configs[bracket] = max(self._configs[bracket], config + 1)
            rung = self._rungs[bracket, plan["rung"]]
            earlier = rung.get(config)  # an abandoned trial may have got a late result: then two trials have the same place
            if trial.state is not State.ABANDONED and (earlier is None or earlier.state is not State.DONE):
                rung[config] = trial

    def trials(self, bracket: int, rung: int) -> dict[int, Trial]:
        """The trials on a rung, by configuration."""
        return self._rungs.get((bracket, rung), {})

    def finished(self, bracket: int, rung: int) -> int:
        """How many trials on a rung are done or have failed."""
        return sum(trial.finished for trial in self.trials(bracket, rung).values())

    def has_running(self, bracket: int, rung: int) -> bool:
        """Whether trials on a rung are still running."""
        return self.finished(bracket, rung) < len(self.trials(bracket, rung))

    def ranked(self, bracket: int, rung: int) -> list[int]:
        """The configurations that have a value on a rung, best first; failed ones are not among them."""
        values = {config: trial.value for config, trial in self.trials(bracket, rung).items() if trial.value is not None}
        return sorted(values, key=lambda config: (self._sign * values[config], config))

    def new_configuration(self, bracket: int) -> Job:
        """A job with a new configuration, on the lowest rung."""
        return Job(bracket, 0, self._configs.get(bracket, 0))

    def promotion(self, bracket: int, rung: int, best: int) -> Job | None:
        """A promotion to a rung: of the ``best`` best on the rung below, the first that is not there yet; None if all are."""
        ranked, there = self.ranked(bracket, rung - 1), self.trials(bracket, rung)
        config = next((config for config in ranked[:best] if config not in there), None)
        if config is None:
            return None
        rank = ranked.index(config) + 1, self.finished(bracket, rung - 1)
        return Job(bracket, rung, config, self.trials(bracket, rung - 1)[config], rank)


# -- the next job --------------------------------------------------------------------------------------------------------------
# ``can_start``: whether there is a configuration that has not been tried. A finite space runs out of them; then the rungs go on
# with the configurations that they have.


def synchronous_job(brackets: Sequence[Bracket], state: HyperbandState, can_start: bool) -> Job | None:
    """Hyperband: bracket after bracket, then all again with new configurations. None if there is nothing to do.

    A rung promotes when it is full and all its trials have finished. While some of them run and more jobs are wanted, the next
    bracket goes on. Every job starts with a check of the first brackets, so that a finished rung promotes at once.
    """
    for number in count():
        rungs = brackets[number % len(brackets)].rungs
        if can_start and len(state.trials(number, 0)) < rungs[0].count:
            return state.new_configuration(number)
        if not state.trials(number, 0):
            return None
        for rung in range(1, len(rungs)):
            if state.has_running(number, rung - 1):
                break
            size = rungs[rung].count
            job = state.promotion(number, rung, size) if len(state.trials(number, rung)) < size else None
            if job is not None:
                return job
    raise AssertionError  # the loop ends at a bracket without trials


def asynchronous_job(
    brackets: Sequence[Bracket], state: HyperbandState, can_start: bool, eta: float, goes_on: bool = False
) -> Job | None:
    """ASHA (algorithm 2, get_job): from the top rung down, promote one of the best 1 / eta of a rung, or start a configuration.

    The rungs of a bracket grow without limit. The brackets take turns: each gets as much of the resource as one pass of Hyperband
    over it would take, and then the next. ``goes_on``: a promoted trial goes on from the one below, and takes the rest alone.
    """
    passes = [completed_passes(bracket, state, number, goes_on) for number, bracket in enumerate(brackets)]
    for number in sorted(range(len(brackets)), key=lambda number: (passes[number], number)):
        for rung in range(len(brackets[number].rungs) - 1, 0, -1):
            share = state.finished(number, rung - 1) / Fraction(plain(eta))
            best = math.floor(share) if can_start else math.ceil(share)  # a rung that cannot grow promotes its best in any case
            job = state.promotion(number, rung, best)
            if job is not None:
                return job
        if can_start:
            return state.new_configuration(number)
    return None


def completed_passes(bracket: Bracket, state: HyperbandState, number: int, goes_on: bool = False) -> int:
    """How many passes over the bracket the resource that it has used would have been enough for."""
    used = bracket.used([len(state.trials(number, rung)) for rung in range(len(bracket.rungs))], goes_on)
    return int(used // bracket.used([rung.count for rung in bracket.rungs], goes_on))


def new_config(context: SearchContext) -> Config | None:
    """A random configuration that was not tried at any fidelity, with all fidelities at their target; None if there is none."""
    space = context.space
    visited = space.at_target(context.data.visited)
    grid = small_grid(space)
    if grid is not None and len(visited) >= len(grid) and is_visited(grid, visited).all():
        return None  # without many draws that would all fail
    try:
        return space.decode(random_unvisited(space, visited, context.rng))
    except SpaceExhausted:
        return None


def exhausted_error(context: SearchContext) -> SpaceExhausted:
    """The error for a finite space in which nothing is left to do now."""
    tried = f"all {context.space.cardinality():.0f} configurations of this space have been tried"
    running = len(context.data.pending)
    return SpaceExhausted(f"{tried}; the next promotion depends on {plural(running, 'running trial')}" if running else tried)


def describe_job(job: Job, config: Config, resource: str) -> str:
    """The job in words, for the suggestion."""
    if job.promoted is None:
        return f"a new random configuration at {resource} = {config[resource]:g}"
    before, now, (rank, among) = job.promoted.config[resource], config[resource], job.rank
    return f"promoted from {resource} = {before:g} to {now:g}, as number {rank} of {among} there"
