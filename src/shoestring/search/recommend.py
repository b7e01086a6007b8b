"""The config that the model trusts most."""

from __future__ import annotations

import numpy as np

from .look import believe
from .method import Situation


def recommend(situation: Situation) -> tuple[int, float] | None:
    """Which finished trial (in order) has the best predicted value, and that value in the user's units.

    Only trials at the target fidelity count, while there are any. Noise fools a prediction less than an observation.
    """
    seen, encoding = situation.seen, situation.encoding
    if not len(seen.y):
        return None
    belief = believe(situation, costs=False)
    pool = seen.eligible
    means = belief.fitted_mean(encoding.features(seen.U[pool]))
    top = int(np.argmin(means))
    return int(pool[top]), seen.sign * float(belief.output.inverse(means[top]))
