"""Problems whose objective reports its gradient, shared by the tests of gradient observations."""

import math

import numpy as np

import shoestring as st

SCALES = st.Space(rate=st.Float(1e-4, 1e-1, log=True), width=st.Float(-2, 6), depth=st.Int(1, 9))


def scales_value(config):
    """Positive, and lowest near rate 10^-2.5, width 1.4, depth 4."""
    rate, width = math.log10(config["rate"]) + 2.5, config["width"]
    return 0.5 + rate**2 / 2 + (width - 1.5) ** 2 / 8 + 0.2 * math.sin(width) + (config["depth"] - 4) ** 2 / 20


def scales_gradient(config):
    """d value / d parameter, in the user's units."""
    rate, width = (math.log10(config["rate"]) + 2.5) / (config["rate"] * math.log(10)), config["width"]
    return {"rate": rate, "width": (width - 1.5) / 4 + 0.2 * math.cos(width), "depth": (config["depth"] - 4) / 10}


def mixed_gradient(config):
    """Of ``mixed_value``, with respect to every number that is active."""
    rate = (math.log10(config["rate"]) + 2.5) / (2 * config["rate"] * math.log(10))
    gradient = {"rate": rate, "depth": 2 * (config["depth"] - 4) / 9}
    if "extra" in config:
        gradient["extra"] = 2 * (config["extra"] - 0.2)
    if "deep" in config:
        gradient["deep"] = math.copysign(1.0, config["deep"] - 0.7)
    return gradient


def waves(config):
    return sum(math.sin(5 * value + i) for i, value in enumerate(config.values()))


def wave_gradient(config):
    return {name: 5 * math.cos(5 * value + i) for i, (name, value) in enumerate(config.items())}


def study_with_gradients(
    space, value, gradient, count, seed=0, reported_where=lambda number: True, fails=lambda config: False, **options
):
    """A study with ``count`` random trials that reported gradients; with the opposite sign where it maximizes."""
    study, rng = st.Study(space, seed=seed, **options), np.random.default_rng(seed)
    sign = -1.0 if study.direction == "maximize" else 1.0
    for number, u in enumerate(space.snap(space.at_target(rng.random((count, len(space)))))):
        config = space.decode(u)
        reported = {name: sign * slope for name, slope in gradient(config).items()} if reported_where(number) else None
        if fails(config):
            study.add(config, error="out of memory", cost=1.0, gradient=reported)
        else:
            study.add(config, sign * value(config), cost=1.0, gradient=reported)
    return study
