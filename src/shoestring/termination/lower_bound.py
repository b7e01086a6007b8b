"""The lowest point of a lower bound, found to the end.

A regret bound with a lower bound that is not the lowest one is too small, and stops too early. So the search for it is wider and
finer than that of a suggestion. The candidates are

    quasi-random points                   points on the faces of the cube, where a model is often least sure
    neighbours of the best evaluations    neighbours of all evaluations
    minima of joint draws of the posterior: where the model itself thinks that the minimum may be

Of each kind the lowest are restarts. From there gradient descent goes on until a step gains nothing, and exchange moves try the
other values of everything discrete, by turns. Small finite spaces are searched whole.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..acquisition.optimize.candidates import neighbours, quasi_random, small_grid
from ..acquisition.optimize.optimizer import Surface, local_search
from ..data.dataset import Dataset
from ..numerics import Array
from ..space.encoding import Encoding
from ..surrogate.belief import Belief

RAW_SAMPLES, FACE_SAMPLES, LOCAL_SAMPLES = 1024, 256, 256
FACE_SHARE = 0.4  # of the coordinates of a point on a face that are moved to an end
BEST_TRIALS = 10  # best trials whose neighbourhood is searched
RESTARTS = 6  # of each kind of candidates
JOINT_POINTS, JOINT_DRAWS = 256, 24  # of the joint draws whose minima are restarts
ROUNDS = 4  # of exchange moves and descent
GAIN_TOLERANCE = 1e-7  # in modelled units, of which all evaluations have a spread of 1
SECOND_LOOK = 4  # lowest ends that are searched again, until nothing changes
MAX_LOOKS = 4


def candidates(encoding: Encoding, data: Dataset, rng: np.random.Generator, scale: float = 1.0) -> list[Array]:
    """Candidate points at the target fidelity, by kind; of a small finite space all points. ``scale`` times as many as usual."""
    space = encoding.space
    whole = small_grid(space)
    if whole is not None:
        return [space.at_target(whole)]
    raw, faces, local = (int(scale * count) for count in (RAW_SAMPLES, FACE_SAMPLES, LOCAL_SAMPLES))
    spread = quasi_random(raw, len(space), rng)
    edges = quasi_random(faces, len(space), rng)
    at_end = rng.random(edges.shape) < FACE_SHARE
    edges = np.where(at_end, np.rint(edges), edges)
    near_best = neighbours(data.U[data.best(BEST_TRIALS)], local, space, rng)
    near_any = neighbours(data.U[: data.finished], local, space, rng)
    return [space.snap(space.at_target(part)) for part in (spread, edges, near_best, near_any)]


def search_lowest(
    surface: Surface, encoding: Encoding, parts: list[Array], rng: np.random.Generator, draw: Callable[[Array], Array]
) -> tuple[float, Array]:
    """The highest value of a surface (minus the bound) and the ends of all descents, best first.

    parts   candidate points by kind;   draw  points -> joint draws of f there (draws x points)
    """
    values = [np.where(np.isnan(found := surface(part, False)[0]), -np.inf, found) for part in parts]
    pool, all_values = np.vstack(parts), np.concatenate(values)
    if small_grid(encoding.space) is not None:
        order = np.argsort(-all_values, kind="stable")
        return float(all_values[order[0]]), pool[order]
    chosen, first = [], 0
    for part in values:
        chosen.append(first + np.argsort(-part, kind="stable")[:RESTARTS])
        first += len(part)
    low = np.argsort(-all_values, kind="stable")[:JOINT_POINTS]
    chosen.append(low[np.unique(np.argmin(draw(pool[low]), axis=1))])
    starts = np.unique(np.concatenate(chosen))
    U, f = local_search(surface, encoding, pool[starts].copy(), all_values[starts].copy(), ROUNDS, rng, tolerance=GAIN_TOLERANCE)
    order = np.argsort(-f, kind="stable")
    U, f = U[order], f[order]
    for _ in range(MAX_LOOKS):
        before = f[0]
        again, g = local_search(
            surface, encoding, U[:SECOND_LOOK].copy(), f[:SECOND_LOOK].copy(), ROUNDS, rng, tolerance=GAIN_TOLERANCE
        )
        U, f = np.vstack([again, U[SECOND_LOOK:]]), np.concatenate([g, f[SECOND_LOOK:]])
        order = np.argsort(-f, kind="stable")
        U, f = U[order], f[order]
        if f[0] <= before + GAIN_TOLERANCE:
            break
    return float(max(f[0], all_values.max())), U


def joint_draws(belief: Belief, rng: np.random.Generator, count: int = JOINT_DRAWS) -> Callable[[Array], Array]:
    """Joint draws of the objective's posterior, in equal parts of each hyperparameter sample."""

    def draw(U: Array) -> Array:
        Z = belief.encoding.features(U)
        each = -(-count // len(belief.samples))
        return np.vstack([one.objective.sample(Z, each, rng) for one in belief.samples])

    return draw
