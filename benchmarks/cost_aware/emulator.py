"""Models that stand in for recorded evaluations: a Gaussian process or a forest of randomised trees on log value and log cost.

Whichever predicts left-out fifths of the recording better is taken; a search then sees the model's mean. The scores and the
fitted hyper-parameters go to a file, since fitting takes seconds; they count as long as the recording is the same.
"""

import hashlib
import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.problems.core import Category, Dimension

CACHE = "surrogates.json"
Array = NDArray[np.float64]


def position(dimension: Dimension, value: Any) -> float:
    """Where a value lies between the ends of a numeric dimension, on its own scale."""
    if isinstance(dimension, Category):
        raise TypeError(f"{dimension.name} is a category, which has no order: give each option a column of its own")
    if dimension.log:
        return float(np.log(value / dimension.low) / np.log(dimension.high / dimension.low))
    return float((value - dimension.low) / (dimension.high - dimension.low))


def _kernel(columns: int) -> Any:
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    smooth = Matern([1.0] * columns, (0.05, 50.0), nu=2.5)
    return ConstantKernel(1.0, (1e-2, 1e3)) * smooth + WhiteKernel(1e-2, (1e-5, 1.0))


def _process(theta: list[float] | None, columns: int) -> Any:
    """A Gaussian process, to be fitted or with hyper-parameters given."""
    from sklearn.gaussian_process import GaussianProcessRegressor

    kernel = _kernel(columns)
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
    columns = x.shape[1]
    theta = [float(t) for t in _process(None, columns).fit(x, y).kernel_.theta]
    scores = {"process": _score(lambda: _process(theta, columns), x, y), "forest": _score(_forest, x, y)}
    kind = max(scores, key=lambda name: scores[name])
    return {"kind": kind, "theta": theta, "r_squared": {name: round(score, 4) for name, score in scores.items()}}


def stored(folder: Path) -> dict[str, dict[str, Any]]:
    """The choices of a folder, by problem."""
    path = folder / CACHE
    found: dict[str, dict[str, Any]] = json.loads(path.read_text()) if path.exists() else {}
    return found


def store(folder: Path, name: str, entry: dict[str, Any]) -> None:
    """Write a problem's choice; the file is replaced as a whole, since another process may be reading."""
    path = folder / CACHE
    fresh = path.with_suffix(f".{os.getpid()}")
    fresh.write_text(json.dumps(dict(sorted({**stored(folder), name: entry}.items())), indent=1) + "\n")
    fresh.replace(path)


def _chosen(folder: Path, name: str, x: Array, targets: dict[str, Array]) -> dict[str, Any]:
    """The stored choice if it was made from the same recording, else a new one, which is stored."""
    digest = hashlib.sha256(json.dumps([x.tolist(), [y.tolist() for y in targets.values()]]).encode()).hexdigest()[:16]
    entry = stored(folder).get(name, {})
    if entry.get("digest") != digest:
        entry = {"digest": digest, "evaluations": len(x), **{key: _choose(x, y) for key, y in targets.items()}}
        store(folder, name, entry)
    return entry


def models(folder: Path, name: str, x: Array, targets: dict[str, Array]) -> dict[str, Any]:
    """A fitted model for each target; ``folder`` keeps what was chosen."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a length scale at its bound is a dimension that does not matter
        chosen = _chosen(folder, name, x, targets)
        return {
            key: (_process(chosen[key]["theta"], x.shape[1]) if chosen[key]["kind"] == "process" else _forest()).fit(x, y)
            for key, y in targets.items()
        }


def quality(folder: Path, name: str) -> str:
    """How good a problem's models are, as a line of text."""
    entry = stored(folder)[name]
    scores = {key: (entry[key]["kind"], max(entry[key]["r_squared"].values())) for key in ("value", "cost")}
    return f"{name:<28} {entry['evaluations']} evaluations, R squared of log value and log cost: {scores}"
