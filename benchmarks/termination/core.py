"""What a problem is when stopping is judged: an evaluation also has a test error that the search never sees."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.peers import shoestring_space
from benchmarks.problems.core import Category, Config, Dimension, Problem


@dataclass(frozen=True)
class Measured:
    """``test`` is what the search should have been about: a test error, or a training seed that was held out."""

    value: float
    cost: float
    test: float
    folds: tuple[float, ...] | None = None


@dataclass(frozen=True)
class TestedProblem:
    """A function to minimise; ``optimum`` is its lowest value where that is known."""

    __test__ = False  # nothing for pytest

    name: str
    dimensions: tuple[Dimension, ...]
    evaluate: Callable[[Config], Measured]
    optimum: float | None
    fold_sizes: tuple[int, ...] | None = None

    def plain(self) -> Problem:
        """The same for code that asks for values only."""
        return Problem(self.name, self.dimensions, lambda config: self.evaluate(config).value, self.optimum or 0.0)

    def space(self) -> Any:
        return shoestring_space(self.plain())


def packed(dimensions: Sequence[Dimension], config: Config) -> list[Any]:
    """A config as a short list: the number of the option for a category, the value itself for the rest."""
    return [d.options.index(config[d.name]) if isinstance(d, Category) else config[d.name] for d in dimensions]


def unpacked(dimensions: Sequence[Dimension], row: Sequence[Any]) -> dict[str, Any]:
    return {d.name: d.options[x] if isinstance(d, Category) else x for d, x in zip(dimensions, row, strict=True)}


def tidy(number: float) -> float:
    """As it is stored: eight digits."""
    return float(f"{number:.8g}")
