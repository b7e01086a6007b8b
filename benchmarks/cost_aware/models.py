"""The cost models compared, by label, and the data on which they are compared."""

import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import effort
from benchmarks.cost_aware import boosters, catalog, recordings, surrogates, tables
from benchmarks.cost_aware.core import at
from benchmarks.peers import shoestring_space
from benchmarks.problems import learners, recorded
from benchmarks.problems.core import Problem

ONLINE = (
    "gp", "gp3", "linear1", "linear2", "linear3", "named1", "named2", "named3", "linear_all", "residual", "residual_all", "auto",
    "auto_shuffled",
)  # fmt: skip
LABELS = {
    "gp": "GP",
    "gp3": "limited-features GP",
    "linear1": "linear, 1 feature",
    "linear2": "linear, 2 features",
    "linear3": "linear, 3 features",
    "named1": "linear, 1 feature named",
    "named2": "linear, 2 features named",
    "named3": "linear, 3 features named",
    "linear_all": "linear, every feature",
    "residual": "GP on residuals (GP-LV)",
    "residual_all": "GP-LV, every feature",
    "auto": "auto",
    "auto_shuffled": "auto, names shuffled",
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
        "auto_shuffled": lambda: st.AutoCost(),
    }
    if label in makers:
        return makers[label]()
    if label.startswith("named"):
        return st.LinearCost(features=significant(problem)[: int(label.removeprefix("named"))])
    if not label.startswith("linear"):
        raise ValueError(f"no cost model is called {label!r}; there are {', '.join((*ONLINE, 'transfer'))}")
    return st.LinearCost(features=int(label.removeprefix("linear")))


@cache
def commit() -> str:
    """The commit of the code that makes a row, looked up once."""
    return effort.commit()


def real(name: str) -> str:
    """Cost models are compared on measurements: a surrogate's problem is replaced by the recording behind it."""
    return boosters.PREFIX + name.removeprefix(surrogates.PREFIX) if name.startswith(surrogates.PREFIX) else name


@cache
def data(name: str) -> tuple[Any, list[dict[str, Any]], Array]:
    """The space, configs and log costs of a problem: recorded measurements, or a random sample of a table."""
    name = real(name)
    if name in learners.NAMES:
        found = recordings.read(name, "sobol", recorded.FOLDER)[: recorded.EVALUATIONS]
        space = shoestring_space(Problem(name, learners.space_of(name), lambda config: 0.0, 0.0))
        return space, [entry.config for entry in found], np.log([entry.cost for entry in found])
    problem = catalog.load(name)
    if name.startswith(boosters.PREFIX):
        measured = recordings.read(name, "sobol")
        configs, costs = [entry.config for entry in measured], [entry.cost for entry in measured]
    else:
        rng = np.random.default_rng(zlib.crc32(name.encode()))
        draws = rng.random((SAMPLED, len(problem.dimensions)))
        configs = [{d.name: at(d, float(u)) for d, u in zip(problem.dimensions, draw, strict=True)} for draw in draws]
        costs = [problem.evaluate(config)[1] for config in configs]
    return shoestring_space(problem.without_costs()), configs, np.log(costs)


def family(name: str) -> tuple[str, ...]:
    """The problems that differ from this one by their data only."""
    sets = (boosters.NAMES, tables.TUNING, tables.REPORTING, learners.NAMES)
    (names,) = (names for names in sets if real(name) in names)
    return tuple(other for other in names if other.split("_")[0] == real(name).split("_")[0])


@cache
def significant(name: str) -> tuple[str, ...]:
    """Hyperparameters from the most significant one on, by OTHER data sets of the family: F tests of one regression for all.

    Each problem has its own intercept. A hyperparameter that only some of them have is left out.
    """
    from shoestring.cost.features import CostFeatures
    from shoestring.space.encoding import Encoding

    others = [other for other in family(name) if data_set(other) != data_set(name)]
    spaces = {other: data(other)[0] for other in others}
    shared = [each for each in data(name)[0].names if all(each in space for space in spaces.values())]
    F, gamma = [], []
    for other, space in spaces.items():
        _, configs, costs = data(other)
        features, found = CostFeatures(Encoding(space))(points(space, configs)), Encoding(space).groups
        columns = np.concatenate([np.flatnonzero(found == space.names.index(each)) for each in shared])
        F.append(features[:, columns] - features[:, columns].mean(axis=0))
        gamma.append(costs - costs.mean())
        groups = np.array([shared.index(space.names[j]) for j in found[columns]])
    X, y = np.vstack(F), np.concatenate(gamma)

    def left(columns: Any) -> float:
        return float(np.sum((y - X[:, columns] @ np.linalg.lstsq(X[:, columns], y, rcond=None)[0]) ** 2))

    rise = {each: (left(groups != j) - left(groups >= 0)) / max(1, np.sum(groups == j)) for j, each in enumerate(shared)}
    return tuple(sorted(rise, key=lambda each: -rise[each]))


def with_shuffled_names(space: Any, seed: int) -> Any:
    """The same space under misleading names: those of the numeric parameters change places at random."""
    import shoestring as st

    numeric = [name for name in space.names if not isinstance(space[name], st.Choice)]
    moved = dict(zip(numeric, np.random.default_rng(seed).permutation(numeric), strict=True))
    return st.Space(**{str(moved.get(name, name)): space[name] for name in space.names})


def points(space: Any, configs: list[dict[str, Any]]) -> Array:
    return np.array([space.encode(config) for config in configs])


def meta(name: str) -> dict[str, float]:
    """Meta-features of an XGBoost problem."""
    return boosters.split_of(real(name)).meta


def data_set(name: str) -> str:
    """The data set behind a problem, whichever pipeline."""
    name = real(name)
    return name.removeprefix(boosters.PREFIX).rsplit("_", 1)[0] if name.startswith(boosters.PREFIX) else name
