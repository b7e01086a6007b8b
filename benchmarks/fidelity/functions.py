"""The augmented functions of the continuous-fidelity paper (appendix A): a known function with a knob s that bends it.

    Branin       (x2 - (5.1 / (4 pi^2) - b (1 - s)) x1^2 + 5 x1 / pi - 6)^2 + 10 (1 - 1 / (8 pi)) cos x1 + 10
    Hartmann     -((a1 - b (1 - s)) exp(-sum_j A1j (xj - P1j)^2) + sum_i>1 ai exp(-sum_j Aij (xj - Pij)^2))
    Rosenbrock   sum_i<3 100 (x_i+1 - x_i^2 + b (1 - s))^2 + (x_i - 1)^2

at a cost of 0.01 + s; s = 1 is the function itself. The appendix prints Hartmann's sum without its sign; it is minimised here,
so it has one. The bias b is 0.001 in the paper (0.01 for Hartmann), which makes s = 0 almost exact at a hundredth of the
price: whoever always takes s = 0 does well. With b = 0.1, the second set, cheap evidence misleads on Branin and Rosenbrock: the
regret at s = 1 of the lowest point of s = 0 (``misled``) is 0.97 and 2.0. Hartmann's first term is far from its minimum, so that
even b = 0.1 moves the lowest point by next to nothing (0.0006 in six dimensions, less in three); the values do change.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from benchmarks.fidelity.core import FidelityProblem, Measured
from benchmarks.problems import synthetic
from benchmarks.problems.core import Config, Real
from benchmarks.problems.synthetic import Vector

NAMES = ("branin", "rosenbrock3", "hartmann3", "hartmann6")
SETS = {  # the paper's constants, and those that mislead
    "functions": {"branin": 0.001, "rosenbrock3": 0.001, "hartmann3": 0.01, "hartmann6": 0.01},
    "biased": dict.fromkeys(NAMES, 0.1),
}
BOXES = {"branin": [(-5, 10), (0, 15)], "rosenbrock3": [(-2, 2)] * 3, "hartmann3": [(0, 1)] * 3, "hartmann6": [(0, 1)] * 6}
# At s = 1. The box of Rosenbrock is BoTorch's smaller one; the minimum at (1, 1, 1) is not its middle.
OPTIMA = {"branin": 0.39788735772973816, "rosenbrock3": 0.0, "hartmann3": -3.8627797873327696, "hartmann6": -3.322368011415512}
BUDGETS = {"branin": 40.0, "rosenbrock3": 40.0, "hartmann3": 40.0, "hartmann6": 80.0}  # an evaluation at s = 1 costs 1.01
CAP = 300
FIXED = 0.01


def branin(x: Vector, s: float, bias: float) -> float:
    valley = x[1] - (5.1 / (4 * np.pi**2) - bias * (1 - s)) * x[0] ** 2 + 5 / np.pi * x[0] - 6
    return float(valley**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x[0]) + 10)


def rosenbrock(x: Vector, s: float, bias: float) -> float:
    return float(np.sum(100 * (x[1:] - x[:-1] ** 2 + bias * (1 - s)) ** 2 + (x[:-1] - 1) ** 2))


def hartmann(x: Vector, s: float, bias: float) -> float:
    scales, centres = (
        (synthetic._HARTMANN3_SCALES, synthetic._HARTMANN3_CENTRES)
        if len(x) == 3
        else (synthetic._HARTMANN6_SCALES, synthetic._HARTMANN6_CENTRES)
    )
    weights = synthetic._HARTMANN_WEIGHTS - np.array([bias * (1 - s), 0.0, 0.0, 0.0])
    return -float(weights @ np.exp(-(scales * (x - centres) ** 2).sum(axis=1)))


FUNCTIONS: dict[str, Callable[[Vector, float, float], float]] = {
    "branin": branin,
    "rosenbrock3": rosenbrock,
    "hartmann3": hartmann,
    "hartmann6": hartmann,
}


def load(name: str, bias: float, budget: float | None = None) -> FidelityProblem:
    function, box = FUNCTIONS[name], BOXES[name]
    names = [f"x{i}" for i in range(len(box))]

    def at(config: Config, s: float) -> float:
        return function(np.array([config[key] for key in names], dtype=float), s, bias)

    def cost(config: Config) -> float:
        return FIXED + float(config["s"])

    return FidelityProblem(
        name,
        tuple(Real(key, *ends) for key, ends in zip(names, box, strict=True)),
        (Real("s", 0.0, 1.0),),
        lambda config: Measured(at(config, float(config["s"])), cost(config)),
        lambda config: max(at(config, 1.0) - OPTIMA[name], 0.0),
        budget or BUDGETS[name],
        CAP,
        cost,
    )


@cache
def misled(name: str, bias: float) -> float:
    """The regret at s = 1 of the lowest point of s = 0: what is lost by believing the cheapest evidence."""
    from scipy.optimize import minimize

    low, high = np.array(BOXES[name], dtype=float).T
    starts = low + np.random.default_rng(0).random((60, len(low))) * (high - low)
    cheap = lambda x: FUNCTIONS[name](x, 0.0, bias)  # noqa: E731
    found = [minimize(cheap, start, bounds=list(zip(low, high, strict=True)), method="L-BFGS-B") for start in starts]
    best = min(found, key=lambda each: each.fun).x
    return max(FUNCTIONS[name](best, 1.0, bias) - OPTIMA[name], 0.0)
