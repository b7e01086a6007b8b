"""Surrogates of recorded XGBoost runs: they stand in for the fits where a figure needs tens of thousands of them.

Log value and log cost of a problem's quasi-random recording are each modelled by a Gaussian process or by a forest of
randomised trees, whichever predicts left-out fifths better; the search then sees the model's mean. Everything follows from
the recorded file, so anyone who has it has the same problem. The scores go to ``surrogates.json``: a surrogate is as good as
its R squared there. Fitted hyper-parameters are kept in the same file, since fitting takes seconds.

    python -m benchmarks.cost_aware.surrogates      # fit all that can be fitted, and say how good they are
"""

import hashlib
import json
import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

from benchmarks.cost_aware import boosters, recordings
from benchmarks.cost_aware.core import CostProblem, Measured, at
from benchmarks.problems.core import Category, Config, Dimension

PREFIX = "recorded_"
LABEL = "surrogate of recorded XGBoost runs"
NAMES = tuple(PREFIX + name.removeprefix(boosters.PREFIX) for name in boosters.NAMES)
CACHE = "surrogates.json"
FEWEST = 60  # evaluations; below that a surrogate would say little about XGBoost
# Of values: boosters that diverge have errors of up to 1e5, and how bad they are must not bend the model elsewhere.
RANGE = (1e-4, 2.0)
Array = NDArray[np.float64]


def position(dimension: Dimension, value: Any) -> float:
    """Where a value lies between the ends of a numeric dimension, on its own scale."""
    if isinstance(dimension, Category):
        raise TypeError("this space has no categories")
    if dimension.log:
        return float(np.log(value / dimension.low) / np.log(dimension.high / dimension.low))
    return float((value - dimension.low) / (dimension.high - dimension.low))


def features(config: Config) -> list[float]:
    return [position(dimension, config[dimension.name]) for dimension in boosters.SPACE]


def _kernel() -> Any:
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    smooth = Matern([1.0] * len(boosters.SPACE), (0.05, 50.0), nu=2.5)
    return ConstantKernel(1.0, (1e-2, 1e3)) * smooth + WhiteKernel(1e-2, (1e-5, 1.0))


def _process(theta: list[float] | None) -> Any:
    """A Gaussian process, to be fitted or with hyper-parameters given."""
    from sklearn.gaussian_process import GaussianProcessRegressor

    kernel = _kernel()
    if theta is not None:
        return GaussianProcessRegressor(kernel.clone_with_theta(np.array(theta)), optimizer=None, normalize_y=True)
    return GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)


def _forest() -> Any:
    from sklearn.ensemble import ExtraTreesRegressor

    return ExtraTreesRegressor(200, min_samples_leaf=2, random_state=0, n_jobs=1)


def _score(model: Callable[[], Any], x: Array, y: Array) -> float:
    """R squared over five left-out fifths."""
    from sklearn.model_selection import KFold, cross_val_predict

    predicted = cross_val_predict(model(), x, y, cv=KFold(5, shuffle=True, random_state=0))
    return float(1 - np.mean((predicted - y) ** 2) / np.var(y))


def _choose(x: Array, y: Array) -> dict[str, Any]:
    """Which kind of model, with which hyper-parameters, and how good it is."""
    theta = [float(t) for t in _process(None).fit(x, y).kernel_.theta]
    scores = {"process": _score(lambda: _process(theta), x, y), "forest": _score(_forest, x, y)}
    kind = max(scores, key=lambda name: scores[name])
    return {"kind": kind, "theta": theta, "r_squared": {name: round(score, 4) for name, score in scores.items()}}


def _chosen(name: str, x: Array, targets: dict[str, Array]) -> dict[str, Any]:
    """The stored choice if it was made from the same recording, else a new one, which is stored."""
    path = recordings.FOLDER / CACHE
    stored: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    digest = hashlib.sha256(json.dumps([x.tolist(), [y.tolist() for y in targets.values()]]).encode()).hexdigest()[:16]
    if stored.get(name, {}).get("digest") != digest:
        stored[name] = {"digest": digest, "evaluations": len(x), **{key: _choose(x, y) for key, y in targets.items()}}
        fresh = path.with_suffix(f".{os.getpid()}")  # replaced as a whole: another process may be reading
        fresh.write_text(json.dumps(dict(sorted(stored.items())), indent=1) + "\n")
        fresh.replace(path)
    found: dict[str, Any] = stored[name]
    return found


def load(name: str) -> CostProblem:
    """``recorded_DATA_PIPELINE``; the optimum is the lowest value on a dense set, so a search may go slightly below it."""
    recorded = recordings.read(boosters.PREFIX + name.removeprefix(PREFIX), "sobol")
    if len(recorded) < FEWEST:
        raise ValueError(f"{name} has {len(recorded)} recorded evaluations: run python -m benchmarks.cost_aware.record first")
    x = np.array([features(entry.config) for entry in recorded])
    targets = {
        "value": np.log(np.clip([entry.value for entry in recorded], *RANGE)),
        "cost": np.log([entry.cost for entry in recorded]),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a length scale at its bound is a dimension that does not matter
        chosen = _chosen(name, x, targets)
        models = {
            key: (_process(chosen[key]["theta"]) if chosen[key]["kind"] == "process" else _forest()).fit(x, y)
            for key, y in targets.items()
        }
    points = qmc.Sobol(len(boosters.SPACE), rng=0).random(4096)
    dense = [features({d.name: at(d, float(u)) for d, u in zip(boosters.SPACE, point, strict=True)}) for point in points]
    lowest = float(np.exp(models["value"].predict(np.vstack([dense, x])).min()))

    def evaluate(config: Config) -> Measured:
        here = np.array([features(config)])
        return float(np.exp(models["value"].predict(here)[0])), float(np.exp(models["cost"].predict(here)[0]))

    return CostProblem(name, boosters.SPACE, evaluate, lowest)


def main() -> None:
    for name in NAMES:
        load(name)
        entry = json.loads((recordings.FOLDER / CACHE).read_text())[name]
        scores = {key: (entry[key]["kind"], max(entry[key]["r_squared"].values())) for key in ("value", "cost")}
        print(f"{name:<28} {entry['evaluations']} evaluations, R squared of log value and log cost: {scores}", flush=True)


if __name__ == "__main__":
    main()
