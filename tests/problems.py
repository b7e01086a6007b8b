"""Small problems that many tests share."""

import math

import numpy as np

import shoestring as st
from shoestring.data.dataset import to_dataset
from shoestring.space.encoding import Encoding
from shoestring.surrogate.belief import fit_belief


def plane(dimensions=2):
    return st.Space({f"x{i}": st.Float(0, 1) for i in range(dimensions)})


def bowl(config):
    """Lowest, 0, where every number is 0.3."""
    return sum((value - 0.3) ** 2 for value in config.values() if isinstance(value, int | float))


def mixed_space():
    """Every kind of parameter, a chain of two conditions included."""
    return st.Space(
        rate=st.Float(1e-4, 1e-1, log=True),
        depth=st.Int(1, 6),
        kind=st.Choice("a", "b", "c"),
        extra=st.Float(0, 0.5, when={"kind": ["b", "c"]}),
        mode=st.Choice(None, [1, 2], when={"kind": "c"}),
        deep=st.Float(0, 1, when={"mode": [None]}),
    )


def mixed_value(config):
    value = (math.log10(config["rate"]) + 2.5) ** 2 / 4 + (config["depth"] - 4) ** 2 / 9
    value += {"a": 0.6, "b": 0.3, "c": 0.0}[config["kind"]]
    value += (config.get("extra", 0.0) - 0.2) ** 2
    return value + (abs(config["deep"] - 0.7) if "deep" in config else 0.25)


def branin(config):
    x, y = 15 * config["x0"] - 5, 15 * config["x1"]
    curve = y - 5.1 * x**2 / (4 * math.pi**2) + 5 * x / math.pi - 6
    return curve**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


def hartmann3(config):
    x = np.array([config["x0"], config["x1"], config["x2"]])
    A = np.array([[3.0, 10, 30], [0.1, 10, 35], [3.0, 10, 30], [0.1, 10, 35]])
    P = 1e-4 * np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]])
    return -float(np.array([1.0, 1.2, 3.0, 3.2]) @ np.exp(-(A * (x - P) ** 2).sum(axis=1)))


def told_study(space, value, count, seed=0, error_where=None, **options):
    """A study with the results of ``count`` random trials; those for which ``error_where`` holds have failed."""
    study = st.Study(space, seed=seed, **options)
    rng = np.random.default_rng(seed)
    U = space.snap(space.at_target(rng.random((count, len(space)))))
    for u in U:
        config = space.decode(u)
        if error_where is not None and error_where(config):
            study.add(config, error="out of memory", cost=1.0)
        else:
            study.add(config, value(config), cost=1.0)
    return study


def abandon(study, number):
    """End a trial without a result, as if the process that runs it had been interrupted."""
    return study._results.give_back(number)


def belief_of(study, model=None):
    """The belief of a model-based method about the study, its encoding and its dataset."""
    encoding = Encoding(study.space)
    seen = to_dataset(study.history)
    return fit_belief(seen, encoding, model or st.GP(), None), encoding, seen
