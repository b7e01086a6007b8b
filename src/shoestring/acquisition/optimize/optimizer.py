"""The acquisition optimizer: where a surface is highest, on continuous, mixed and conditional spaces alike.

Raw samples (quasi-random points) and local samples (neighbours of the best trials) are evaluated; the best of them are the
restarts. From each restart, gradient ascent moves the numbers and exchange moves try the other values of everything discrete, by
turns. Small finite spaces are searched whole.

Notation: U (m x D) points of the unit cube; a surface maps (U, gradient wanted) to values (m) and gradients (m x D, or None).

A surface without a gradient, such as a forest's, is flat in pieces (``maximize_without_gradient``). There the best of many
candidates over the whole space is taken, and none are put around the best trials: a classifier is sure there because it learnt
them, and the search would stay at its first good points. Of the points that are highest together one is drawn at random: the
first of them would always be the same edge of a plateau.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.visited import VisitedSet
from ...errors import SpaceExhausted
from ...numerics import Array, single_threaded
from ...space.encoding import Encoding
from .batched_bfgs import GAIN_TOLERANCE, ascend
from .candidates import at_fidelity_corners, is_visited, moves_from, neighbours, quasi_random, random_unvisited, small_grid

EDGE_STRIDE = 4  # every fourth candidate is looked at at each bound of the fidelities too

Surface = Callable[[Array, bool], tuple[Array, Array | None]]  # (points m x D, gradient wanted) -> m, m x D


@dataclass(frozen=True)
class OptimizerOptions:
    """How hard to search.

    raw_samples    quasi-random candidates;   local_samples  neighbours of the best trials
    restarts       candidates from which local search starts;   rounds  of exchange moves and ascent
    """

    raw_samples: int = 512
    local_samples: int = 256
    restarts: int = 8
    rounds: int = 3


@dataclass(frozen=True)
class Optimum:
    """The best point that was not visited, its value, and all points that were evaluated on the way, best first."""

    u: Array
    value: float
    U: Array
    values: Array


@dataclass(frozen=True)
class Selection:
    """What ``Acquisition.select`` returns: the point to evaluate.

    u           the point in the unit cube
    warm_start  what the acquisition wants to know at its next choice (JSON-ready)

    >>> st.Selection(np.array([0.25, 0.5])).warm_start
    {}
    """

    u: Array
    warm_start: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class AcquisitionOptimizer:
    """Finds the maximum of a surface over a space, mixed and conditional ones too.

    ``Acquisition.select`` is given one: use its ``maximize``, ``candidates`` and ``rng``.

    encoding    of the space
    rng         all randomness of the search
    visited     points that must not be suggested again
    incumbents  good points: their neighbourhood is searched too
    options     how hard to search
    fidelities  whether these may be chosen too; otherwise they are at their targets
    continuations   points at which a run would go on: candidates that are not moved, since nearby points begin a new run

    >>> study = st.Study(st.Space(n=st.Int(1, 4)))
    >>> optimum = study.context.optimizer().maximize(lambda U, gradient: (U[:, 0], None))
    >>> study.space.decode(optimum.u)
    {'n': 4}
    """

    encoding: Encoding
    rng: np.random.Generator
    visited: Array | VisitedSet
    incumbents: Array
    options: OptimizerOptions = OptimizerOptions()
    fidelities: bool = False
    continuations: Array | None = None

    @single_threaded
    def maximize(self, surface: Surface) -> Optimum:
        """The point with the highest value that was not visited.

        Raises SpaceExhausted when a finite space has no other point.
        """
        space = self.encoding.space
        whole = None if self.chooses_fidelity else small_grid(space)
        if whole is not None:
            left = whole[~is_visited(whole, self.visited)]
            if not len(left):
                raise SpaceExhausted(f"all {len(whole)} configurations of this space have been tried")
            values = _finite(surface(left, False)[0])
            order = np.argsort(-values, kind="stable")
            return Optimum(left[order[0]], float(values[order[0]]), left[order], values[order])

        spread = self._placed(quasi_random(self.options.raw_samples, len(space), self.rng))
        near = self._placed(neighbours(self.incumbents, self.options.local_samples, space, self.rng))
        pool = np.vstack([spread, near])
        values = _finite(surface(pool, False)[0])
        starts = pick_restarts(values, len(spread), self.options.restarts)
        if self.chooses_fidelity:
            pool, values, starts = self._with_edges(surface, pool, values, starts, len(spread))
        if len(starts):
            U, f = local_search(
                surface, self.encoding, pool[starts], values[starts], self.options.rounds, self.rng, self.chooses_fidelity
            )
            pool, values = np.vstack([U, pool]), np.concatenate([f, values])
        if self.continuations is not None and len(self.continuations):
            going_on = self._placed(self.continuations)
            pool, values = np.vstack([going_on, pool]), np.concatenate([_finite(surface(going_on, False)[0]), values])
        order = np.argsort(-values, kind="stable")
        fresh = order[~is_visited(pool[order], self.visited)]
        if len(fresh):
            return Optimum(pool[fresh[0]], float(values[fresh[0]]), pool[fresh], values[fresh])
        u = random_unvisited(space, self.visited, self.rng)
        value = _finite(surface(u[None, :], False)[0])
        return Optimum(u, float(value[0]), u[None, :], value)

    def _with_edges(
        self, surface: Surface, pool: Array, values: Array, starts: NDArray[np.intp], boundary: int
    ) -> tuple[Array, Array, NDArray[np.intp]]:
        """The pool with points at the bounds of the fidelities, and the restarts with the best of each bound."""
        some = np.vstack([pool[:boundary][::EDGE_STRIDE], pool[boundary:][::EDGE_STRIDE], pool[starts]])
        for edge in at_fidelity_corners(some, self.encoding.space):
            edge = self._placed(edge)
            found = _finite(surface(edge, False)[0])
            starts = np.append(starts, len(pool) + int(np.argmax(found)))
            pool, values = np.vstack([pool, edge]), np.concatenate([values, found])
        return pool, values, starts

    @single_threaded
    def maximize_from(self, surface: Surface, pool: Array) -> Optimum:
        """The same for a surface much like one that was maximised before, from the points evaluated then (``Optimum.U``)."""
        values = _finite(surface(pool, False)[0])
        if self.chooses_fidelity or small_grid(self.encoding.space) is None:
            starts = np.argsort(-values, kind="stable")[: self.options.restarts // 2]
            U, f = local_search(
                surface, self.encoding, pool[starts], values[starts], self.options.rounds, self.rng, self.chooses_fidelity
            )
            kept = ~is_visited(U, self.visited)
            pool, values = np.vstack([U[kept], pool]), np.concatenate([f[kept], values])
        order = np.argsort(-values, kind="stable")
        return Optimum(pool[order[0]], float(values[order[0]]), pool[order], values[order])

    def candidates(self, count: int) -> Array:
        """Up to ``count`` points of the space that were not visited: for acquisitions that select among candidates.

        Raises SpaceExhausted when a finite space has none.
        """
        space = self.encoding.space
        whole = None if self.chooses_fidelity else small_grid(space)
        pool = self._placed(quasi_random(count, len(space), self.rng)) if whole is None else whole
        pool = pool[~is_visited(pool, self.visited)]
        return pool[:count] if len(pool) else random_unvisited(space, self.visited, self.rng)[None, :]

    @property
    def chooses_fidelity(self) -> bool:
        return self.fidelities and bool(self.encoding.space.fidelities)

    def _placed(self, U: Array) -> Array:
        space = self.encoding.space
        return space.snap(U if self.chooses_fidelity else space.at_target(U))


def local_search(
    surface: Surface,
    encoding: Encoding,
    U: Array,
    f: Array,
    rounds: int,
    rng: np.random.Generator,
    fidelities: bool = False,
    tolerance: float = GAIN_TOLERANCE,
) -> tuple[Array, Array]:
    """Local search: ascent of all numbers (whole ones relaxed), then by turns exchange moves and ascent of the continuous ones.

    Fidelities stay where they are unless ``fidelities`` is True.
    """
    space = encoding.space
    free = np.array([fidelities or not parameter.fidelity for parameter in space.parameters])
    continuous = free & np.array([parameter.levels is None for parameter in space.parameters])
    discrete = free & np.array([(parameter.levels or 0) > 1 for parameter in space.parameters])
    numbers = free & encoding.numeric
    if numbers.any():
        U, f = _ascent(surface, encoding, U, f, numbers, tolerance)
    if not discrete.any():
        return U, f
    if continuous.any() and (numbers & discrete).any():  # whole numbers that had to be rounded may have spoilt the ascent
        U, f = _ascent(surface, encoding, U, f, continuous, tolerance)
    for _ in range(rounds):
        U, f, changed = exchange(surface, encoding, U, f, rng, fidelities)
        if not changed:
            break
        if continuous.any():
            U, f = _ascent(surface, encoding, U, f, continuous, tolerance)
    return U, f


def _ascent(
    surface: Surface, encoding: Encoding, U: Array, f: Array, free: NDArray[np.bool_], tolerance: float
) -> tuple[Array, Array]:
    """Gradient ascent, then the ends are moved to valid points; a start whose end is no better then stays where it was."""

    def objective(points: Array) -> tuple[Array, Array]:
        value, gradient = surface(points, True)
        value = np.where(np.isnan(value), -np.inf, value)
        return value, np.zeros_like(points) if gradient is None else gradient  # one that has none does not move

    ends, _ = ascend(objective, U, free, tolerance=tolerance)
    ends = encoding.space.snap(ends)
    values = _finite(surface(ends, False)[0])
    better = values > f
    return np.where(better[:, None], ends, U), np.where(better, values, f)


def exchange(
    surface: Surface, encoding: Encoding, U: Array, f: Array, rng: np.random.Generator, fidelities: bool = False
) -> tuple[Array, Array, bool]:
    """Exchange moves: for each point, the best change of one discrete parameter, as long as it helps (at most four times)."""
    space, changed = encoding.space, False
    for _ in range(4):
        moves, owners = [], []
        for row, u in enumerate(U):
            options = moves_from(u, space, rng, fidelities)
            moves.append(options)
            owners.append(np.full(len(options), row))
        M, owner = space.snap(np.vstack(moves)), np.concatenate(owners)
        values = _finite(surface(M, False)[0])
        improved = False
        for row in range(len(U)):
            mine = np.flatnonzero(owner == row)
            top = mine[np.argmax(values[mine])]
            if values[top] > f[row] + 1e-12:
                U[row], f[row], improved = M[top], values[top], True
        changed |= improved
        if not improved:
            break
    return U, f, changed


def pick_restarts(values: Array, boundary: int, count: int) -> NDArray[np.intp]:
    """The best candidates, half of them from the raw samples (before ``boundary``) and half from the local ones."""
    half = count // 2
    spread = np.argsort(-values[:boundary], kind="stable")[:half]
    near = boundary + np.argsort(-values[boundary:], kind="stable")[: count - half]
    return np.concatenate([spread, near])


def _finite(values: Array) -> Array:
    return np.where(np.isnan(values), -np.inf, values)


GRADIENT_FREE_CANDIDATES = 2048
TIE_DECIMALS = 9  # values that agree to so many decimals are equal: sums over trees differ by rounding


@single_threaded
def maximize_without_gradient(surface: Surface, optimizer: AcquisitionOptimizer) -> Array:
    """The point (at the target fidelity) with the highest value that was not visited.

    Raises SpaceExhausted when a finite space has no other point.
    """
    space, rng = optimizer.encoding.space, optimizer.rng
    whole = small_grid(space)
    pool = space.snap(space.at_target(quasi_random(GRADIENT_FREE_CANDIDATES, len(space), rng))) if whole is None else whole
    pool = pool[~is_visited(pool, optimizer.visited)]
    if len(pool):
        return np.asarray(pool[random_argmax(surface(pool, False)[0], rng)])
    if whole is not None:
        raise SpaceExhausted(f"all {len(whole)} configurations of this space have been tried")
    return random_unvisited(space, optimizer.visited, rng)


def random_argmax(values: Array, rng: np.random.Generator) -> int:
    """A row with the highest value, each of them equally likely."""
    rounded = np.round(np.where(np.isnan(values), -np.inf, values), TIE_DECIMALS)
    return int(rng.choice(np.flatnonzero(rounded == rounded.max())))
