"""The searchers whose runs are recorded, by label; everything else of a study is at its default, and it never stops."""

from typing import Any

from benchmarks.termination import catalog
from benchmarks.termination.core import TestedProblem

SEARCHERS = {"gp": "LogEI", "random": "Random", "tpe": "TPE", "bore": "BORE"}
TITLES = {"gp": "GP (LogEI)", "random": "random search", "tpe": "TPE", "bore": "BORE"}
QUICK = ("gp", "random")


def wanted(suite: str, quick: bool) -> tuple[str, ...]:
    """Cross-validation is searched by the GP alone, as in the paper."""
    return ("gp",) if suite in catalog.CROSSVAL else QUICK if quick else tuple(SEARCHERS)


def study(label: str, problem: TestedProblem, seed: int) -> Any:
    import shoestring as st

    if label not in SEARCHERS:
        raise ValueError(f"no searcher is called {label!r}; there are {', '.join(SEARCHERS)}")
    return st.Study(problem.space(), method=getattr(st, SEARCHERS[label])(), seed=seed, stop=None)
