"""Where a surface without a gradient is highest, such as what trees say, which is flat in pieces.

The best of many candidates, spread over the whole space. None are put around the best trials: there a classifier is sure
because it was told so, and the search would stay at its first good points. Of the points that are highest together
one is drawn at random: the first of them would always be the same edge of a plateau.
"""

from __future__ import annotations

import numpy as np

from ..errors import SpaceExhausted
from ..numerics import Array, single_threaded
from .candidates import known, quasi_random, small_grid, unseen
from .improvement import Surface
from .maximize import Seeker

CANDIDATES = 2048
DIGITS = 9  # values that agree to so many decimals are equal: sums over trees differ by rounding


@single_threaded
def highest_of_many(surface: Surface, seeker: Seeker) -> Array:
    """The unseen point (at the target fidelity) with the highest value found.

    Raises SpaceExhausted when a finite space has no other point.
    """
    space, rng = seeker.encoding.space, seeker.rng
    whole = small_grid(space)
    pool = space.snap(space.at_target(quasi_random(CANDIDATES, len(space), rng))) if whole is None else whole
    pool = pool[~known(pool, seeker.seen)]
    if len(pool):
        return np.asarray(pool[one_of_the_highest(surface(pool, False)[0], rng)])
    if whole is not None:
        raise SpaceExhausted(f"all {len(whole)} configurations of this space have been tried")
    return unseen(space, seeker.seen, rng)


def one_of_the_highest(values: Array, rng: np.random.Generator) -> int:
    """A row with the highest value, each of them equally likely."""
    rounded = np.round(np.where(np.isnan(values), -np.inf, values), DIGITS)
    return int(rng.choice(np.flatnonzero(rounded == rounded.max())))
