"""What a benchmark problem is, in words that belong to none of the libraries compared.

Each searcher translates these descriptions into its own search space. Keeping them neutral is what makes the
comparison fair: nobody gets a space that was written with one library's parametrisation in mind.

A dimension with ``when`` is conditional: it is active only where the dimension named there, which comes before it and is
always active, has one of the options named there. A searcher without conditions may set it everywhere; an inactive value has
no effect.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Config = Mapping[str, Any]
When = tuple[str, tuple[str, ...]]  # the name of a Category, and the options with which the dimension is active


@dataclass(frozen=True)
class Real:
    """A float between low and high; log says that its order of magnitude is what matters."""

    name: str
    low: float
    high: float
    log: bool = False
    when: When | None = None


@dataclass(frozen=True)
class Integer:
    """An integer between low and high, both included."""

    name: str
    low: int
    high: int
    log: bool = False
    when: When | None = None


@dataclass(frozen=True)
class Category:
    """One of several options without an order."""

    name: str
    options: tuple[str, ...]
    when: When | None = None


Dimension = Real | Integer | Category


def is_active(dimension: Dimension, config: Config) -> bool:
    """Whether the dimension has an effect in this config."""
    return dimension.when is None or config[dimension.when[0]] in dimension.when[1]


def active(dimensions: tuple[Dimension, ...], config: Config) -> dict[str, Any]:
    """The config without the dimensions that have no effect in it."""
    return {dimension.name: config[dimension.name] for dimension in dimensions if is_active(dimension, config)}


@dataclass(frozen=True)
class Problem:
    """A deterministic function to minimise, together with the best value known for it."""

    name: str
    dimensions: tuple[Dimension, ...]
    evaluate: Callable[[Config], float]
    optimum: float
