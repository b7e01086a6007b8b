"""The problems, in suites and in two disjoint sets: rules are chosen on "tuning" alone, claims are made on "reporting"."""

from benchmarks.termination import crossval, tables
from benchmarks.termination.core import TestedProblem

SETS: dict[str, dict[str, tuple[str, ...]]] = {
    "tuning": {
        "hpobench": tables.HPOBENCH,
        "rf": tuple(f"rf_{data}" for data in crossval.TUNING),
        "xgb": tuple(f"xgb_{data}" for data in crossval.TUNING),
    },
    "reporting": {
        "fcnet": tables.FCNET,
        "nas201": tables.NAS201,
        "rf": tuple(f"rf_{data}" for data in crossval.REPORTING),
        "xgb": tuple(f"xgb_{data}" for data in crossval.REPORTING),
    },
}
QUICK: dict[str, dict[str, tuple[str, ...]]] = {
    "tuning": {"hpobench": ("hpobench_australian",), "rf": ("rf_coil2000",), "xgb": ("xgb_coil2000",)},
    "reporting": {
        "fcnet": ("fcnet_naval",), "nas201": ("nas201_cifar10",), "rf": ("rf_phoneme",), "xgb": ("xgb_phoneme",),
    },
}  # fmt: skip
CROSSVAL = ("rf", "xgb")
TITLES = {"fcnet": "FCNet", "nas201": "NAS-Bench-201", "hpobench": "HPOBench", "rf": "random forest", "xgb": "XGBoost"}
TABLE_EVALUATIONS, CV_EVALUATIONS = 200, 100  # T: the budget that a stopped run is compared with
TABLE_EVERY, CV_EVERY = 2, 4  # rules are asked after 20, 20 + EVERY, ... evaluations
TABLE_SEEDS, TUNING_SEEDS, CV_SEEDS, QUICK_SEEDS = 50, 10, 3, 2


def load(name: str, seed: int) -> TestedProblem:
    """The problem of that name; the seed is that of the split into training, folds and test where there is one."""
    return crossval.load(name, seed) if name.startswith(CROSSVAL) else tables.load(name)


def evaluations(suite: str) -> int:
    return CV_EVALUATIONS if suite in CROSSVAL else TABLE_EVALUATIONS


def every(suite: str) -> int:
    return CV_EVERY if suite in CROSSVAL else TABLE_EVERY


def seeds(which: str, suite: str, quick: bool) -> int:
    if suite in CROSSVAL:
        return 1 if quick else CV_SEEDS
    return QUICK_SEEDS if quick else TUNING_SEEDS if which == "tuning" else TABLE_SEEDS
