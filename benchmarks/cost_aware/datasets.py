"""The data sets that XGBoost is tuned on, each in two feature pipelines; a third, "scaled", serves other learners.

A pipeline is fitted once, on the training rows, and the search never sees it: what is searched, and what is charged for, is
the booster alone. Data, split and pipeline depend on the name and on nothing else, so a recorded value can be repeated.
"""

import csv
import gzip
import json
import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FOLDER = Path(__file__).parent.parent / "data" / "tables"
NAMES = ("abalone", "satimage", "coil2000", "parkinsons", "pendigits", "wine_quality", "kin8nm", "phoneme")
PIPELINES = ("raw", "pca")
ROWS = 12_000  # at most, drawn at random; the largest of these has fewer, and a fit takes a fifth of a second on average
HELD_OUT = 0.3


@dataclass(frozen=True)
class Split:
    """One data set after its pipeline; targets of regression are standardised, classes are 0, 1, ..."""

    train_x: NDArray[np.float32]
    train_y: NDArray[Any]
    valid_x: NDArray[np.float32]
    valid_y: NDArray[Any]
    classes: int  # 0 for regression

    @property
    def meta(self) -> dict[str, float]:
        """The meta-features that cost models may transfer by; regression counts as one class."""
        rows, columns = self.train_x.shape
        return {"rows": float(rows), "columns": float(columns), "classes": float(max(self.classes, 1))}


@cache
def index() -> dict[str, dict[str, Any]]:
    """Task, size, source and licence of each data set."""
    found: dict[str, dict[str, Any]] = json.loads((FOLDER / "index.json").read_text())
    return found


def _read(name: str) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Features, with a column of zeros and ones for each level of a categorical one, and the target."""
    with gzip.open(FOLDER / f"{name}.csv.gz", "rt", newline="") as file:
        header, *lines = list(csv.reader(file))
    table, categorical = np.array(lines), index()[name]["categorical"]
    columns: list[NDArray[np.float64]] = []
    for position, title in enumerate(header[:-1]):
        cells = table[:, position]
        if title in categorical:
            columns.extend((cells == level).astype(float) for level in np.unique(cells))
        else:
            columns.append(cells.astype(float))
    return np.column_stack(columns), table[:, -1]


@cache
def load(name: str, pipeline: str) -> Split:
    """Read, draw rows, split and transform: "raw", "scaled" (standardised) or "pca" (standardised, half the components)."""
    from sklearn.decomposition import PCA
    from sklearn.preprocessing import StandardScaler

    x, y = _read(name)
    order = np.random.default_rng(zlib.crc32(name.encode())).permutation(len(x))[:ROWS]
    cut = int(len(order) * (1 - HELD_OUT))
    train, valid = order[:cut], order[cut:]
    classes = 0
    if index()[name]["task"] == "classification":
        levels, y = np.unique(y, return_inverse=True)
        classes = len(levels)
    else:
        y = y.astype(float)
        y = (y - y[train].mean()) / y[train].std()
    train_x, valid_x = x[train], x[valid]
    if pipeline in ("scaled", "pca"):
        scaler = StandardScaler().fit(train_x)
        train_x, valid_x = scaler.transform(train_x), scaler.transform(valid_x)
    if pipeline == "pca":
        turned = PCA(n_components=max(2, (x.shape[1] + 1) // 2), random_state=0).fit(train_x)
        train_x, valid_x = turned.transform(train_x), turned.transform(valid_x)
    return Split(train_x.astype(np.float32), y[train], valid_x.astype(np.float32), y[valid], classes)
