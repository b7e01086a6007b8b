"""``method="auto"``: expected improvement, weighed against cost as soon as costs are seen to differ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..acquisition.cost_aware import EIAlpha
from ..acquisition.improvement import LogEI
from ..acquisition.paced import Paced
from ..trial import Suggestion
from .bayes import Bayes
from .method import Situation

ALPHA = 1.5  # the thriftiest of {.5, 1, 1.5} that loses well under half a per cent of accuracy on the HPOBench tables
NOTICED = 0.1  # seconds: measured costs below this are not worth saving, and vary with the machine's mood
EXPLAINED = 0.5  # share of the variance of log cost that must be foretold (leave-one-out)
SPREAD = 0.4  # deviation of log cost over the trials: about one half more or less


@dataclass(frozen=True)
class Auto:
    """Looks at what the problem has, and suggests accordingly.

    Costs that matter are weighed by EI / cost^ALPHA where the budget is not in cost: every trial counts alike, so money is
    all there is to save. Under a budget in cost it is the Gittins index, with the rest of the budget spread over the trials to
    come, so that nothing is spared that there is enough of. Both were chosen on the HPOBench tables.
    """

    def suggest(self, situation: Situation) -> Suggestion:
        if not costs_matter(situation):
            return Bayes(LogEI()).suggest(situation)
        return Bayes(Paced() if situation.cost_limited else EIAlpha(ALPHA)).suggest(situation)


def costs_matter(situation: Situation) -> bool:
    """Whether costs differ, by enough to be worth saving, and in a way that can be foretold."""
    seen = situation.seen
    if len(seen.gamma) < 3 or float(np.std(seen.gamma)) < SPREAD:
        return False
    if seen.measured.all() and float(np.exp(np.median(seen.gamma))) < NOTICED:
        return False
    if situation.cost is None:
        return False
    mean, _ = situation.cost.left_out()
    if len(mean) != len(seen.gamma):
        return True
    wrong = float(np.sum((mean - seen.gamma) ** 2))
    return wrong <= (1.0 - EXPLAINED) * float(np.sum((seen.gamma - seen.gamma.mean()) ** 2))
