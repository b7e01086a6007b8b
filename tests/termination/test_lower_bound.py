"""The lowest lower bound against a dense search: 20,000 Sobol points, the best of them polished."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import qmc

import shoestring as st
from shoestring.acquisition.improvement import improvement_surface, negative_lower_bound
from shoestring.acquisition.optimize.optimizer import local_search
from shoestring.data.dataset import to_dataset
from shoestring.termination.lower_bound import candidates
from shoestring.termination.regret import BoundModel
from tests.problems import mixed_space, mixed_value, plane, told_study


def wavy(config):
    x = np.array(list(config.values()))
    return float(((x - 0.4) ** 2).sum() + 0.3 * np.sin(7 * x).sum())


def searched_study(space, value, seed):
    """After expected improvement the surface is hard to search: many trials lie close together, and corners are unsure."""
    study = st.Study(space, method=st.EI(), seed=seed, stop=None)
    study.minimize(value, budget=40)
    return study


def densely_searched(belief, beta):
    space = belief.encoding.space
    root = math.sqrt(beta)
    surface = improvement_surface(replace(belief, feasibility=None), lambda m, d: negative_lower_bound(m, d, root))
    U = space.snap(qmc.Sobol(len(space), seed=1).random(2**14 + 2**12))
    values = surface(U, False)[0]
    top = np.argsort(-values)[:48]
    _, ends = local_search(surface, belief.encoding, U[top].copy(), values[top].copy(), 4, np.random.default_rng(0))
    return float(belief.output.inverse(np.array(-ends.max())))


@pytest.mark.filterwarnings("ignore:The balance properties")
@pytest.mark.parametrize(
    ("space", "value", "top", "seed"),
    [
        (plane(2), wavy, 1.0, 3),
        pytest.param(plane(5), wavy, 1.0, 0, marks=pytest.mark.slow),
        pytest.param(plane(5), wavy, 0.5, 3, marks=pytest.mark.slow),
        pytest.param(mixed_space(), mixed_value, 1.0, 1, marks=pytest.mark.slow),
    ],
    ids=["2-D", "5-D", "5-D, best half", "mixed"],
)
def test_the_bound_is_no_lower_than_that_of_a_dense_search(space, value, top, seed):
    model = BoundModel.of(searched_study(space, value, seed).log, None)
    found = model.bound(top, 0.1)
    lowest = densely_searched(model.model_of_best(top), found.beta)
    assert found.regret >= 0.999 * (found.upper - lowest)


def test_candidates_are_points_of_the_space_at_the_target_fidelity():
    space = st.Space(x=st.Float(0, 1), k=st.Int(1, 40), c=st.Choice("a", "b"), rows=st.Fidelity(1, 100))
    study = st.Study(space)
    study.add({"x": 0.1, "k": 3, "c": "a", "rows": 10}, 1.0)
    for part in candidates(study.context.encoding, to_dataset(study.log), np.random.default_rng(0)):
        assert np.array_equal(part, space.snap(space.at_target(part)))


def test_of_a_small_finite_space_every_point_is_a_candidate():
    space = st.Space(a=st.Int(1, 5), b=st.Choice("x", "y", "z"))
    study = told_study(space, lambda config: config["a"], 3)
    (part,) = candidates(study.context.encoding, to_dataset(study.log), np.random.default_rng(0))
    assert len(part) == 15
