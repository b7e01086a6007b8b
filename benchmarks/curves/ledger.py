"""The account of one run on a table of curves: what was paid, and the regret of what was recommended by then."""

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from benchmarks.curves import tables
from benchmarks.peers import RandomSearcher
from benchmarks.problems.core import Config, Problem

SHARES = (0.05, 0.1, 0.25, 0.5, 1.0)  # of the budget
FINE_SHARES = (0.025, 0.05, 0.075, 0.1, 0.125, 0.15, 0.175, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
WHOLE_RUNS = 60  # whose mean cost is the budget
SAMPLES, SAMPLING_SEED = 1000, 20_001
CAP = 1000  # runs, of whatever length


@cache
def scale(name: str) -> tuple[float, float]:
    """The median regret of the best of ten random configs, and the budget."""
    table = tables.load(name)
    sampler = RandomSearcher(Problem(name, table.dimensions, lambda config: 0.0, 0.0), SAMPLING_SEED)
    configs = [sampler.suggest() for _ in range(SAMPLES)]
    found = np.array([(table.regret(config), table.evaluate(config)[1]) for config in configs])
    return float(np.median(found[:, 0].reshape(-1, 10).min(axis=1))), WHOLE_RUNS * float(found[:, 1].mean())


class Ledger:
    """What was paid, and what was recommended when each share of the budget was reached."""

    def __init__(self, name: str, best: Callable[[], Config | None], shares: Sequence[float] = SHARES) -> None:
        self.table, (self.one, self.budget) = tables.load(name), scale(name)
        self.best, self.shares, self.spent, self.runs = best, shares, 0.0, 0
        self._marks = sorted({*shares, *FINE_SHARES})
        self._regrets: list[float | None] = []  # at the marks that were passed

    @property
    def over(self) -> bool:
        return self.spent >= self.budget * (1 - 1e-9) or self.runs >= CAP

    def before(self, cost: float) -> None:
        """To be called with what will be paid next: what is recommended now counts for every share that this passes."""
        self._note(sum(self.spent + cost > share * self.budget * (1 + 1e-9) for share in self._marks))
        self.spent += cost
        self.runs += 1

    def rest(self, shares: Sequence[float] | None = None) -> list[float | None]:
        """The regrets at all shares; those that were not reached count as what is recommended at the end."""
        self._note(len(self._marks))
        known = dict(zip(self._marks, self._regrets, strict=True))
        return [known[share] for share in shares or self.shares]

    def _note(self, count: int) -> None:
        if len(self._regrets) < count:
            config = self.best()
            regret = None if config is None else self.table.regret(config) / self.one
            self._regrets += [regret] * (count - len(self._regrets))
