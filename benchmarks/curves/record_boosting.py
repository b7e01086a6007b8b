"""Record XGBoost's error after every third round, on one thread of this machine's processor.

    python -m benchmarks.curves.record_boosting [--names xgboost_kin8nm] [--sobol 200] [--near 100] [--extra 24]

Seconds are processor time of the rounds themselves, measured with the run on its own; judging is not charged. The rows are
``samples.table`` with at most ``spaces.XGBOOST_ROWS`` for training. Interrupted, it goes on where it was: the file of a table is
written after every ten configs.
"""

import argparse
import platform
import time
from typing import Any

import numpy as np

from benchmarks.cost_aware import datasets
from benchmarks.curves import design, files, samples, spaces

SAVED_EVERY = 10
EXTRA_ROUNDS = 2
NAMES = tuple(name for name in spaces.NAMES if name.startswith("xgboost_"))


def grow(data: samples.Samples, config: dict[str, Any]) -> dict[str, Any]:
    """One run: errors on both parts, and the seconds of each step of ``ROUNDS_PER_POINT`` rounds."""
    import xgboost

    settings: dict[str, Any] = dict(config) | {"nthread": 1, "seed": 0, "tree_method": "hist", "verbosity": 0}
    if data.classes == 0:
        settings |= {"objective": "reg:squarederror"}
    elif data.classes == 2:
        settings |= {"objective": "binary:logistic"}
    else:
        settings |= {"objective": "multi:softprob", "num_class": data.classes}
    train = xgboost.DMatrix(data.train_x, data.train_y, nthread=1)
    parts = {"valid": (data.valid_x, data.valid_y), "test": (data.test_x, data.test_y)}
    judged = {part: (xgboost.DMatrix(x, nthread=1), y) for part, (x, y) in parts.items()}
    booster = xgboost.Booster(settings, [train, *(matrix for matrix, _ in judged.values())])
    found: dict[str, list[float]] = {"valid": [], "test": [], "seconds": []}
    for first in range(0, spaces.ROUNDS, spaces.ROUNDS_PER_POINT):
        began = time.process_time()
        for number in range(first, first + spaces.ROUNDS_PER_POINT):
            booster.update(train, number)
        found["seconds"].append(time.process_time() - began)
        for part, (matrix, y) in judged.items():
            found[part].append(error(booster.predict(matrix), y, data.classes))
    return found


def error(predicted: Any, y: Any, classes: int) -> float:
    """The share of wrong classes, or the squared error of a standardised target."""
    if classes == 0:
        return float(np.mean((predicted - y) ** 2))
    chosen = predicted > 0.5 if classes == 2 else np.argmax(predicted, axis=1)
    return float(np.mean(chosen != y))


def record(name: str, sobol: int, near: int, extra: int) -> None:
    """Run what the table's file does not hold: the Sobol set, configs near its best, then twice where an emulator looks best."""
    import xgboost

    from benchmarks.curves import quality
    from benchmarks.curves.tables import CurveTable

    dimensions, source = spaces.named(name).dimensions, spaces.named(name).data
    data, points = samples.table(source, spaces.XGBOOST_ROWS), design.pool(len(dimensions))
    rows: dict[int, dict[str, Any]] = {}
    more = np.zeros((0, len(dimensions)))
    if (files.FOLDER / f"{name}.npz").exists():
        old = files.read(name)
        for place, number in enumerate(old["numbers"]):
            errors = {part: old[part][place, 0, 0] for part in ("valid", "test")}
            rows[int(number)] = errors | {"seconds": old["seconds"][place, 0]}
        more = old.get("extra", more)

    def save() -> None:
        numbers = list(rows)
        arrays = {key: np.array([rows[number][key] for number in numbers]) for key in ("valid", "test", "seconds")}
        files.write(files.FOLDER / f"{name}.npz", {
            "numbers": np.array(numbers), "valid": arrays["valid"][:, None, None], "test": arrays["test"][:, None, None],
            "seconds": arrays["seconds"][:, None], **({"extra": more} if len(more) else {}),
        })  # fmt: skip

    def run(numbers: list[int]) -> None:
        for number in numbers:
            if number not in rows:
                point = points[[number]] if number < design.POOL else more[[number - design.POOL]]
                rows[number] = grow(data, design.configs(dimensions, point)[0])
                if len(rows) % SAVED_EVERY == 0:
                    save()
        save()

    first = list(range(sobol))
    run(first)
    # Through half precision, as an interrupted recording would read them: the second part must not depend on the interruption.
    run(design.near_best(points, first, [float(np.float16(rows[number]["valid"][-1])) for number in first], near))

    def describe() -> None:
        files.describe(name, {
            "source": datasets.index()[source]["source"], "script": "python -m benchmarks.curves.record_boosting", "seeds": [0],
            "configs": len(rows), "sobol": sobol, "points": spaces.ROUNDS // spaces.ROUNDS_PER_POINT,
            "rows": [len(data.train_x), len(data.valid_x), len(data.test_x)],
            "versions": {"python": platform.python_version(), "numpy": np.__version__, "xgboost": xgboost.__version__},
            "seconds": "processor time of the rounds on one thread, measured for each config",
            "error": "share of wrong classes" if data.classes else "squared error of the standardised target",
        })  # fmt: skip

    describe()
    for number in range(1, EXTRA_ROUNDS + 1):
        if len(more) < number * extra:
            # Through single precision, as the file keeps them.
            fresh = quality.promising(CurveTable(name, "pool"), number * extra - len(more)).astype(np.float32).astype(float)
            more = np.vstack([more, fresh])
        run([design.POOL + place for place in range(len(more))])
        describe()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", default=",".join(NAMES), help="tables to record, with commas between")
    parser.add_argument("--sobol", type=int, default=200, help="configs of the Sobol set")
    parser.add_argument("--near", type=int, default=100, help="further configs near the best of those")
    parser.add_argument("--extra", type=int, default=24, help="configs of each of two rounds where an emulator looks best")
    chosen = parser.parse_args()
    for name in chosen.names.split(","):
        began = time.perf_counter()
        record(name, chosen.sobol, chosen.near, chosen.extra)
        final = files.read(name)["valid"][:, 0, 0, -1]
        print(f"{name}: best {final.min():.4f}, median {np.median(final):.4f}, {time.perf_counter() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
