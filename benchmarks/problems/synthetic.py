"""Test functions of global optimisation, on boxes whose centre gives nothing away.

A searcher that happens to look at the middle of the box first must not be rewarded for it, so functions whose
textbook domain is centred on the optimum (Ackley, Levy, Rastrigin, ...) are given a shifted box here. The
functions themselves are the textbook ones.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.problems.core import Config, Problem, Real

Vector = NDArray[np.float64]
Box = Sequence[tuple[float, float]]


def on_box(name: str, function: Callable[[Vector], float], box: Box, optimum: float) -> Problem:
    """Wrap a function of a vector as a problem with dimensions x1, x2, ..."""
    dimensions = tuple(Real(f"x{i + 1}", low, high) for i, (low, high) in enumerate(box))
    names = [dimension.name for dimension in dimensions]

    def evaluate(config: Config) -> float:
        return float(function(np.array([config[key] for key in names], dtype=float)))

    return Problem(name, dimensions, evaluate, optimum)


def branin(x: Vector) -> float:
    valley = x[1] - 5.1 / (4 * np.pi**2) * x[0] ** 2 + 5 / np.pi * x[0] - 6
    return float(valley**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x[0]) + 10)


_HARTMANN_WEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
_HARTMANN3_SCALES = np.array([[3.0, 10, 30], [0.1, 10, 35], [3.0, 10, 30], [0.1, 10, 35]])
_HARTMANN3_CENTRES = 1e-4 * np.array(
    [[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]]
)
_HARTMANN6_SCALES = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
_HARTMANN6_CENTRES = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def _hartmann(x: Vector, scales: Vector, centres: Vector) -> float:
    return -float(_HARTMANN_WEIGHTS @ np.exp(-(scales * (x - centres) ** 2).sum(axis=1)))


def hartmann3(x: Vector) -> float:
    return _hartmann(x, _HARTMANN3_SCALES, _HARTMANN3_CENTRES)


def hartmann6(x: Vector) -> float:
    return _hartmann(x, _HARTMANN6_SCALES, _HARTMANN6_CENTRES)


def ackley(x: Vector) -> float:
    radius = np.sqrt(np.mean(x**2))
    return float(-20 * np.exp(-0.2 * radius) - np.exp(np.mean(np.cos(2 * np.pi * x))) + 20 + np.e)


def levy(x: Vector) -> float:
    w = 1 + (x - 1) / 4
    middle = np.sum((w[:-1] - 1) ** 2 * (1 + 10 * np.sin(np.pi * w[:-1] + 1) ** 2))
    return float(np.sin(np.pi * w[0]) ** 2 + middle + (w[-1] - 1) ** 2 * (1 + np.sin(2 * np.pi * w[-1]) ** 2))


def rosenbrock(x: Vector) -> float:
    return float(np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))


def rastrigin(x: Vector) -> float:
    return float(np.sum(x**2 - 10 * np.cos(2 * np.pi * x) + 10))


def griewank(x: Vector) -> float:
    return float(np.sum(x**2) / 4000 - np.prod(np.cos(x / np.sqrt(np.arange(1, len(x) + 1)))) + 1)


def styblinski_tang(x: Vector) -> float:
    return float(np.sum(x**4 - 16 * x**2 + 5 * x) / 2)


def michalewicz(x: Vector) -> float:
    return float(-np.sum(np.sin(x) * np.sin(np.arange(1, len(x) + 1) * x**2 / np.pi) ** 20))


def camel(x: Vector) -> float:
    a, b = x
    return float((4 - 2.1 * a**2 + a**4 / 3) * a**2 + a * b + (4 * b**2 - 4) * b**2)


def goldstein_price(x: Vector) -> float:
    a, b = x
    first = 1 + (a + b + 1) ** 2 * (19 - 14 * a + 3 * a**2 - 14 * b + 6 * a * b + 3 * b**2)
    second = 30 + (2 * a - 3 * b) ** 2 * (18 - 32 * a + 12 * a**2 + 48 * b - 36 * a * b + 27 * b**2)
    return float(first * second)


def schwefel(x: Vector) -> float:
    return float(np.sum(418.9828872724339 - x * np.sin(np.sqrt(np.abs(x)))))


def zakharov(x: Vector) -> float:
    slope = np.sum(0.5 * np.arange(1, len(x) + 1) * x)
    return float(np.sum(x**2) + slope**2 + slope**4)


def dixon_price(x: Vector) -> float:
    return float((x[0] - 1) ** 2 + np.sum(np.arange(2, len(x) + 1) * (2 * x[1:] ** 2 - x[:-1]) ** 2))


def reporting() -> tuple[Problem, ...]:
    """The synthetic functions on which results may be quoted."""
    return (
        on_box("branin", branin, [(-5, 10), (0, 15)], 0.39788735772973816),
        on_box("hartmann3", hartmann3, [(0, 1)] * 3, -3.8627797873327696),
        on_box("hartmann6", hartmann6, [(0, 1)] * 6, -3.322368011415512),
        on_box("ackley4", ackley, [(-10, 25)] * 4, 0.0),
        on_box("ackley6", ackley, [(-10, 25)] * 6, 0.0),
        on_box("levy4", levy, [(-10, 5)] * 4, 0.0),
        on_box("levy6", levy, [(-10, 5)] * 6, 0.0),
        on_box("rosenbrock4", rosenbrock, [(-5, 10)] * 4, 0.0),
        on_box("rosenbrock6", rosenbrock, [(-5, 10)] * 6, 0.0),
    )


def tuning() -> tuple[Problem, ...]:
    """The synthetic functions on which defaults may be chosen."""
    return (
        on_box("rastrigin3", rastrigin, [(-3.5, 6)] * 3, 0.0),
        on_box("griewank5", griewank, [(-200, 400)] * 5, 0.0),
        on_box("styblinski_tang4", styblinski_tang, [(-5, 5)] * 4, -4 * 39.16616570377142),
        on_box("michalewicz5", michalewicz, [(0, np.pi)] * 5, -4.687658179),
        on_box("camel", camel, [(-3, 3), (-2, 2)], -1.031628453489877),
        on_box("goldstein_price", goldstein_price, [(-2, 2)] * 2, 3.0),
        on_box("schwefel3", schwefel, [(-500, 500)] * 3, 0.0),
        on_box("zakharov4", zakharov, [(-5, 10)] * 4, 0.0),
        on_box("dixon_price5", dixon_price, [(-10, 5)] * 5, 0.0),
    )
