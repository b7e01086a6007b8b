"""What a problem with costs is, in the neutral words of the other benchmarks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.problems.core import Category, Config, Dimension, Integer, Problem

Measured = tuple[float, float]  # value, cost


@dataclass(frozen=True)
class CostProblem:
    """A function to minimise whose evaluations cost something; ``optimum`` is the best value known.

    ``family`` is what kind of problem it is. Where values are noisy, ``noise_free`` gives the value that regret is measured by,
    and ``optimum`` is the lowest of those.
    """

    name: str
    dimensions: tuple[Dimension, ...]
    evaluate: Callable[[Config], Measured]
    optimum: float
    family: str = ""
    noise_free: Callable[[Config], float] | None = None

    def true_value(self, config: Config) -> float:
        """The value of a config without noise."""
        return self.evaluate(config)[0] if self.noise_free is None else self.noise_free(config)

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
