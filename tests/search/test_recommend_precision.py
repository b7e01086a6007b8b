"""What is recommended is the minimum of the model's mean, and not merely near it."""

import numpy as np
import pytest
from scipy.optimize import minimize

import shoestring as st
from shoestring.acquisition.knowledge_gradient import initial_discretization
from shoestring.search.recommend import Judge, negative_mean, promising


def valley(config):
    """Long and narrow: the mean has a minimum that a search for an acquisition's maximum would stop short of."""
    x, y = config["x"], config["y"]
    return float(100.0 * (y - x * x) ** 2 + (x - 0.6) ** 2)


@pytest.fixture(scope="module")
def context():
    study = st.Study(st.Space(x=st.Float(-1, 1), y=st.Float(-1, 1)), seed=0)
    rng = np.random.default_rng(0)
    for x, y in rng.uniform(-1, 1, (60, 2)):
        study.add({"x": float(x), "y": float(y)}, valley({"x": x, "y": y}), cost=1.0)
    return study.context


def lowest_nearby(belief, u):
    """By another library, from the same place."""
    falling = negative_mean(belief)

    def mean(point):
        value, slope = falling(point[None, :], True)
        return -float(value[0]), -slope[0]

    return minimize(mean, u, jac=True, bounds=[(0, 1)] * len(u), method="L-BFGS-B", options={"ftol": 1e-16, "gtol": 1e-12}).fun


def test_no_descent_from_the_recommendation_finds_a_lower_mean(context):
    belief = context.belief(costs=False)
    judge = Judge.of(belief, negative_mean(belief))
    points = promising(belief, judge, context.optimizer())
    u = points[int(np.argmin(judge.means(points)))]
    assert -float(negative_mean(belief)(u[None, :], False)[0][0]) <= lowest_nearby(belief, u) + 1e-8


def test_no_descent_from_the_minima_of_kg_finds_a_lower_mean(context):
    belief = context.belief(costs=False)
    points = initial_discretization(belief, context.optimizer())
    best = points[np.argmin(belief.objective.mean_at(belief.encoding.features(points)))]
    assert float(belief.objective.mean_at(belief.encoding.features(best[None, :]))[0]) <= lowest_nearby(belief, best) + 1e-6
