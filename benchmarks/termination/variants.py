"""What is computed along a recorded run: by label, a number after each of some evaluations.

A rule is a variant and a threshold: a new rule is one line here, and its stopping times at any threshold follow from what is
stored.

paper      the regret bound of the paper: a GP on the best half of the evaluations, beta divided by five
top20      the same on the best fifth, top100 on everything (figure 2)
beta_full  the same without the division by five (figure 9)
default    the library's own bound, from the history alone (``SureBound``)
study      the same from the belief of a study: its model, output transform and hyperparameters
probable   what is left to gain at most, at the confidence of ``RegretBelow``, from that belief too
worth      the highest expected improvement for a unit of cost, from the belief of a study (``WorthIt``)
ei, pi     the highest expected improvement and probability of improvement
optuna...  see ``optuna_peer``
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.termination import optuna_peer
from benchmarks.termination.core import TestedProblem

SLOW_EVERY = 10  # evaluations between two looks of what takes long
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


def study_bound() -> Variant:
    def number(history: Any, space: Any) -> float:
        import shoestring as st
        from shoestring.termination.base import belief_of

        return float(st.SureBound().bound(history, belief_of(history, st.GP())).regret)

    return Variant(after_each(number), every=SLOW_EVERY)


def quantile_of_gain() -> Variant:
    """The quantile of what is left to gain; at most the tolerance exactly when ``RegretBelow(tolerance)`` stops."""

    def number(history: Any, space: Any) -> float:
        from shoestring.termination.regret_probability import GainModel, RegretBelow

        return float(np.quantile(GainModel.of(history, None, RegretBelow.roughness).draws(), RegretBelow.confidence))

    return Variant(after_each(number), every=SLOW_EVERY)


def evidence(rule: str, what: str) -> Variant:
    """A number that a rule gives for its verdict; 0 where there is nothing left to try."""

    def number(history: Any, space: Any) -> float:
        import shoestring as st

        verdict = getattr(st, rule)(1e-9, after=FIRST).check(history)
        return float(verdict.evidence.get(what, 0.0))

    return Variant(after_each(number), bound=False)


def worth() -> Variant:
    """The best buy: the price at which ``WorthIt`` would stop."""

    def number(history: Any, space: Any) -> float:
        import shoestring as st

        return float(st.WorthIt(1e-300, after=FIRST).check(history).evidence.get("worth", 0.0))

    return Variant(after_each(number), bound=False, every=SLOW_EVERY)


VARIANTS: dict[str, Variant] = {
    "paper": bound("RegretBound", top=0.5),
    "top20": bound("RegretBound", top=0.2),
    "top100": bound("RegretBound", top=1.0),
    "beta_full": bound("RegretBound", beta_scale=1.0),
    "default": bound("SureBound"),
    "study": study_bound(),
    "probable": quantile_of_gain(),
    "worth": worth(),
    "ei": evidence("EIBelow", "expected improvement"),
    "pi": evidence("PIBelow", "probability of improvement"),
    "optuna": Variant(optuna_peer.regret_bounds, every=optuna_peer.EVERY, seeds=optuna_peer.SEEDS),
    "optuna_emmr": Variant(optuna_peer.emmr, bound=False, every=optuna_peer.EVERY, seeds=optuna_peer.SEEDS),
}
OURS = ("paper", "default", "probable")  # held against targets, where they are there
