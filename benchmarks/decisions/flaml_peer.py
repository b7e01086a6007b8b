"""CFO and BlendSearch of FLAML, asked one configuration at a time.

What was chosen, and why:

- The searchers are used through ``suggest`` and ``on_trial_complete``, as FLAML's own sequential runner uses them. A ``suggest``
  that returns None (a local search has converged, or the configuration is known already) is asked again; like
  ``flaml.tune.run``, we give up after 100 of these in a row.
- ``low_cost_partial_config`` is not given: users of the other methods say nothing about which configurations are cheap either.
  FLAML then starts from a random configuration.
- Costs are given by ``cost_attr``, under a name of our own. "auto" would ignore costs without a budget in time, and
  "time_total_s" compares costs with the clock of the wall, which stands still while costs are simulated.
- No budget is given (``cost_budget``, ``time_budget_s``, ``num_samples``): other peers are told none, and one run is read at
  several budgets. The budget only sets the unit of the costs: a thousandth of it. FLAML takes one unit as the smallest cost that
  counts, and with a budget in time this is a thousandth of the budget too.
"""

from importlib import import_module
from typing import Any

from benchmarks.problems.core import Category, Integer, Problem

MAX_FAILURES = 100  # the default of flaml.tune.run
UNITS_IN_BUDGET = 1000.0


def flaml_space(problem: Problem) -> dict[str, Any]:
    """The problem's space in FLAML's terms; the upper end of an integer is excluded there."""
    tune = import_module("flaml.tune")
    space: dict[str, Any] = {}
    for dimension in problem.dimensions:
        if isinstance(dimension, Category):
            space[dimension.name] = tune.choice(list(dimension.options))
        elif isinstance(dimension, Integer):
            build = tune.lograndint if dimension.log else tune.randint
            space[dimension.name] = build(dimension.low, dimension.high + 1)
        else:
            build = tune.loguniform if dimension.log else tune.uniform
            space[dimension.name] = build(dimension.low, dimension.high)
    return space


class FlamlSearcher:
    """One of FLAML's searchers, "CFO" or "BlendSearch"."""

    def __init__(self, name: str, problem: Problem, seed: int, budget: float) -> None:
        import logging

        import optuna
        from flaml.tune.searcher import blendsearch

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        logging.getLogger("flaml").setLevel(logging.ERROR)
        self._problem = problem
        self._unit = budget / UNITS_IN_BUDGET
        self.searcher = getattr(blendsearch, name)(
            metric="value", mode="min", space=flaml_space(problem), seed=seed, cost_attr="cost"
        )
        self._number = 0
        self._given: dict[str, Any] = {}

    def suggest(self) -> dict[str, Any] | None:
        for _ in range(MAX_FAILURES):
            self._number += 1
            found = self.searcher.suggest(str(self._number))
            if found is not None:
                self._given = found
                return {dimension.name: _plain(dimension, found[dimension.name]) for dimension in self._problem.dimensions}
        return None

    def observe(self, config: dict[str, Any], value: float, cost: float) -> None:
        named = {f"config/{name}": setting for name, setting in self._given.items()}
        result = {"value": value, "cost": cost / self._unit, "config": self._given, "training_iteration": 0, **named}
        # FLAML's runner reports a result twice, as it comes and when the trial has ended, which changes what its searchers do.
        self.searcher.on_trial_result(str(self._number), result)
        self.searcher.on_trial_complete(str(self._number), result)


def _plain(dimension: Any, value: Any) -> Any:
    """The value as the problem expects it: FLAML gives numbers of NumPy, at times a rounding error outside of the range."""
    if isinstance(dimension, Category):
        return str(value)
    inside = min(max(value, dimension.low), dimension.high)
    return int(inside) if isinstance(dimension, Integer) else float(inside)
