"""Small problems that the contract suites run on: numbers alone, and a mixed conditional space with costs and failures."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..data.dataset import Dataset, to_dataset
from ..space.encoding import Encoding
from ..space.parameters import Choice, Float, Int
from ..space.space import Space
from ..study import Study
from ..surrogate.belief import Belief

SPACES = {
    "numbers": Space(x=Float(0, 1), y=Float(0, 1)),
    "mixed": Space(
        lr=Float(1e-5, 1e-1, log=True), depth=Int(2, 12), booster=Choice("gbtree", "dart"),
        rate_drop=Float(0, 0.5, when={"booster": "dart"}),
    ),
}  # fmt: skip


def objective(config: dict[str, Any]) -> float:
    """A value for a config of either space."""
    if "x" in config:
        return float((config["x"] - 0.3) ** 2 + 2.0 * (config["y"] - 0.7) ** 2)
    drop = config.get("rate_drop", 0.3)
    return float((math.log10(config["lr"]) + 3.0) ** 2 + 0.1 * abs(config["depth"] - 7) + (drop - 0.2) ** 2)


def cost_of(config: dict[str, Any]) -> float:
    return 1.0 + 0.2 * float(config.get("depth", 1))


def run(study: Study, trials: int, *, fail_every: int | None = None) -> Study:
    """Ask and tell so many trials; every so many-th fails."""
    for _ in range(trials):
        trial = study.ask()
        if fail_every is not None and trial.number % fail_every == fail_every - 1:
            study.tell(trial, error="it failed", cost=cost_of(trial.config))
        else:
            study.tell(trial, objective(trial.config), cost=cost_of(trial.config))
    return study


def sampled_study(space: str = "numbers", trials: int = 12, **options: Any) -> Study:
    """A study with some random trials."""
    study, rng = Study(SPACES[space], **options), np.random.default_rng(3)
    U = SPACES[space].snap(rng.random((trials, len(SPACES[space]))))
    for u in U:
        config = SPACES[space].decode(u)
        study.add(config, objective(config), cost=cost_of(config))
    return study


def belief_about(space: str = "numbers", trials: int = 12, **options: Any) -> Belief:
    """A belief from random trials, with costs."""
    return sampled_study(space, trials, **{"budget": 200, **options}).context.belief(costs=True)


def data_about(space: str = "numbers", trials: int = 12) -> tuple[Encoding, Dataset]:
    return Encoding(SPACES[space]), to_dataset(sampled_study(space, trials).log)


def configs(study: Study) -> list[dict[str, Any]]:
    return [dict(trial.config) for trial in study.log]
