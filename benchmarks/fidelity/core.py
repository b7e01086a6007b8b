"""A problem whose evaluations can be bought in part, in words that belong to none of the libraries compared.

A fidelity is a dimension like another, whose high end is the target: the answer is wanted there. A searcher proposes configs
that hold both kinds, is told what came of them, and says at any time which config it would recommend.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from benchmarks.problems.core import Category, Config, Dimension, Integer


@dataclass(frozen=True)
class Measured:
    """What an evaluation gave: the value, what was paid for it, and the slopes along the parameters where they are known."""

    value: float
    cost: float
    gradient: dict[str, float] | None = None


@dataclass(frozen=True)
class FidelityProblem:
    """``regret`` is of a config at the target, whatever fidelities it names; it is never charged for.

    ``known_cost`` is the cost as a function of the config, where that is a formula; ``cap`` is the most evaluations of a run.
    ``charges_thinking``: costs are seconds, so that the searcher's own seconds are paid from the same budget.
    """

    name: str
    dimensions: tuple[Dimension, ...]
    fidelities: tuple[Dimension, ...]
    evaluate: Callable[[Config], Measured]
    regret: Callable[[Config], float]
    budget: float
    cap: int
    known_cost: Callable[[Config], float] | None = None
    charges_thinking: bool = False

    def at_target(self, config: Config) -> dict[str, Any]:
        return dict(config) | {fidelity.name: high(fidelity) for fidelity in self.fidelities}


class BatchSearcher(Protocol):
    """Proposes a batch, is told what came of it, recommends."""

    def suggest(self) -> Sequence[Config]: ...

    def observe(self, results: Sequence[Measured]) -> None: ...

    def recommend(self) -> Config | None: ...


def high(dimension: Dimension) -> float | int:
    if isinstance(dimension, Category):
        raise TypeError(f"{dimension.name} has no high end")
    return dimension.high


def shoestring_space(problem: FidelityProblem) -> Any:
    """The problem's space in Shoestring's terms."""
    import shoestring as st
    from benchmarks import peers
    from benchmarks.problems.core import Problem

    plain = peers.shoestring_space(Problem(problem.name, problem.dimensions, lambda config: 0.0, 0.0))
    fidelities: dict[str, Any] = {}
    for each in problem.fidelities:
        assert not isinstance(each, Category)
        ends = (each.low, each.high) if isinstance(each, Integer) else (float(each.low), float(each.high))
        fidelities[each.name] = st.Fidelity(*ends, log=each.log)
    return st.Space(**{name: plain[name] for name in plain}, **fidelities)
