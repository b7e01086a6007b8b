"""Made-up spaces that mix floats, integers and categories, with optima known by construction.

Both are sums of terms that cannot be negative and that all vanish at one configuration, so the optimum is
exactly zero. Categories move the best values of the other dimensions, as they do in real pipelines: a
searcher that treats them as independent of everything else pays for it.
"""

import math

from benchmarks.problems.core import Category, Config, Integer, Problem, Real

_KINDS = {"a": (0.6, -2.0, 6), "b": (0.0, -3.3, 3), "c": (0.25, -4.2, 5), "d": (1.0, -2.7, 2)}


def _network(config: Config) -> float:
    """The shape of tuning a network: each kind has its own floor, best rate and best depth."""
    floor, best_rate, best_depth = _KINDS[config["kind"]]
    rate = math.log10(config["rate"]) - best_rate
    width = math.log2(config["width"]) - 7
    value = floor + rate**2 + 0.3 * (1 - math.cos(2 * math.pi * rate))
    value += 0.08 * (config["depth"] - best_depth) ** 2 + 0.1 * width**2
    value += 2.0 * (config["dropout"] - 0.2) ** 2 + 0.15 * abs(width) * config["dropout"]
    if config["warmup"] == "off":
        value += 0.1 + 0.5 * max(0.0, math.log10(config["rate"]) + 4)
    return float(value)


def _blend(config: Config) -> float:
    """A wavy bowl whose centre and waviness depend on two categories and an integer."""
    centre = {"left": -2.0, "middle": 0.5, "right": 3.0}[config["side"]]
    floor = {"left": 0.0, "middle": 0.4, "right": 0.2}[config["side"]]
    waves = {"none": 0.0, "few": 0.5, "many": 1.0, "most": 1.5}[config["waves"]]
    x, y = config["x"] - centre, math.log(config["y"]) - 0.1 * config["count"]
    value = floor + 0.2 * x**2 + 0.5 * y**2 + waves * (2 - math.cos(3 * x) - math.cos(4 * y))
    return float(value + 0.3 * (1.5 - waves) + 0.02 * (config["count"] - 14) ** 2)


def reporting() -> tuple[Problem, ...]:
    dimensions = (
        Real("rate", 1e-5, 1e-1, log=True),
        Real("dropout", 0.0, 0.9),
        Integer("depth", 1, 8),
        Integer("width", 8, 2048, log=True),
        Category("kind", tuple(_KINDS)),
        Category("warmup", ("on", "off")),
    )
    # Zero needs width = 128 (the width terms vanish) and dropout = 0.2 at kind b, warm-up on.
    return (Problem("mixed_network", dimensions, _network, 0.0),)


def tuning() -> tuple[Problem, ...]:
    dimensions = (
        Real("x", -5.0, 5.0),
        Real("y", 0.1, 100.0, log=True),
        Integer("count", 0, 30),
        Category("side", ("left", "middle", "right")),
        Category("waves", ("none", "few", "many", "most")),
    )
    return (Problem("mixed_blend", dimensions, _blend, 0.0),)
