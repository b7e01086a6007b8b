"""Degenerate data, which say little or nothing: whatever the method, the next point is inside the space and new."""

import numpy as np

import shoestring as st
from tests.problems import plane

VALUES = {"one": [1.0], "constant": [1.0] * 4, "huge": [1e300, 1.0, 2.0], "zeros": [0.0] * 12, "line": list(range(12))}


def assert_a_new_point(method, values, separation):
    """After values at random points of a plane, the next point is farther than ``separation`` from all of them."""
    study = st.Study(plane(2), method=method, initial=1, seed=0)
    for u, value in zip(np.random.default_rng(0).random((len(values), 2)), values, strict=True):
        study.add({"x0": u[0], "x1": u[1]}, float(value), cost=1.0)
    config = study.ask().config
    assert all(0 <= x <= 1 for x in config.values())
    others = [list(trial.config.values()) for trial in study.history if trial.value is not None]
    assert np.abs(np.array(others) - list(config.values())).max(axis=1).min() > separation


def assert_duplicates_do_not_matter(method):
    """After the same value at the same place four times, and another one elsewhere, a new place is suggested."""
    study = st.Study(plane(1), method=method, initial=1, seed=0)
    for _ in range(4):
        study.add({"x0": 0.5}, 1.0, cost=1.0)
    study.add({"x0": 0.2}, 0.5, cost=1.0)
    assert study.ask().config["x0"] not in (0.5, 0.2)
