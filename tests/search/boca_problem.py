"""A problem for BOCA: epochs that cost, and mislead when they are few."""

import dataclasses
import math

import numpy as np

import shoestring as st
from shoestring.surrogate.belief import fit_cost
from tests.problems import belief_of

SMALL = st.Space(x=st.Float(0, 1), y=st.Float(-1, 1), epochs=st.Fidelity(1, 27))


def price(config):
    return (config["epochs"] + 0.5) * (1 + config["x"])


def learning(config):
    """Few epochs see the bowl displaced: the lowest point of the cheapest fidelity is not that of the target."""
    off = 1 / config["epochs"]
    value = 3 * (config["x"] - 0.3 - 0.4 * off) ** 2 + (config["y"] - 0.2) ** 2 + 0.3 * math.sin(5 * config["x"]) + 0.2 * off
    return st.Outcome(value, cost=price(config))


def study_and_belief(count, seed=0, **options):
    """A study with ``count`` trials at random fidelities, and its belief with costs known by formula."""
    study = st.Study(SMALL, st.BOCA(), seed=seed, cost_model=st.KnownCost(price), stop=None, **options)
    for u in SMALL.snap(np.random.default_rng([seed, count]).random((count, 3))):
        config = SMALL.decode(u)
        study.add(config, learning(config))
    belief, encoding, seen = belief_of(study, study.model)
    return study, dataclasses.replace(belief, cost=fit_cost(seen, encoding, st.KnownCost(price)))
