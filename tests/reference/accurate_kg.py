"""The knowledge gradient over a fine discretization: the library's parts, with so much effort that the value is accurate to 1 %.

The minimisers of each candidate's fantasies are sought from everywhere: after a bad outcome where the mean was lowest, it is
lowest in another valley, which need not be near anything that was evaluated. For two thirds of the outcomes they are found from
the minimisers of the others.
"""

import numpy as np

from shoestring.acquisition.knowledge_gradient import DiscretizedKG, fantasy_minimisers, initial_discretization
from shoestring.acquisition.optimize.candidates import quasi_random

OUTCOMES = tuple(np.linspace(-4.4, 4.4, 61))  # in deviations: kinks farther out are not worth a per cent
N_STARTS, N_PARTS = 4096, 16  # descents also start from the best of each part of so many quasi-random points
MAX_DESCENT_STEPS = 40


def accurate_log_kg(belief, optimizer, U):
    """log KG at the rows of U, each over a discretization of its own."""
    space = belief.encoding.space
    rough = DiscretizedKG.over(belief, initial_discretization(belief, optimizer))
    spread = space.snap(space.at_target(quasi_random(N_STARTS, len(space), optimizer.rng)))
    parts = [DiscretizedKG.over(belief, spread[part::N_PARTS]) for part in range(N_PARTS)]
    values = []
    for u in U[:, None, :]:
        fine = rough.extended(np.vstack([fantasy_minimisers(part, u, OUTCOMES[::3], MAX_DESCENT_STEPS) for part in parts]))
        fine = fine.extended(fantasy_minimisers(fine, u, OUTCOMES, MAX_DESCENT_STEPS))
        values.append(fine.surface()(u, False)[0][0])
    return np.array(values)
