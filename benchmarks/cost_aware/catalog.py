"""The problems with costs, in disjoint sets: defaults are chosen on "tuning" alone, claims are made on "reporting".

"xgboost" is XGBoost in earnest, for those with hours to spare; "reporting" has the surrogates of its recorded runs instead.
"""

from functools import cache

from benchmarks.cost_aware import boosters, datasets, surrogates, tables
from benchmarks.cost_aware.core import CostProblem

SETS: dict[str, tuple[str, ...]] = {
    "tuning": tables.TUNING,
    "reporting": (*tables.REPORTING, *surrogates.NAMES),
    "xgboost": boosters.NAMES,
}
QUICK: dict[str, tuple[str, ...]] = {
    "tuning": ("hpobench_australian", "hpobench_segment", "hpobench_vehicle"),
    "reporting": ("fcnet_naval", "fcnet_protein", "recorded_satimage_raw", "recorded_abalone_pca"),
    "xgboost": ("xgboost_phoneme_raw", "xgboost_abalone_pca"),
}
SEEDS_OF_TABLES, SEEDS_OF_BOOSTERS, SEEDS_QUICK = 10, 3, 3


@cache
def load(name: str) -> CostProblem:
    """The problem of that name, kept: reading a table takes a second, fitting a surrogate several."""
    if name.startswith(surrogates.PREFIX):
        return surrogates.load(name)
    if name.startswith(boosters.PREFIX):
        return boosters.load(name)
    return tables.load(name)


def seeds(name: str, asked: int | None, quick: bool) -> range:
    """The seeds of a problem unless a number is asked for."""
    if asked is not None:
        return range(asked)
    if quick:
        return range(SEEDS_QUICK)
    return range(SEEDS_OF_TABLES if name in tables.TUNING + tables.REPORTING else SEEDS_OF_BOOSTERS)


def is_regression(name: str) -> bool:
    """Whether an XGBoost problem, recorded or in earnest, is one of regression."""
    data = name.removeprefix(surrogates.PREFIX).removeprefix(boosters.PREFIX).rsplit("_", 1)[0]
    return bool(datasets.index()[data]["task"] == "regression")


def accuracy(name: str, value: float) -> float:
    """Classification accuracy, or R squared: values are errors, mean squared ones on FCNet and roots of them for XGBoost."""
    if name.startswith((surrogates.PREFIX, boosters.PREFIX)) and is_regression(name):
        return 1 - value**2
    return 1 - value


def family(name: str) -> str:
    """For tables of results: what kind of problem it is."""
    if name.startswith(surrogates.PREFIX):
        return surrogates.LABEL
    return "XGBoost" if name.startswith(boosters.PREFIX) else "FCNet" if name.startswith("fcnet_") else "HPOBench"
