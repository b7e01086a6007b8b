"""What a problem with costs is, in the neutral words of the other benchmarks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.problems.core import Category, Config, Dimension, Integer, Problem

Measured = tuple[float, float]  # value, cost


@dataclass(frozen=True)
class CostProblem:
    """A function to minimise whose evaluations cost something; ``optimum`` is the best value known."""

    name: str
    dimensions: tuple[Dimension, ...]
    evaluate: Callable[[Config], Measured]
    optimum: float

    def without_costs(self) -> Problem:
        """The same for code that asks for values only, such as the translation of spaces."""
        return Problem(self.name, self.dimensions, lambda config: self.evaluate(config)[0], self.optimum)


def at(dimension: Dimension, position: float) -> Any:
    """The value of a dimension at a position in [0, 1), every integer and option owning an equal share of it."""
    if isinstance(dimension, Category):
        return dimension.options[int(position * len(dimension.options))]
    room = 0.5 if isinstance(dimension, Integer) else 0.0
    low, high = dimension.low - room, dimension.high + room
    value = low * (high / low) ** position if dimension.log else low + position * (high - low)
    value = min(max(value, dimension.low), dimension.high)
    return round(value) if isinstance(dimension, Integer) else float(value)
