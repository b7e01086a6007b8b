"""Compute the stored grids of cross-validated errors: ``python -m benchmarks.make_data`` (two minutes or so).

The grids are committed, so this only has to be run to change them. Everything is seeded; another version of
scikit-learn may still change the last digits, which is the reason for keeping the files rather than computing
them on the fly: results must not depend on who ran them.
"""

import time
from itertools import product
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes, load_digits
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
from sklearn.svm import SVC

from benchmarks.problems.learned import DATA, SPACES, axis


def svc_digits(config: dict[str, Any]) -> float:
    """Classification error of a radial support-vector machine on 500 raw digit images scaled to [0, 1]."""
    x, y = load_digits(return_X_y=True)
    keep = np.random.default_rng(0).permutation(len(y))[:500]
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    model = SVC(C=config["C"], gamma=config["gamma"])
    return 1 - float(cross_val_score(model, x[keep] / 16, y[keep], cv=folds).mean())


def boosting_diabetes(config: dict[str, Any]) -> float:
    """Mean squared error of gradient boosting on the diabetes data, as a share of the target's variance."""
    x, y = load_diabetes(return_X_y=True)
    folds = KFold(3, shuffle=True, random_state=0)
    model = GradientBoostingRegressor(n_estimators=40, random_state=0, **config)
    scores = cross_val_score(model, x, y, cv=folds, scoring="neg_mean_squared_error")
    return -float(scores.mean()) / float(np.var(y))


NODES = {"svc_digits": (25, 29), "boosting_diabetes": (10, 5, 5, 2)}
OBJECTIVES = {"svc_digits": svc_digits, "boosting_diabetes": boosting_diabetes}


def make(name: str) -> np.ndarray:
    """Evaluate the objective at every node of its grid."""
    dimensions, nodes = SPACES[name], NODES[name]
    axes = [axis(dimension, count) for dimension, count in zip(dimensions, nodes, strict=True)]
    keys = [dimension.name for dimension in dimensions]
    errors = [OBJECTIVES[name](dict(zip(keys, values, strict=True))) for values in product(*axes)]
    return np.array(errors).reshape([len(values) for values in axes])


def main() -> None:
    DATA.mkdir(exist_ok=True)
    for name in SPACES:
        start = time.perf_counter()
        error = make(name)
        np.savez_compressed(DATA / f"{name}.npz", error=error)
        print(f"{name}: {error.size} nodes, best {error.min():.4f}, {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
