"""The knowledge gradient as the paper searches it: stochastic gradient ascent of a Monte Carlo estimate. Slow: a reference.

Source: Wu and Frazier, "Continuous-fidelity Bayesian optimization with knowledge gradient" (2017), sections 3.2 and 3.3.

    q-cfKG(z_1:q) = KG(z_1:q) / max_i cost(z_i)                                                                    (3.4)

``batch_knowledge`` estimates KG and its gradient, both without bias, and hence those of the ratio. Each step draws W anew; the
t-th is LENGTH (1 + t)^-DECAY long, in units of the gradients' root mean square so far, and ends inside the cube (Robbins and
Monro 1951); the answer is the mean of the second half of the iterates (Polyak and Juditsky 1992). The best of several starts is
then chosen with the same draws for all. In a space without fidelities this is q-KG, and cost does not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..numerics import Array, single_threaded
from ..surrogate.belief import Belief
from ..surrogate.cost.base import CostPosterior, expected_log_cost_with_gradient
from .batch_knowledge import BatchKnowledge
from .candidates import known, neighbours, quasi_random, unseen
from .improvement import Surface
from .maximize import Chosen, Seeker
from .representers import whole_number

LENGTH, DECAY = 0.1, 0.6
SCREENED = 16  # batches from which each start is the best one
MORE = 8  # times as many draws for the choice among ends
TINY = 1e-300


@dataclass(frozen=True)
class Worth:
    """The estimate of q-cfKG, averaged over sets of hyperparameters, times the chance that a trial does not fail."""

    belief: Belief
    parts: tuple[BatchKnowledge, ...]
    cost: CostPosterior | None

    @classmethod
    def under(cls, belief: Belief, sets: Sequence[Belief], rng: np.random.Generator) -> Worth:
        return cls(belief, tuple(BatchKnowledge.of(each, rng) for each in sets), _cost(belief))

    def estimate(self, U: Array, W: Array, *, descend: bool = True) -> float:
        """Its value for one batch (q x D)."""
        knowledge = float(np.mean([part.drops(U, W, descend=descend)[0].mean() for part in self.parts]))
        return knowledge * float(np.exp(self._factor(U)[0]))

    def with_gradient(self, U: Array, W: Array) -> tuple[float, Array]:
        found = [(part, *part.drops(U, W)) for part in self.parts]
        knowledge = float(np.mean([drops.mean() for _, drops, _ in found]))
        slope = np.mean([part.slope(U, W, minimisers) for part, _, minimisers in found], axis=0)
        log_factor, d_factor = self._factor(U)
        factor = float(np.exp(log_factor))
        return knowledge * factor, factor * (slope + knowledge * d_factor)

    def _factor(self, U: Array) -> tuple[float, Array]:
        """log of what KG is multiplied by, and its gradient. Costs are in units of a typical one."""
        encoding, viability = self.belief.encoding, self.belief.viability
        total, slope = 0.0, np.zeros_like(U)
        if viability is not None:
            chance, d_chance = viability.log_chance_with_gradient(encoding.features(U))
            total, slope = total + float(chance.mean()), slope + encoding.pull_back(U, d_chance) / len(U)
        if self.cost is not None:
            log_cost, d_cost = expected_log_cost_with_gradient(self.cost, U)
            dearest = int(np.argmax(log_cost))
            total += self.belief.typical_log_cost - float(log_cost[dearest])
            slope[dearest] -= d_cost[dearest]
        return total, slope


@dataclass(frozen=True)
class StochasticKG:
    """The knowledge gradient by stochastic gradient ascent, per cost where the space has fidelities. A slow reference for ``KG``.

    ``q`` points are planned together, and suggested one after the other while none of them has finished.
    """

    q: int = 1
    samples: int = 16
    steps: int = 40
    starts: int = 4
    uses_cost: ClassVar[bool] = True
    free_fidelities: ClassVar[bool] = True
    over_sets: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for field in ("q", "samples", "steps", "starts"):
            whole_number("StochasticKG", field, getattr(self, field), 1)

    def on(self, belief: Belief, rng: np.random.Generator) -> Surface:
        """log of the estimate for single points, with the same draws for all of them."""
        made: list[tuple[Worth, Array]] = []

        def value(U: Array, gradient: bool) -> tuple[Array, Array | None]:
            if not made:  # when it is first looked at, since it takes long to prepare
                made.append((Worth.under(belief, [belief], rng), rng.standard_normal((self.samples, 1))))
            worth, W = made[0]
            if not gradient:
                return np.log(np.maximum([worth.estimate(u[None, :], W) for u in U], TINY)), None
            found = [worth.with_gradient(u[None, :], W) for u in U]
            values = np.maximum([each for each, _ in found], TINY)
            return np.log(values), np.vstack([slope for _, slope in found]) / values[:, None]

        return value

    @single_threaded
    def choose(self, belief: Belief, seeker: Seeker) -> Chosen:
        planned = _planned(belief, seeker)
        if not len(planned):
            planned = self.plan(belief, seeker)
        rest = {"plan": planned[1:].tolist(), "planned_at": belief.trials} if len(planned) > 1 else {}
        return Chosen(planned[0], rest)

    def plan(self, belief: Belief, seeker: Seeker) -> Array:
        """The best batch found: at most q points, none of them seen before, one at least."""
        rng, space = seeker.rng, seeker.encoding.space
        worth = Worth.under(belief, belief.sets, rng)
        starts = self._starts(worth, seeker)
        ends = [space.snap(self._climb(worth, start, rng)) for start in starts]
        W = rng.standard_normal((MORE * self.samples, self.q))
        batches = [*ends, *starts]
        values = [worth.estimate(batch, W) for batch in batches]
        for j in np.argsort(-np.array(values), kind="stable"):
            fresh = batches[j][~known(batches[j], seeker.seen)]
            if len(fresh):
                return np.asarray(fresh[np.sort(np.unique(fresh, axis=0, return_index=True)[1])])
        return unseen(space, seeker.seen, rng)[None, :]

    def _starts(self, worth: Worth, seeker: Seeker) -> list[Array]:
        """Batches spread over the space and near the best trials, the best of ``SCREENED`` each by a rough estimate."""
        rng, space = seeker.rng, seeker.encoding.space
        count = SCREENED * self.starts
        spread = quasi_random(count * self.q, len(space), rng)
        near = neighbours(seeker.best, count * self.q, space, rng)
        pool = space.snap(np.where((np.arange(count * self.q) % 2 == 0)[:, None], spread, near))
        batches = rng.permutation(pool).reshape(self.starts, SCREENED, self.q, -1)
        W = rng.standard_normal((self.samples, self.q))
        values = np.array([[worth.estimate(batch, W, descend=False) for batch in group] for group in batches])
        return [group[best] for group, best in zip(batches, np.argmax(values, axis=1), strict=True)]

    def _climb(self, worth: Worth, U: Array, rng: np.random.Generator) -> Array:
        """Stochastic gradient ascent of the numbers; choices stay."""
        squares, kept = 0.0, []
        for t in range(self.steps):
            _, slope = worth.with_gradient(U, rng.standard_normal((self.samples, self.q)))
            squares += float((slope**2).sum())
            if squares > 0.0:
                U = np.clip(U + LENGTH * (1 + t) ** -DECAY * slope / np.sqrt(squares / (t + 1)), 0.0, 1.0)
            if t >= self.steps // 2:
                kept.append(U)
        return np.asarray(np.mean(kept, axis=0))


def _cost(belief: Belief) -> CostPosterior | None:
    return belief.cost if belief.encoding.space.fidelities else None


def _planned(belief: Belief, seeker: Seeker) -> Array:
    """What is left of the batch that was planned, while all of it that was suggested is still running."""
    last: Any = belief.remembered
    if not last.get("plan") or last.get("planned_at") != belief.trials or not len(belief.waiting):
        return seeker.seen[:0]
    left = np.array(last["plan"], dtype=float)
    return left[~known(left, seeker.seen)]
