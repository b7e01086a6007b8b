"""A model of whole learning curves: any config's curve from those of a few hundred recorded ones.

Logarithms of the errors along a curve (validation and test, all training sizes) make one long vector. A few principal components
describe it. Their scores are predicted from the config by the mean of a Gaussian process and a forest of randomised trees. The
process alone predicts left-out configs about as well, but a search finds places where it is too good: its lowest error was 57 to
85 % of the best recorded one in eight tables, and 64 such places of mlp_splice, recorded for real, had a median error of .38. A
forest never goes beyond its data; the lowest error of the mean of both is 85 to 115 % of the best recorded one (leaving aside
mlp_texture, whose best error is zero). It also favours searchers that use Gaussian processes less. Predictions
are plain numpy and take a fraction of a millisecond.

    python -m benchmarks.curves.emulator       # fit, check and find the lowest error of each table: data/curves/emulators.json
"""

import argparse
import hashlib
import json
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.curves import files

CHOICES = "emulators.json"
COMPONENTS = 10
TREES = 60
SHARE = 0.5  # of the forest in the prediction
SHARES = (0.0, 0.5, 1.0)  # those whose accuracy is stored
FITTED_ON = 256  # configs that the process' hyperparameters are fitted on: it is their number cubed that takes time
LONGEST = 3.0  # length scale, of a cube of side 1: with longer ones, corners far from all data get errors far too good
FOLDS = 5
Array = NDArray[np.float64]


def matern(a: Array, b: Array, scales: Array) -> Array:
    """Matern kernel (5/2) with a length scale for each column."""
    a, b = a / scales, b / scales
    squared = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)[None] - 2 * a @ b.T
    distance = np.sqrt(5 * np.maximum(squared, 0.0))
    return np.asarray((1 + distance + distance**2 / 3) * np.exp(-distance))


class Process:
    """The mean of a Gaussian process with one kernel for all outputs; ``theta``: log of variance, length scales and noise."""

    def __init__(self, x: Array, y: Array, theta: Sequence[float]) -> None:
        from scipy.linalg import cho_factor, cho_solve

        found = np.exp(np.asarray(theta, dtype=np.float64))
        self._x, self._variance, self._scales = x, found[0], found[1:-1]
        covariance = self._variance * matern(x, x, self._scales) + found[-1] * np.eye(len(x))
        self._weights = np.asarray(cho_solve(cho_factor(covariance), y))

    def predict(self, x: Array) -> Array:
        return np.asarray(self._variance * matern(x, self._x, self._scales) @ self._weights)


class Forest:
    """Randomised trees in arrays: a single config takes a fifth of a millisecond, against ten in scikit-learn."""

    def __init__(self, x: Array, y: Array) -> None:
        from sklearn.ensemble import ExtraTreesRegressor

        trees = [each.tree_ for each in ExtraTreesRegressor(TREES, min_samples_leaf=2, random_state=0).fit(x, y).estimators_]
        starts = np.cumsum([0, *(tree.node_count for tree in trees)])
        self._roots, self._depth = starts[:-1], max(tree.max_depth for tree in trees)
        leaves = [tree.children_left < 0 for tree in trees]
        own = [np.arange(tree.node_count) for tree in trees]
        # A leaf leads to itself, so that every tree can be walked down equally far.
        left = [np.where(leaf, here, tree.children_left) for leaf, here, tree in zip(leaves, own, trees, strict=True)]
        right = [np.where(leaf, here, tree.children_right) for leaf, here, tree in zip(leaves, own, trees, strict=True)]
        self._next = np.stack([
            np.concatenate([side + start for side, start in zip(sides, starts, strict=False)]) for sides in (right, left)
        ])  # fmt: skip
        self._feature = np.concatenate([np.maximum(tree.feature, 0) for tree in trees])
        self._threshold = np.concatenate([tree.threshold for tree in trees])
        self._values = np.concatenate([tree.value[:, :, 0] for tree in trees])

    def predict(self, x: Array) -> Array:
        x = x.astype(np.float32)  # as scikit-learn's trees compare
        rows = np.arange(len(x))[:, None]
        node = np.repeat(self._roots[None], len(x), axis=0)
        for _ in range(self._depth):
            node = self._next[(x[rows, self._feature[node]] <= self._threshold[node]).astype(int), node]
        return np.asarray(self._values[node].mean(axis=1))


