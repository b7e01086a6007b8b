"""What a benchmark problem is, in words that belong to none of the libraries compared.

Each searcher translates these descriptions into its own search space. Keeping them neutral is what makes the
comparison fair: nobody gets a space that was written with one library's parametrisation in mind.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Config = Mapping[str, Any]


@dataclass(frozen=True)
class Real:
    """A float between low and high; log says that its order of magnitude is what matters."""

    name: str
    low: float
    high: float
    log: bool = False


@dataclass(frozen=True)
class Integer:
    """An integer between low and high, both included."""

    name: str
    low: int
    high: int
    log: bool = False


@dataclass(frozen=True)
class Category:
    """One of several options without an order."""

    name: str
    options: tuple[str, ...]


Dimension = Real | Integer | Category


@dataclass(frozen=True)
class Problem:
    """A deterministic function to minimise, together with the best value known for it."""

    name: str
    dimensions: tuple[Dimension, ...]
    evaluate: Callable[[Config], float]
    optimum: float
