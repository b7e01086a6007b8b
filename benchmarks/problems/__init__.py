"""The benchmark problems, in two disjoint sets.

Defaults of the library are chosen on TUNING only, and claims about it are made on REPORTING only. A default
picked by looking at the reporting problems would make every number quoted on them a number about how well
they were fitted; with the sets apart, the results say something about problems nobody has tuned for.

Problems are loaded by name and kept, since tables take about a second to read.
"""

from functools import cache

from benchmarks.problems import learned, mixed, synthetic, tables
from benchmarks.problems.core import Category, Config, Dimension, Integer, Problem, Real

_MADE_UP = {
    problem.name: problem
    for problem in (*synthetic.reporting(), *mixed.reporting(), *synthetic.tuning(), *mixed.tuning())
}

REPORTING: tuple[str, ...] = (
    *(problem.name for problem in synthetic.reporting()),
    *(problem.name for problem in mixed.reporting()),
    *tables.REPORTING,
)
TUNING: tuple[str, ...] = (
    *(problem.name for problem in synthetic.tuning()),
    *(problem.name for problem in mixed.tuning()),
    *learned.SPACES,
    *tables.TUNING,
)
SETS: dict[str, tuple[str, ...]] = {"reporting": REPORTING, "tuning": TUNING}


@cache
def load(name: str) -> Problem:
    """The problem of that name."""
    if name in _MADE_UP:
        return _MADE_UP[name]
    if name in learned.SPACES:
        return learned.load(name)
    if name in tables.REPORTING or name in tables.TUNING:
        return tables.load(name)
    raise ValueError(f"no problem is called {name!r}; there are {', '.join(REPORTING + TUNING)}")


__all__ = [
    "REPORTING",
    "SETS",
    "TUNING",
    "Category",
    "Config",
    "Dimension",
    "Integer",
    "Problem",
    "Real",
    "load",
]
