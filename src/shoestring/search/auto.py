"""``method="auto"``: expected improvement, weighed against cost as soon as costs are seen to differ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..acquisition.gittins import Gittins
from ..acquisition.improvement import LogEI
from ..acquisition.paced import Paced
from ..trial import Suggestion
from .bayes import Bayes
from .method import Situation

NOTICED = 0.1  # seconds: measured costs below this are not worth saving, and vary with the machine's mood
EXPLAINED = 0.5  # share of the variance of log cost that must be foretold (leave-one-out)
SPREAD = 0.4  # deviation of log cost over the trials: about one half more or less


@dataclass(frozen=True)
class Auto:
    """Looks at what the problem has, and suggests accordingly.

    Costs that matter are weighed by the Gittins index; under a budget in cost, the rest of it is spread over the trials to
    come, and nothing is spared that there is enough of. Both were chosen on the HPOBench tables.
    """

    def suggest(self, situation: Situation) -> Suggestion:
        if not costs_matter(situation):
            return Bayes(LogEI()).suggest(situation)
        return Bayes(Paced() if situation.cost_limited else Gittins()).suggest(situation)


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
