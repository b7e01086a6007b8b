"""Tuning problems with costs: what a decision about costs, starts or priors may be chosen on.

No problem, data set with its learner, or function of the reporting sets is here. HPOBench networks, FCNet networks and XGBoost
surrogates, on which claims about costs are made, are kept out as whole families.
"""

from functools import cache

from benchmarks.cost_aware.core import CostProblem, Measured
from benchmarks.problems import bbob, learners, mixed, recorded
from benchmarks.problems.core import Config

MIXED = "mixed_blend_cost"
ARCHITECTURES = ("nas201_cifar10", "nas201_cifar100", "nas201_imagenet")
TUNING: tuple[str, ...] = (*recorded.NAMES, *ARCHITECTURES, MIXED, *bbob.NAMES)
# A third of them, for first looks: of each family and each kind of cost some.
QUICK: tuple[str, ...] = (
    "svm_splice",
    "svm_wind",
    "forest_mfeat_fourier",
    "forest_bank32nh",
    "boosting_puma32h",
    "boosting_kr_vs_kp",
    "nas201_cifar100",
    MIXED,
    *(name for name in bbob.WITH_COSTS if name[5:8] in ("f03", "f06", "f14", "f20") and "_d3" not in name),
    *bbob.WITH_CONSTANT_COST[1::5],
    bbob.WITH_NOISE[0],
)
_FACTORS = {"none": 1.0, "few": 2.0, "many": 4.0, "most": 8.0}


def _blend() -> CostProblem:
    """The mixed tuning problem; its cost grows with an integer and with a category, most of all at the best option."""
    (problem,) = mixed.tuning()

    def evaluate(config: Config) -> Measured:
        return problem.evaluate(config), _FACTORS[config["waves"]] * (1.0 + config["count"])

    return CostProblem(MIXED, problem.dimensions, evaluate, problem.optimum, "mixed")


def _architectures(name: str) -> CostProblem:
    """A NAS-Bench-201 table with its stored training times."""
    from benchmarks.cost_aware import tables

    found = tables.load(name)
    return CostProblem(name, found.dimensions, found.evaluate, found.optimum, "NAS-Bench-201")


@cache
def load(name: str) -> CostProblem:
    """The problem of that name, kept: reading a table takes a second, fitting a surrogate about as long."""
    if name in recorded.NAMES:
        return recorded.load(name)
    if name in bbob.NAMES:
        return bbob.load(name)
    if name in ARCHITECTURES:
        return _architectures(name)
    if name == MIXED:
        return _blend()
    raise ValueError(f"no tuning problem with costs is called {name!r}; there are {', '.join(TUNING)}")


def family(name: str) -> str:
    """What kind of problem it is, without loading it."""
    if name in recorded.NAMES:
        return learners.parts(name)[0].label
    return bbob.LABEL if name in bbob.NAMES else "mixed" if name == MIXED else "NAS-Bench-201"
