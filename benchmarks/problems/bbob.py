"""Functions of the bbob suite (package coco-experiment) with made-up costs.

The cost of a config is exp(sum_j w_j u_j), u_j the position of coordinate j in [0, 1]. The two or three coordinates, the signs
and the sizes of the weights follow from the problem's name, so costs differ by a factor of 10 to 1000 and the optimum lies
anywhere between cheap and expensive. Values are the suite's own, whose optima differ from zero. The box is [-5, 5], moved where
the optimum would be near its centre. Functions that the reporting problems hold in another form (Rosenbrock: f8, f9, f19) are
left out.

    python -m benchmarks.problems.bbob      # write the places of the optima, which the suite tells through a file, to data/
"""

import json
import os
import tempfile
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.cost_aware.core import CostProblem, Measured
from benchmarks.problems.core import Config, Real

FUNCTIONS = {
    2: "ellipsoid",
    3: "Rastrigin",
    6: "attractive sector",
    7: "step ellipsoid",
    13: "sharp ridge",
    14: "different powers",
    15: "rotated Rastrigin",
    17: "Schaffer F7",
    20: "Schwefel",
    21: "Gallagher's 101 peaks",
}
DIMENSIONS = (2, 3, 5)
INSTANCES = (1, 2, 3)
DECADES = (1.0, 3.0)  # between the lowest and the highest cost
CENTRAL, SHIFT = 1.0, 2.0  # an optimum all of whose coordinates are below CENTRAL moves the box by SHIFT
NOISE = 0.03  # deviation of the noise, as a share of the median regret of random configs
CONSTANT, NOISY = "_constant", "_noisy"
OPTIMA = Path(__file__).parent.parent / "data" / "bbob_optima.json"
LABEL = "bbob"
Vector = NDArray[np.float64]


def _base_names() -> tuple[str, ...]:
    """Each function in each dimension, on one of the instances in turn."""
    cases = [(number, dimension) for number in FUNCTIONS for dimension in DIMENSIONS]
    return tuple(f"bbob_f{n:02d}_d{d}_i{INSTANCES[(k // 3 + k) % 3]}" for k, (n, d) in enumerate(cases))


WITH_COSTS = _base_names()
WITH_CONSTANT_COST = tuple(name + CONSTANT for name in WITH_COSTS[::2])
WITH_NOISE = tuple(name + NOISY for name in WITH_COSTS if name.startswith(("bbob_f14_d5", "bbob_f17_d3")))
NAMES = WITH_COSTS + WITH_CONSTANT_COST + WITH_NOISE


@cache
def _suite() -> Any:
    import cocoex

    numbers = ",".join(str(number) for number in FUNCTIONS)
    return cocoex.Suite("bbob", "instances:1-3", f"dimensions:2,3,5 function_indices:{numbers}")


def function(name: str) -> Any:
    """The suite's own problem behind ``bbob_fNN_dD_iI``: a call with a vector gives the value."""
    number, dimension, instance = (int(part[1:]) for part in name.split("_")[1:4])
    return _suite().get_problem_by_function_dimension_instance(number, dimension, instance)


@cache
def optima() -> dict[str, dict[str, Any]]:
    """Place and value of each optimum."""
    found: dict[str, dict[str, Any]] = json.loads(OPTIMA.read_text())
    return found


def box(name: str) -> tuple[float, float]:
    """The ends of every coordinate."""
    shift = SHIFT if max(abs(x) for x in optima()[name]["place"]) < CENTRAL else 0.0
    return -5.0 + shift, 5.0 + shift


def weights(name: str, dimension: int) -> Vector:
    """The weights of the coordinates in the logarithm of the cost; the sum of their sizes is that of the decades."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    chosen = rng.choice(dimension, min(dimension, int(rng.integers(2, 4))), replace=False)
    sizes = rng.uniform(0.5, 1.5, len(chosen))
    found = np.zeros(dimension)
    found[chosen] = rng.choice([-1.0, 1.0], len(chosen)) * sizes / sizes.sum() * rng.uniform(*DECADES) * np.log(10)
    return found


def noise(name: str, config: Config) -> float:
    """A standard normal number that depends on the problem and the config alone."""
    text = json.dumps([name, sorted(config.items())])
    return float(np.random.default_rng(zlib.crc32(text.encode())).normal())


def load(name: str) -> CostProblem:
    """One of NAMES; ``_constant`` costs 1 an evaluation, ``_noisy`` adds noise to the values."""
    if name not in NAMES:
        raise ValueError(f"no bbob problem is called {name!r}; there are {', '.join(NAMES)}")
    base = name.removesuffix(CONSTANT).removesuffix(NOISY)
    raw, lowest = function(base), float(optima()[base]["value"])
    low, high = box(base)
    dimensions = tuple(Real(f"x{i + 1}", low, high) for i in range(raw.dimension))
    slopes = weights(base, raw.dimension)
    if name.endswith(CONSTANT):
        slopes = np.zeros_like(slopes)

    def value_at(x: Vector) -> float:
        return max(float(raw(x)), lowest)  # places of optima are known to some 15 digits only

    def vector(config: Config) -> Vector:
        return np.array([config[dimension.name] for dimension in dimensions], dtype=float)

    def noise_free(config: Config) -> float:
        return value_at(vector(config))

    deviation = 0.0
    if name.endswith(NOISY):
        rng = np.random.default_rng(0)
        regrets = [value_at(x) - lowest for x in rng.uniform(low, high, (256, len(dimensions)))]
        deviation = NOISE * float(np.median(regrets))

    def evaluate(config: Config) -> Measured:
        x = vector(config)
        value = value_at(x) + (deviation * noise(name, config) if deviation else 0.0)
        return value, float(np.exp(slopes @ ((x - low) / (high - low))))

    return CostProblem(name, dimensions, evaluate, lowest, LABEL, noise_free if deviation else None)


def main() -> None:
    """Ask the suite for its optima. It writes them to a file in the working folder, hence a folder made for that."""
    found, home = {}, Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name in WITH_COSTS:
            problem = function(name)
            problem._best_parameter("print")
            place = np.loadtxt("._bbob_problem_best_parameter.txt", ndmin=1)
            found[name] = {"place": place.tolist(), "value": float(problem(place))}
        os.chdir(home)
    OPTIMA.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
