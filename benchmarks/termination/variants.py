"""What is computed along a recorded run: by label, a number after each of some evaluations.

A rule is a variant and a threshold: a new rule is one line here, and its stopping times at any threshold follow from what is
stored.

paper      the regret bound of the paper: a GP on the best half of the evaluations, beta divided by five
top20      the same on the best fifth, top100 on everything (figure 2)
beta_full  the same without the division by five (figure 9)
default    the library's own bound
ei, pi     the highest expected improvement and probability of improvement
optuna...  see ``optuna_peer``
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.termination import optuna_peer
from benchmarks.termination.core import TestedProblem

FIRST = 20  # evaluations before a rule is asked, as in the paper
Number = Callable[[Any, Any], float]  # of a history and its space
Series = Callable[[TestedProblem, Any, Sequence[int]], list[float]]  # of a problem, a whole history and the steps


@dataclass(frozen=True)
class Variant:
    """``every`` and ``seeds`` where it is too slow to be computed as often as the others; ``bound``: of the regret."""

    series: Series
    bound: bool = True
    every: int | None = None
    seeds: int | None = None


def after_each(number: Number) -> Series:
    return lambda problem, history, steps: [number(history.head(n), history.space) for n in steps]


def bound(rule: str, **options: Any) -> Variant:
    def number(history: Any, space: Any) -> float:
        import shoestring as st

        return float(getattr(st, rule)(**options).bound(history).regret)

    return Variant(after_each(number))


def bound_with_full_beta(delta: float = 0.1) -> Variant:
    """beta is 2 log(c / delta) / 5 with c = |Gamma| t^2 pi^2 / 6; five times that is the beta of delta' = c (delta / c)^5."""

    def number(history: Any, space: Any) -> float:
        import shoestring as st

        c = len(space) * len(history) ** 2 * math.pi**2 / 6.0
        return float(st.RegretBound(delta=c * (delta / c) ** 5).bound(history).regret)

    return Variant(after_each(number))


def evidence(rule: str, what: str) -> Variant:
    """A number that a rule gives for its verdict; 0 where there is nothing left to try."""

    def number(history: Any, space: Any) -> float:
        import shoestring as st

        verdict = getattr(st, rule)(1e-9, after=FIRST).check(history)
        return float(verdict.evidence.get(what, 0.0))

    return Variant(after_each(number), bound=False)


VARIANTS: dict[str, Variant] = {
    "paper": bound("RegretBound", top=0.5),
    "top20": bound("RegretBound", top=0.2),
    "top100": bound("RegretBound", top=1.0),
    "beta_full": bound_with_full_beta(),
    "default": bound("SureBound"),
    "ei": evidence("EIBelow", "expected improvement"),
    "pi": evidence("PIBelow", "probability of improvement"),
    "optuna": Variant(optuna_peer.regret_bounds, every=optuna_peer.EVERY, seeds=optuna_peer.SEEDS),
    "optuna_emmr": Variant(optuna_peer.emmr, bound=False, every=optuna_peer.EVERY, seeds=optuna_peer.SEEDS),
}
OURS = ("paper", "default")  # held against targets, where they are there
