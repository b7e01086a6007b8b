"""Planted learning curves that mislead a search: problems with a known optimum, each with one trap.

crossing     what learns fast ends badly: the curves of good and bad configs cross near the middle
flipped      a bias turns the order round: until half of the epochs, what looks worst is best
diverging    fast learners look best, and their error is NaN from a late epoch on; the optimum lies next to them
exploding    the same, with a finite error that grows without end
steps        plateaus, and drops where the learning rate is cut, at epochs 25 and 40; good configs have the highest plateaus
superlinear  regular curves, but the cost until an epoch grows with its power of 2.5

A curve is f(x) + g(x) (h(t) - h(T)) with T the last epoch, so the value at the target is f whatever the trap does on the way, and
the best config is known. Values get noise: one factor for the run, one for each epoch, of the config and the training seed.
A problem has what ``compare`` needs of a table (``tables.load``).
"""

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benchmarks.curves.tables import Array, Curve, features
from benchmarks.problems.core import Config, Dimension, Integer, Real

EPOCHS = 50
LOWEST = 0.08  # the error of the best config at the target
WORST = 1.0  # an error that a diverged run counts as, where regret is taken
RUN_NOISE, EPOCH_NOISE = 0.02, 0.02  # standard deviations of the logarithms of the factors
HIGHEST = 1e4  # of an explosion
T = np.arange(1.0, EPOCHS + 1)


def bowl(best: Array, weights: Array, ripple: float = 0.01) -> Callable[[Array], float]:
    """An error with one best config, a valley between the first two parameters, and small waves that are zero at the best."""

    def value(x: Array) -> float:
        away = x - best
        valley = 0.6 * np.sqrt(weights[0] * weights[1]) * away[0] * away[1]
        return float(LOWEST + weights @ away**2 + valley + ripple * (1 - np.cos(6 * np.pi * away)).sum())

    return value


def decay(t: Array, scale: float) -> Array:
    """From 1 at the start to 0 at the last epoch, quickly for a small scale."""
    last = np.exp(-EPOCHS / scale)
    return np.asarray((np.exp(-t / scale) - last) / (1 - last))


def crossing(x: Array, f: float) -> Array:
    """Time constants from 3 epochs for the worst to 30 for the best: early on, the worst are ahead."""
    return f + max(1.2 - f, 0.1) * decay(T, 3 + 27 * float(np.exp(-4 * (f - LOWEST))))


def flipped(x: Array, f: float) -> Array:
    """The share of f - 0.35 that is seen goes from -0.8 through 0 at half of the epochs to 1."""
    share = -0.8 + 1.8 * (T / EPOCHS) ** 1.17
    return 0.35 + share * (min(f, 0.9) - 0.35) + max(f - 0.9, 0.0) + 0.2 * decay(T, 5.0)


def faster(x: Array, f: float) -> Array:
    """A high learning rate, x[0], learns faster; beyond the edge of stability the trend goes on."""
    quick = 1.5 + 12 * (1 - x[0])
    unstable = max(x[0] - edge(x), 0.0)
    return np.asarray(max(f - 0.5 * unstable, 0.5 * LOWEST) + 0.6 * decay(T, quick))


def edge(x: Array) -> float:
    """The highest stable learning rate, between 0.55 and 0.8."""
    return 0.55 + 0.25 * float(x[1])


def first_bad_epoch(x: Array) -> float:
    """From the last but five down to the third, the sooner the farther beyond the edge."""
    beyond = x[0] - edge(x)
    return np.inf if beyond <= 0 else max(3.0, EPOCHS - 5 - 90 * float(beyond))


def diverging(x: Array, f: float) -> Array:
    return np.where(first_bad_epoch(x) <= T, np.nan, faster(x, f))


def exploding(x: Array, f: float) -> Array:
    late = np.maximum(T - first_bad_epoch(x) + 1, 0.0)
    return np.minimum(faster(x, f) * 1.6**late, HIGHEST)


