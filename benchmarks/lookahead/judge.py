"""Whose choice is worth more? The knowledge gradient of each library's suggestion, by one estimator under one model.

The model is ours, fitted to the same data; the estimator is independent of both searches: for each of many quantiles of the
outcome the future mean is minimised anew from many starts, and the mean of the drops is taken.
"""

from typing import Any

import numpy as np

from benchmarks.peers import shoestring_space
from benchmarks.timing import PROBLEM, observations

QUANTILES = 256
STARTS = 512


def estimate(belief: Any, u: Any) -> float:
    """KG(u) in the model's units."""
    from scipy.special import ndtri

    from shoestring.acquisition.optimize.batched_bfgs import ascend

    posterior, encoding = belief.objective, belief.encoding
    x = encoding.features(u[None, :])
    root = float(np.sqrt(posterior.mean_and_variance(x)[1][0] + posterior.noise))
    rng = np.random.default_rng(0)
    near = np.clip(u + 0.1 * rng.standard_normal((STARTS // 4, len(u))), 0.0, 1.0)
    starts = np.vstack([belief.evaluated, near, rng.random((STARTS, len(u)))])
    free = np.ones(len(u), dtype=bool)

    def lowest(w: float) -> float:
        target = float(posterior.mean_and_variance(x)[0][0]) + w * root
        future = posterior.condition(x, np.array([target]))

        def falling(points: Any) -> tuple[Any, Any]:
            mean, _, d_mean, _ = future.with_gradients(encoding.features(points))
            return -mean, -encoding.pull_back(points, d_mean)

        values = future.mean_at(encoding.features(starts))
        best = starts[np.argsort(values)[:12]]
        return -float(ascend(falling, best, free, steps=60, tolerance=1e-9)[1].max())

    w = ndtri((np.arange(QUANTILES) + 0.5) / QUANTILES)
    return lowest(0.0) - float(np.mean([lowest(z) for z in w]))


def compare(n: int, seed: int, config: dict[str, float]) -> dict[str, float]:
    """KG of BoTorch's suggestion and of ours."""
    import shoestring as st
    from shoestring.data.dataset import to_dataset
    from shoestring.space.encoding import Encoding
    from shoestring.surrogate.belief import fit_belief

    space = shoestring_space(PROBLEM)
    study = st.Study(space, method=st.KG(), seed=seed, stop=None)
    for given, value in observations(n, seed):
        study.add(given, value, cost=1.0)
    belief = fit_belief(to_dataset(study.log), Encoding(space), st.GP(), None)
    own = study.ask().config
    ours, theirs = (estimate(belief, space.encode(each)) for each in (own, config))
    return {"ours": ours, "botorch": theirs, "ratio": ours / theirs if theirs > 0 else float("inf")}
