"""Hyperband: many configurations with little of a resource, few with much of it.

Successive halving gives every configuration a small amount, keeps the best 1 / eta, gives those eta times as much, and so on
up to the target. How many to begin with, and with how little, depends on how much small amounts say; Hyperband (Li et al. 2016)
does not decide it and goes through all sensible answers, its brackets. ``rungs`` has the arithmetic, ``halving`` the order of
the steps, ``standing`` what has been done; configurations are drawn at random.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..acquisition.candidates import known, small_grid, unseen
from ..errors import MethodError, SpaceExhausted
from ..parameters import Fidelity, plain
from ..space import Config, Space
from ..trial import Suggestion
from ..wording import plural
from .halving import in_turn, without_waiting
from .method import Situation
from .rungs import Bracket, amounts, find_resource, make_brackets, number_above
from .standing import Standing, Step


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

    def suggest(self, situation: Situation) -> Suggestion:
        space = situation.space
        resource, brackets, scheme = self._scheme(space)
        standing = Standing(situation.history, scheme)
        new = fresh(situation)
        if self.asynchronous:
            step = without_waiting(brackets, standing, new is not None, self.eta)
        else:
            step = in_turn(brackets, standing, new is not None)
        if step is None:
            raise nothing_to_do(situation)
        rungs = brackets[step.bracket % len(brackets)].rungs
        chosen = new if step.below is None else step.below.config
        assert chosen is not None  # nothing begins unless there is something new
        config = chosen | {resource: rungs[step.rung].amount}
        why = f"bracket {step.bracket + 1}, rung {step.rung + 1} of {len(rungs)}: {in_words(step, config, resource)}"
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


def fresh(situation: Situation) -> Config | None:
    """A random configuration that was not tried at any fidelity, at the target of all; None if a finite space has none."""
    space = situation.space
    seen = space.at_target(situation.seen.seen)
    grid = small_grid(space)
    if grid is not None and len(seen) >= len(grid) and known(grid, seen).all():
        return None  # without the many draws that would fail
    try:
        return space.decode(unseen(space, seen, situation.rng))
    except SpaceExhausted:
        return None


def nothing_to_do(situation: Situation) -> SpaceExhausted:
    tried = f"all {situation.space.cardinality():.0f} configurations of this space have been tried"
    running = len(situation.seen.pending)
    return SpaceExhausted(f"{tried}; who is promoted depends on {plural(running, 'running trial')}" if running else tried)


def in_words(step: Step, config: Config, resource: str) -> str:
    if step.below is None:
        return f"a new random configuration at {resource} = {config[resource]:g}"
    before, now, (rank, among) = step.below.config[resource], config[resource], step.rank
    return f"promoted from {resource} = {before:g} to {now:g}, as number {rank} of {among} there"
