"""How recorded curves are stored: a compressed file of small numbers for each table, and an index that says where they come from.

Arrays of a file, for N configs, S training seeds, L sizes of the training set and T points along a curve:

- ``numbers`` (N): each config's number in the pool of ``design``;
- ``valid``, ``test`` (N, S, L, T): errors, half precision (three digits);
- ``loss`` (N, S, L, T): cross-entropy on the validation part, for classification by networks;
- ``seconds`` (N, L, T or 1): what each point of the curve costs on top of the one before; one column where all cost the same.
"""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FOLDER = Path(__file__).parent.parent / "data" / "curves"
HALF = ("valid", "test", "loss")
Arrays = dict[str, NDArray[Any]]


def compact(arrays: Arrays) -> Arrays:
    """The same with as few bytes as the numbers deserve."""
    found: Arrays = {}
    for key, value in arrays.items():
        if key in HALF:
            found[key] = np.clip(value, 0.0, 6e4).astype(np.float16)
        else:
            found[key] = value.astype(np.float32 if value.dtype.kind == "f" else np.int32)
    return found


def write(path: Path, arrays: Arrays) -> None:
    """Replace the file as a whole, since another process may be reading it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **compact(arrays))
    fresh = path.with_suffix(".new")
    fresh.write_bytes(buffer.getvalue())
    fresh.replace(path)


def read(name: str, folder: Path = FOLDER) -> Arrays:
    """The arrays of a table, whole numbers and double precision."""
    path = folder / f"{name}.npz"
    if not path.exists():
        raise FileNotFoundError(
            f"the learning curves of {name!r} are not at {path}: run python -m benchmarks.curves.record_boosting for XGBoost, or "
            "python -m benchmarks.curves.record_networks for networks"
        )
    with np.load(path, allow_pickle=False) as stored:
        return {key: stored[key].astype(np.float64 if stored[key].dtype.kind == "f" else np.int64) for key in stored.files}


def index(folder: Path = FOLDER) -> dict[str, dict[str, Any]]:
    """Of each table: data source and licence, script, seeds, versions, machine, how seconds were made."""
    path = folder / "index.json"
    found: dict[str, dict[str, Any]] = json.loads(path.read_text()) if path.exists() else {}
    return found


def describe(name: str, facts: dict[str, Any], folder: Path = FOLDER) -> None:
    """Add facts to a table's entry of the index."""
    entries = index(folder)
    entries[name] = entries.get(name, {}) | facts
    fresh = folder / "index.new"
    fresh.write_text(json.dumps(dict(sorted(entries.items())), indent=1) + "\n")
    fresh.replace(folder / "index.json")
