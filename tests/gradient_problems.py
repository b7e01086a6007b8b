"""Problems whose objective tells its gradient, shared by the tests of slopes."""

import math

import numpy as np

import shoestring as st

SCALES = st.Space(rate=st.Float(1e-4, 1e-1, log=True), width=st.Float(-2, 6), depth=st.Int(1, 9))


def scales_value(config):
    """Positive, and lowest near rate 10^-2.5, width 1.4, depth 4."""
    rate, width = math.log10(config["rate"]) + 2.5, config["width"]
    return 0.5 + rate**2 / 2 + (width - 1.5) ** 2 / 8 + 0.2 * math.sin(width) + (config["depth"] - 4) ** 2 / 20


def scales_slopes(config):
    """d value / d parameter, in the user's units."""
    rate, width = (math.log10(config["rate"]) + 2.5) / (config["rate"] * math.log(10)), config["width"]
    return {"rate": rate, "width": (width - 1.5) / 4 + 0.2 * math.cos(width), "depth": (config["depth"] - 4) / 10}


def mixed_slopes(config):
    """Of ``mixed_value``: by every number that is active."""
    rate = (math.log10(config["rate"]) + 2.5) / (2 * config["rate"] * math.log(10))
    slopes = {"rate": rate, "depth": 2 * (config["depth"] - 4) / 9}
    if "extra" in config:
        slopes["extra"] = 2 * (config["extra"] - 0.2)
    if "deep" in config:
        slopes["deep"] = math.copysign(1.0, config["deep"] - 0.7)
    return slopes


def waves(config):
    return sum(math.sin(5 * value + i) for i, value in enumerate(config.values()))


def wave_slopes(config):
    return {name: 5 * math.cos(5 * value + i) for i, (name, value) in enumerate(config.items())}


def sloped_study(space, value, slopes, count, seed=0, told_where=lambda number: True, fails=lambda config: False, **options):
    """A study with ``count`` random trials, told with their slopes; upside down where it maximizes."""
    study, rng = st.Study(space, seed=seed, **options), np.random.default_rng(seed)
    sign = -1.0 if study.direction == "maximize" else 1.0
    for number, u in enumerate(space.snap(space.at_target(rng.random((count, len(space)))))):
        config = space.decode(u)
        gradient = {name: sign * slope for name, slope in slopes(config).items()} if told_where(number) else None
        if fails(config):
            study.add(config, error="out of memory", cost=1.0, gradient=gradient)
        else:
            study.add(config, sign * value(config), cost=1.0, gradient=gradient)
    return study


