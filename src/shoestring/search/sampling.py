"""Search without a model: random and quasi-random points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..acquisition.candidates import known, unseen
from ..numerics import Array
from ..trial import Suggestion
from .method import Situation


@dataclass(frozen=True)
class Random:
    """Independent draws from each parameter's natural distribution."""

    def suggest(self, situation: Situation) -> Suggestion:
        u = unseen(situation.space, situation.seen.seen, situation.rng)
        return Suggestion(situation.space.decode(u), by="Random", why="random search")


@dataclass(frozen=True)
class Sobol:
    """A scrambled Sobol sequence: covers the space more evenly than random points."""

    def suggest(self, situation: Situation) -> Suggestion:
        return Suggestion(situation.space.decode(space_filling(situation)), by="Sobol", why="quasi-random search")


def space_filling(situation: Situation) -> Array:
    """The point of the study's Sobol sequence at the trial's number; a random unseen one where that was tried already."""
    space = situation.space
    u = space.snap(space.at_target(sobol_point(situation.seed, situation.number, len(space))[None, :]))
    if known(u, situation.seen.seen)[0]:
        return unseen(space, situation.seen.seen, situation.rng)
    return np.asarray(u[0])


def sobol_point(seed: int, index: int, dimensions: int) -> Array:
    from scipy.stats import qmc  # here, since it would double the time of `import shoestring`

    sequence = qmc.Sobol(dimensions, rng=np.random.default_rng([seed, 0x50B01]))
    if index > 0:  # SciPy 1.17 overflows on fast_forward(0)
        sequence.fast_forward(index)
    return np.asarray(sequence.random(1)[0])