class Emulator:
    """Predicts vectors, such as curves, from configs."""

    def __init__(self, x: Array, y: Array, choice: dict[str, Any]) -> None:
        self.middle = y.mean(axis=0)
        _, _, basis = np.linalg.svd(y - self.middle, full_matrices=False)
        self.basis = basis[:COMPONENTS]
        scores = (y - self.middle) @ self.basis.T
        self.scale = float(scores[:, 0].std()) or 1.0
        self._share = choice["share"]
        self._process = Process(x, scores / self.scale, choice["theta"]) if self._share < 1 else None
        self._forest = Forest(x, scores / self.scale) if self._share > 0 else None

    def predict(self, x: Array) -> Array:
        found = np.zeros((len(x), len(self.basis)))
        if self._process is not None:
            found += (1 - self._share) * self._process.predict(x)
        if self._forest is not None:
            found += self._share * self._forest.predict(x)
        return np.asarray(self.middle + self.scale * found @ self.basis)

    def smooth(self, y: Array) -> Array:
        """What the components keep of vectors; the rest is what an emulated curve lacks."""
        return np.asarray(self.middle + (y - self.middle) @ self.basis.T @ self.basis)


def fit_theta(x: Array, y: Array) -> list[float]:
    """Hyperparameters of the process by maximum likelihood of the scores, of which the first counts most."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    centred = y - y.mean(axis=0)
    _, _, basis = np.linalg.svd(centred, full_matrices=False)
    scores = centred @ basis[:COMPONENTS].T
    rows = np.random.default_rng(0).permutation(len(x))[:FITTED_ON]
    smooth = Matern([1.0] * x.shape[1], (0.1, LONGEST), nu=2.5)
    kernel = ConstantKernel(1.0, (1e-3, 1e2)) * smooth + WhiteKernel(0.01, (1e-4, 1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a length scale at its bound is a dimension that does not matter
        fitted = GaussianProcessRegressor(kernel).fit(x[rows], scores[rows] / scores[:, 0].std())
    return [round(float(value), 4) for value in fitted.kernel_.theta]


def left_out(x: Array, y: Array, choice: dict[str, Any]) -> Array:
    """Predictions for each fifth of the configs from the other four."""
    fold = np.random.default_rng(1).permutation(len(x)) % FOLDS
    found = np.zeros_like(y)
    for number in range(FOLDS):
        rest = fold != number
        found[~rest] = Emulator(x[rest], y[rest], choice).predict(x[~rest])
    return found


def choose(x: Array, y: Array) -> dict[str, Any]:
    """The hyperparameters, and R squared on left-out configs for several shares of the forest."""
    theta = fit_theta(x, y)
    errors = {share: float(np.mean((left_out(x, y, {"theta": theta, "share": share}) - y) ** 2)) for share in SHARES}
    spread = float(np.mean((y - y.mean(axis=0)) ** 2))
    r_squared = {str(each): round(1 - error / spread, 4) for each, error in errors.items()}
    return {"theta": theta, "share": SHARE, "r_squared": r_squared}


def digest(*arrays: Array) -> str:
    """Tells whether a choice was made from the same recording."""
    return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()[:16]


def choices(folder: Path = files.FOLDER) -> dict[str, dict[str, Any]]:
    """What was chosen for each table."""
    path = folder / CHOICES
    found: dict[str, dict[str, Any]] = json.loads(path.read_text()) if path.exists() else {}
    return found


def main() -> None:
    from benchmarks.curves import quality, spaces

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", help="tables, with commas between; otherwise all that are recorded")
    chosen = parser.parse_args()
    recorded = [name for name in spaces.NAMES if (files.FOLDER / f"{name}.npz").exists()]
    for name in chosen.names.split(",") if chosen.names else recorded:
        began = time.perf_counter()
        entry = quality.choose(name)
        entries = choices() | {name: entry}
        (files.FOLDER / CHOICES).write_text(json.dumps(dict(sorted(entries.items())), indent=1) + "\n")
        print(f"{name}: {entry['held_out']}, {entry['errors']['r_squared']}, {time.perf_counter() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
