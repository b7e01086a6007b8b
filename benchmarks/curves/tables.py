"""Tables of recorded learning curves, to be searched: ``load(name)`` and ``CurveTable.curve(config)``.

The default is an emulator of the recorded curves (``emulator``): a config between the recorded ones has a curve between theirs,
as in life, so a searcher that refines a good region is rewarded. To its smooth curves the deviations of a recorded run are added
(how much real curves jump from epoch to epoch, and from one training seed to another), so a search sees curves with real noise.
That run is one of the nearest recorded configs, drawn by the config and the seed: two configs that are close have noise of their
own, as two training runs do. ``how="pool"`` takes no model at all: a config is the nearest recorded one, and its curve the
recorded one. That is true to every curve, but the landscape is a set of a few hundred plateaus. Claims on the emulator should
hold on the pool.

Regret is that of the error after the last epoch with all training data: the emulator's mean without noise, in a pool the mean
over the training seeds. It is never what the search saw.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.curves import design, emulator, files, seconds, spaces
from benchmarks.problems.core import Category, Config, Dimension, Integer

Array = NDArray[np.float64]
HOW = ("emulator", "pool")
NOISE_NEIGHBOURS = 8  # recorded configs whose deviations a config may have
LEAST_UNIT = {"epochs": 1, "rounds": spaces.ROUNDS_PER_POINT}


@dataclass(frozen=True)
class Curve:
    """Errors after so many epochs or rounds (``units``), and the seconds spent from the start of the run until then."""

    units: Array
    valid: Array
    test: Array
    seconds: Array

    def until(self, unit: float) -> tuple[float, float]:
        """Validation error and seconds at a point of the curve, also between two recorded ones."""
        paid = np.interp(unit, np.concatenate([[0.0], self.units]), np.concatenate([[0.0], self.seconds]))
        return float(np.interp(unit, self.units, self.valid)), float(paid)


def features(dimensions: Sequence[Dimension], configs: Sequence[Config]) -> Array:
    """A column for each number, between its ends on its own scale, and one for each option of a category."""
    columns: list[Any] = []
    for each in dimensions:
        values = [config[each.name] for config in configs]
        if isinstance(each, Category):
            columns += [[float(value == option) for value in values] for option in each.options]
        elif each.log:
            columns.append(np.log(np.asarray(values, dtype=float) / each.low) / np.log(each.high / each.low))
        else:
            columns.append((np.asarray(values, dtype=float) - each.low) / (each.high - each.low))
    return np.array(columns, dtype=np.float64).T


class CurveTable:
    """One table. ``levels`` are the recorded sizes of the training set, ``units`` the recorded points of a curve."""

    def __init__(self, name: str, how: str = "emulator") -> None:
        if how not in HOW:
            raise ValueError(f"how={how!r} is not a way to read a table of curves: choose one of {', '.join(HOW)}")
        self._named, self.how, self.name = spaces.named(name), how, name
        self.dimensions, self.family, self.unit = self._named.dimensions, spaces.LABELS[self._named.family], self._named.unit
        self._arrays, self._facts = files.read(name), files.index()[name]
        self.points = design.points_of(len(self.dimensions), self._arrays["numbers"], self._arrays.get("extra"))
        self.configs = design.configs(self.dimensions, self.points)
        self.x = features(self.dimensions, self.configs)
        _, self.seeds, sizes, count = self._arrays["valid"].shape
        self.units = LEAST_UNIT[self.unit] * np.arange(1.0, count + 1)
        self.levels = np.asarray(self._arrays.get("levels", self._facts.get("rows", [0])[:1]), dtype=np.float64)
        assert len(self.levels) == sizes
        self.floors = [0.5 * float(self._arrays[part][self._arrays[part] > 0].min()) for part in ("valid", "test")]

    # -- the space ---------------------------------------------------------------------------------------------------------------

    @property
    def fidelities(self) -> tuple[Integer, ...]:
        """The points of the curve, and the size of the training set where it was recorded; the high end is the target."""
        along = Integer(self.unit, int(self.units[0]), int(self.units[-1]))
        size = Integer(self.size_name, int(self.levels[0]), int(self.levels[-1]), log=True)
        return (along, size) if self._named.sized else (along,)

    @property
    def size_name(self) -> str:
        return "images" if self._named.family == "cnn" else "rows"

    # -- curves ------------------------------------------------------------------------------------------------------------------

    def curve(self, config: Config, seed: int = 0, size: float | None = None) -> Curve:
        """What a run of this config gives, with the noise of a training seed; ``size`` is that of the training set."""
        x = features(self.dimensions, [config])
        apart = ((self.x - x) ** 2).sum(axis=1)
        near = int(np.argmin(apart))
        logs = self._recorded[near, seed % self.seeds]
        if self.how == "emulator":
            draw = np.random.default_rng([seed, zlib.crc32(x.tobytes())])
            noisy = np.argsort(apart, kind="stable")[draw.integers(NOISE_NEIGHBOURS)]
            logs = self._errors.predict(x)[0] + self._deviations[noisy, draw.integers(self.seeds)]
        return self._curve(logs, near, config, size)

    def mean_curve(self, config: Config, size: float | None = None) -> Curve:
        """The curve without noise: the emulator's, or in a pool the mean of the logarithms over training seeds."""
        x = features(self.dimensions, [config])
        near = int(np.argmin(((self.x - x) ** 2).sum(axis=1)))
        logs = self._errors.predict(x)[0] if self.how == "emulator" else self._recorded[near].mean(axis=0)
        return self._curve(logs, near, config, size)

    def evaluate(self, config: Config, seed: int = 0) -> tuple[float, float]:
        """Validation error and seconds of a config that names fidelities too; one that is not named is at its target."""
        size = config.get(self.size_name) if self._named.sized else None
        return self.curve(config, seed, size).until(config.get(self.unit, self.units[-1]))

    def regret(self, config: Config) -> float:
        """How much worse than the best this config is at the target, whatever fidelities it names."""
        return float(self.mean_curve(config).valid[-1]) - self.optimum

    @cached_property
    def optimum(self) -> float:
        """The lowest validation error at the target, without noise."""
        if self.how == "emulator":
            return float(self._choice["lowest"])
        last = self._recorded.mean(axis=1).reshape(len(self.x), 2, len(self.levels), -1)[:, 0, -1, -1]
        return float(np.exp(last.min()))

    # -- inside ------------------------------------------------------------------------------------------------------------------

    @cached_property
    def _recorded(self) -> Array:
        """Logarithms of the errors, (configs, seeds, all the rest): validation, then test."""
        parts = [self._arrays[part].clip(floor) for part, floor in zip(("valid", "test"), self.floors, strict=True)]
        return np.asarray(np.log(np.stack(parts, axis=2)).reshape(len(self.configs), self.seeds, -1))

    @cached_property
    def _choice(self) -> dict[str, Any]:
        found = emulator.choices().get(self.name, {})
        if found.get("digest") != self.digest:
            raise ValueError(
                f"the emulator of {self.name!r} was not chosen for this recording: run python -m benchmarks.curves.emulator "
                f"--names {self.name}, or load the table with how='pool'"
            )
        return found

    @property
    def digest(self) -> str:
        return emulator.digest(self._arrays["numbers"], self._arrays["valid"], self._arrays["seconds"])

    @cached_property
    def _errors(self) -> emulator.Emulator:
        return emulator.Emulator(self.x, self._recorded.mean(axis=1), self._choice["errors"])

    @cached_property
    def _deviations(self) -> Array:
        """What each run differs by from the components of its config's mean over seeds."""
        return self._recorded - self._errors.smooth(self._recorded.mean(axis=1))[:, None]

    @cached_property
    def logs_of_seconds(self) -> Array:
        """Of XGBoost, whose rounds were timed one by one: logarithms of the seconds until each point, (configs, points)."""
        return np.asarray(np.log(self._arrays["seconds"][:, 0].cumsum(axis=1)))

    @cached_property
    def _costs(self) -> emulator.Emulator:
        return emulator.Emulator(self.x, self.logs_of_seconds, self._choice["seconds"])

    def _curve(self, logs: Array, near: int, config: Config, size: float | None) -> Curve:
        place = float(self.levels[-1] if size is None else size)
        if not self.levels[0] <= place <= self.levels[-1]:
            ends = f"{self.levels[0]:g} to {self.levels[-1]:g}"
            raise ValueError(f"size={size} is not within the recorded sizes of {self.name!r}, {ends}: choose one between them")
        found = logs.reshape(2, len(self.levels), -1)
        above = int(np.clip(np.searchsorted(self.levels, place), 1, max(len(self.levels) - 1, 1)))
        if len(self.levels) == 1:
            valid, test = found[:, 0]
        else:
            low, high = self.levels[above - 1], self.levels[above]
            share = np.log(place / low) / np.log(high / low)
            valid, test = (1 - share) * found[:, above - 1] + share * found[:, above]
        return Curve(self.units, self._rounded(valid, 0), self._rounded(test, 1), self._seconds(near, config, place))

    def _rounded(self, logs: Array, part: int) -> Array:
        """Errors from logarithms: zero errors were stored as half of the least, and no error is above the worst one recorded."""
        worst = float(self._arrays[("valid", "test")[part]].max())
        return np.asarray(np.minimum(np.exp(logs), worst))

    def _seconds(self, near: int, config: Mapping[str, Any], size: float) -> Array:
        if self._named.family == "xgboost":
            if self.how == "pool":
                return np.asarray(np.exp(self.logs_of_seconds[near]))
            return np.asarray(np.maximum.accumulate(np.exp(self._costs.predict(features(self.dimensions, [config]))[0])))
        taken = config if self.how == "emulator" else self.configs[near]
        family = "cnn" if self._named.family == "cnn" else "mlp"
        step = float(np.dot(seconds.work(family, taken, *self._facts["shape"]), self._facts["seconds_model"]["coefficients"]))
        return np.asarray(np.arange(1, len(self.units) + 1) * step * max(size / 2 ** taken["log2_batch"], 1.0))


@cache
def load(name: str, how: str = "emulator") -> Any:
    """The table of that name, or the planted problem; one that was loaded is kept."""
    from benchmarks.curves import planted  # it needs the curves of this module

    return planted.PROBLEMS[name] if name in planted.PROBLEMS else CurveTable(name, how)
