"""The cost models compared, by label, and the data on which they are compared."""

import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.cost_aware import boosters, catalog, recordings, surrogates
from benchmarks.cost_aware.core import at
from benchmarks.peers import shoestring_space

ONLINE = ("gp", "gp3", "linear1", "linear2", "linear3", "linear_all", "residual", "residual_all", "auto")
LABELS = {
    "gp": "GP",
    "gp3": "limited-features GP",
    "linear1": "linear, 1 feature",
    "linear2": "linear, 2 features",
    "linear3": "linear, 3 features",
    "linear_all": "linear, every feature",
    "residual": "GP on residuals (GP-LV)",
    "residual_all": "GP-LV, every feature",
    "auto": "auto",
}
SAMPLED = 400  # configs drawn from a table
Array = NDArray[np.float64]


def build(label: str, problem: str) -> Any:
    """The cost model of that label; the problem matters only to a transferred one, which must not have seen it."""
    import shoestring as st

    if label == "transfer":
        from benchmarks.cost_aware import transfer

        return transfer.model("task_linear", problem)
    makers: dict[str, Callable[[], Any]] = {
        "gp": lambda: st.LogGPCost(),
        "gp3": lambda: st.LogGPCost(features=3),
        "linear_all": lambda: st.LinearCost(features=None),
        "residual": lambda: st.ResidualGPCost(features=3),
        "residual_all": lambda: st.ResidualGPCost(features=None),
        "auto": lambda: st.AutoCost(),
    }
    if label in makers:
        return makers[label]()
    if not label.startswith("linear"):
        raise ValueError(f"no cost model is called {label!r}; there are {', '.join((*ONLINE, 'transfer'))}")
    return st.LinearCost(features=int(label.removeprefix("linear")))


def real(name: str) -> str:
    """Cost models are compared on measurements: a surrogate's problem is replaced by the recording behind it."""
    return boosters.PREFIX + name.removeprefix(surrogates.PREFIX) if name.startswith(surrogates.PREFIX) else name


@cache
def data(name: str) -> tuple[Any, list[dict[str, Any]], Array]:
    """The space, configs and log costs of a problem: recorded measurements, or a random sample of a table."""
    name = real(name)
    problem = catalog.load(name)
    if name.startswith(boosters.PREFIX):
        recorded = recordings.read(name, "sobol")
        configs, costs = [entry.config for entry in recorded], [entry.cost for entry in recorded]
    else:
        rng = np.random.default_rng(zlib.crc32(name.encode()))
        draws = rng.random((SAMPLED, len(problem.dimensions)))
        configs = [{d.name: at(d, float(u)) for d, u in zip(problem.dimensions, draw, strict=True)} for draw in draws]
        costs = [problem.evaluate(config)[1] for config in configs]
    return shoestring_space(problem.without_costs()), configs, np.log(costs)


def points(space: Any, configs: list[dict[str, Any]]) -> Array:
    return np.array([space.encode(config) for config in configs])


def meta(name: str) -> dict[str, float]:
    """Meta-features of an XGBoost problem."""
    return boosters.split_of(real(name)).meta


def data_set(name: str) -> str:
    """The data set behind an XGBoost problem, whichever pipeline."""
    return real(name).removeprefix(boosters.PREFIX).rsplit("_", 1)[0]