def steps(x: Array, f: float) -> Array:
    """The plateau of the best configs is the highest one, and more than a third of it is gained at the second cut."""
    stage = np.select([T < 25, T < 40], [1.0, 0.45], 0.0) + 0.15 * decay(T, 2.0)
    return f + (0.1 + 0.8 * np.exp(-3 * (f - LOWEST))) * stage


def regular(x: Array, f: float) -> Array:
    return np.asarray(f + (0.3 + 0.3 * float(x[1])) * decay(T, 4 + 8 * float(x[0])))


@dataclass(frozen=True)
class PlantedCurves:
    """A problem; ``shape`` makes the curve of a point and its value at the target, ``power`` is that of the cost in the epoch."""

    name: str
    best: tuple[float, ...]
    weights: tuple[float, ...]
    shape: Callable[[Array, float], Array]
    power: float = 1.0
    unit: str = "epochs"

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        first = Real("learning_rate", 1e-4, 1.0, log=True)
        return (first, *(Real(f"x{number}", 0.0, 1.0) for number in range(1, len(self.best))))

    @property
    def fidelities(self) -> tuple[Integer, ...]:
        return (Integer(self.unit, 1, EPOCHS),)

    @property
    def units(self) -> Array:
        return T

    @property
    def optimum(self) -> float:
        return LOWEST

    @property
    def best_config(self) -> dict[str, float]:
        return {"learning_rate": 1e-4 ** (1 - self.best[0]), **{f"x{n}": self.best[n] for n in range(1, len(self.best))}}

    def mean_curve(self, config: Config) -> Curve:
        """The curve without noise."""
        x = features(self.dimensions, [config])[0]
        valid = self.shape(x, self._at_target(x))
        # The last parameter stands for the size of the network: the largest takes three times as long.
        seconds = (1 + 2 * float(x[-1])) * EPOCHS * (T / EPOCHS) ** self.power
        if np.isnan(valid).any():  # a run that diverges ends there, and the rest is not paid for
            seconds = np.minimum(seconds, seconds[np.isnan(valid)].min())
        return Curve(T, valid, valid, seconds)

    def curve(self, config: Config, seed: int = 0) -> Curve:
        """What a run of this config gives; the same every time for the same training seed."""
        found = self.mean_curve(config)
        x = features(self.dimensions, [config])[0]
        rng = np.random.default_rng([zlib.crc32(x.tobytes()), seed])
        noise = RUN_NOISE * rng.normal() + EPOCH_NOISE * rng.normal(size=EPOCHS)
        return Curve(T, found.valid * np.exp(noise), found.test, found.seconds)

    def evaluate(self, config: Mapping[str, float], seed: int = 0) -> tuple[float, float]:
        return self.curve(config, seed).until(config.get(self.unit, EPOCHS))

    def regret(self, config: Config) -> float:
        """At the target; a run that has no value there, or a worse one than all, counts as the worst error."""
        last = float(self.mean_curve(config).valid[-1])
        return (min(last, WORST) if np.isfinite(last) else WORST) - LOWEST

    @cached_property
    def _at_target(self) -> Callable[[Array], float]:
        return bowl(np.array(self.best), np.array(self.weights))


PROBLEMS: dict[str, PlantedCurves] = {
    each.name: each
    for each in (
        PlantedCurves("crossing", (0.62, 0.3, 0.55, 0.7), (1.0, 0.7, 0.5, 0.2), crossing),
        PlantedCurves("flipped", (0.35, 0.7, 0.4), (1.2, 0.8, 0.4), flipped),
        PlantedCurves("diverging", (0.6, 0.4, 0.25, 0.5), (1.0, 0.6, 0.5, 0.2), diverging),
        PlantedCurves("exploding", (0.6, 0.4, 0.75, 0.5), (1.0, 0.6, 0.5, 0.2), exploding),
        PlantedCurves("steps", (0.7, 0.35, 0.6, 0.25, 0.5), (1.0, 0.6, 0.4, 0.4, 0.15), steps),
        PlantedCurves("superlinear", (0.45, 0.6, 0.3, 0.65), (1.0, 0.7, 0.5, 0.2), regular, power=2.5),
    )
}
