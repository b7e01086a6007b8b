"""The arithmetic of Hyperband (Li et al. 2016, algorithm 1): how many configurations get how much of the resource.

    R         the target of the resource in units of its smallest amount
    s_max     floor(log_eta R): how often a bracket can halve at most
    s         a bracket, s_max .. 0: n = ceil((s_max + 1) / (s + 1) eta^s) configurations begin at target eta^-s, and rung i,
              at target eta^(i - s), has room for floor(n eta^-i) of them

Amounts are moved to values that the fidelity can take, and rungs of one bracket that then coincide are one, with the larger
number of configurations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from ..errors import MethodError
from ..parameters import Fidelity, plain
from ..space import Space

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
