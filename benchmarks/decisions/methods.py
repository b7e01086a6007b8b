"""The methods compared, by label, behind one small interface.

Methods that know nothing of a budget (``FREE``: random search and the peers) make one run that serves both kinds of budget. All
others are studies of this library, from ``candidates``: they are told the budget, and make one run for each kind.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from benchmarks import peers
from benchmarks.cost_aware.core import CostProblem
from benchmarks.decisions import candidates

FLAML = {"cfo": "CFO", "blendsearch": "BlendSearch"}
PEERS = ("optuna_tpe", "cfo", "blendsearch", "optuna_gp")
FREE = ("random", *PEERS)
OURS = ("auto", "ei", "eipu")
DEFAULT = (*FREE, *OURS)


class CostSearcher(Protocol):
    """Proposes configurations and is told what they were worth and what they cost; None means that it has ended."""

    def suggest(self) -> dict[str, Any] | None: ...

    def observe(self, config: dict[str, Any], value: float, cost: float) -> None: ...


class WithoutCosts:
    """A searcher of the regret benchmark, which is not told the costs."""

    def __init__(self, searcher: peers.Searcher) -> None:
        self._searcher = searcher

    def suggest(self) -> dict[str, Any] | None:
        return self._searcher.suggest()

    def observe(self, config: dict[str, Any], value: float, cost: float) -> None:
        self._searcher.observe(config, value)


class StudySearcher:
    """A study of this library. Automatic stopping is off: methods are compared at the same budget."""

    def __init__(self, options: Mapping[str, Any], problem: CostProblem, seed: int, budget: Any) -> None:
        import shoestring as st

        space = peers.shoestring_space(problem.without_costs())
        self.study = st.Study(space, **{"seed": seed, "stop": None, "budget": budget, **options})
        self._trial: Any = None

    def suggest(self) -> dict[str, Any] | None:
        from shoestring import errors

        try:
            self._trial = self.study.ask()
        except (errors.NothingFits, errors.SpaceExhausted):
            return None
        return dict(self._trial.config)

    def observe(self, config: dict[str, Any], value: float, cost: float) -> None:
        self.study.tell(self._trial, value, cost=cost)


def is_free(label: str) -> bool:
    """Whether a method knows nothing of a budget, so that one run serves both kinds."""
    return label in FREE


def check(labels: list[str]) -> None:
    """Refuse unknown labels before anything runs."""
    if unknown := [label for label in labels if not is_free(label) and label not in candidates.CANDIDATES]:
        there = ", ".join((*FREE, *candidates.CANDIDATES))
        raise ValueError(
            f"--methods: no method is called {unknown[0]!r}; there are {there}; add it to benchmarks/decisions/candidates.py"
        )


def build(label: str, problem: CostProblem, seed: int, budget: Any, cost_budget: float) -> CostSearcher:
    """The searcher of that label; ``budget`` is told to studies of this library, ``cost_budget`` sets FLAML's unit."""
    if label in FLAML:
        from benchmarks.decisions.flaml_peer import FlamlSearcher

        return FlamlSearcher(FLAML[label], problem.without_costs(), seed, cost_budget)
    if is_free(label):
        return WithoutCosts(peers.build(label, problem.without_costs(), seed))
    return StudySearcher(candidates.options(label), problem, seed, budget)
