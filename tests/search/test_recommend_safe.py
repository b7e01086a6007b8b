"""A recommendation is safe: the model's word counts as far as the model was right so far."""

import math

import numpy as np
import pytest

import shoestring as st
from shoestring.search.recommend import CONFIRMS, calibration, novelty, plausible_floor
from shoestring.surrogate.posterior import Posterior

PLANE = st.Space(x0=st.Float(-5, 10), x1=st.Float(0, 15), s=st.Fidelity(0.0, 1.0))


def bent_branin(config):
    """Branin at s = 1; below, it is bent so far that the minima move."""
    x0, x1 = config["x0"], config["x1"]
    valley = x1 - (5.1 / (4 * math.pi**2) - 0.1 * (1 - config["s"])) * x0**2 + 5 / math.pi * x0 - 6
    return valley**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x0) + 10


def halved(count, seed):
    """A study after successive halving: each third goes on to a higher fidelity, and one config to the target."""
    study = st.Study(PLANE, seed=0, stop=None)
    points = np.random.default_rng(seed).random((count, 2)) * 15 - [5, 0]
    for s in (0.012, 0.11, 0.33, 1.0):
        configs = [{"x0": float(a), "x1": float(b), "s": s} for a, b in points]
        values = [study.add(config, bent_branin(config), cost=0.01 + s).value for config in configs]
        points = points[np.argsort(values)[: max(len(points) // 3, 1)]]
    return study


@pytest.mark.parametrize(("count", "seed"), [(40, 2), pytest.param(100, 2, marks=pytest.mark.slow)])
def test_what_was_evaluated_at_the_target_is_kept_where_the_model_extrapolates(count, seed):
    """At the corner x0 = 10, x1 = 0 the model predicts less than was ever seen; the value there is 11."""
    study = halved(count, seed)
    held = min(trial.value for trial in study.history if trial.config["s"] == 1.0)
    assert bent_branin(study.recommend().config) <= held + 1e-9


def test_the_calibration_is_that_of_predictions_without_each_value():
    study = halved(20, 1)
    belief = study.context.belief(costs=False)
    data, posterior = belief.data, belief.fit.posterior
    rows = np.flatnonzero(data.at_target)
    rows = rows if len(rows) >= 3 else np.arange(len(data.y))
    scores, predictions = [], []
    for row in rows:
        others = np.delete(np.arange(len(data.y)), row)
        without = Posterior.given(posterior.kernel, posterior.noise, posterior.Z[others], posterior.y[others], posterior.mean)
        mean, variance = without.mean_and_variance(posterior.Z[row : row + 1])
        predictions.append(mean[0])
        scores.append((posterior.y[row] - mean[0]) ** 2 / (variance[0] + posterior.noise))
    lowest = np.array(scores)[np.argsort(predictions)[:20]]
    assert calibration(belief) == pytest.approx(math.sqrt(max(1.0, (lowest.sum() + 2) / (len(lowest) + 2))), rel=1e-4)


def test_an_untried_config_far_from_data_is_not_recommended_before_it_was_confirmed():
    """Values fall towards the end that nothing was evaluated near."""
    study = st.Study(st.Space(x=st.Float(0, 1), y=st.Float(0, 1)), seed=0, stop=None, model=st.GP(output="standard"))
    rng = np.random.default_rng(0)
    for x, y in 0.3 * rng.random((14, 2)):
        study.add({"x": float(x), "y": float(y)}, math.sin(12 * x) * math.cos(9 * y) - x - y)
    belief = study.context.belief(costs=False)
    assert novelty(belief, np.array([[0.9, 0.9]]))[0] > 0.25 > novelty(belief, np.array([[0.15, 0.15]]))[0]
    config = study.recommend().config
    assert max(config.values()) < 0.45
    study.state.enqueue({"x": 0.9, "y": 0.9}, {"by": "you", "why": CONFIRMS})
    study.tell(study.ask(), -50.0)
    assert study.recommend().config == {"x": 0.9, "y": 0.9}


def test_a_prediction_below_all_that_was_seen_is_not_plausible():
    belief = halved(40, 2).context.belief(costs=False)
    values = np.sort(belief.output.forward(belief.data.y))
    assert values[-1] - values[0] > values[0] - plausible_floor(belief) > 0


@pytest.mark.parametrize("seed", [0, 1])
def test_a_shift_between_fidelities_is_plausible_where_the_best_values_are_of_near_copies(seed):
    """All that is near the optimum was seen at s = 0; at s = 1 values are lower by far more than these differ by."""

    def value(x0, x1, s):
        return 2 * (x0 - 0.6) ** 2 + (x1 - 0.4) ** 2 + 0.3 * (x0 - 0.6) * (x1 - 0.4) - 0.06 * s * (1 + 0.2 * x1)

    rng = np.random.default_rng(seed)
    space = st.Space(x0=st.Float(0, 1), x1=st.Float(0, 1), s=st.Fidelity(0.0, 1.0))
    study = st.Study(space, stop=None, model=st.GP(output="standard"))
    copies = [0.6, 0.4] + 0.01 * rng.random((12, 2))
    for points, s in ((rng.random((20, 2)), 0.0), (copies, 0.0), ([(0.4, 0.6), (0.2, 0.2), (0.95, 0.15), (0.2, 0.8)], 1.0)):
        for x0, x1 in points:
            study.add({"x0": float(x0), "x1": float(x1), "s": s}, value(x0, x1, s), cost=0.01 + s)
    best = study.recommend()
    assert not best.evaluated
    assert value(**best.config) < value(0.6, 0.4, 1.0) + 0.01


def floor_of(space, entries):
    """What is plausible after these configs and values, without the noise."""
    study = st.Study(space, stop=None, model=st.GP(output="standard"))
    for config, value in entries:
        study.add(config, value)
    belief = study.context.belief(costs=False)
    low, high = belief.output.forward(np.array([0.0, 1.0]))
    return (plausible_floor(belief) + 2 * math.sqrt(belief.objective.noise) - low) / (high - low)


def test_values_of_near_copies_count_once_in_what_is_plausible():
    """Of one parameter the best three count: 0, 0.2 and 0.5, with two near-copies in between."""
    places = {0.5: 0.0, 0.51: 0.1, 0.65: 0.2, 0.6: 0.3, 0.3: 0.5, 0.1: 0.9, 0.9: 1.0}
    found = floor_of(st.Space(x=st.Float(0, 1)), [({"x": x}, value) for x, value in places.items()])
    assert found == pytest.approx(-0.5)


def test_options_are_no_near_copies_however_many_there_are():
    options = "abcdefghijklmnopqrst"
    found = floor_of(st.Space(c=st.Choice(*options)), [({"c": c}, 0.1 * k) for k, c in enumerate(options[:8])])
    assert found == pytest.approx(-0.2)


def test_where_all_are_near_copies_all_values_count():
    found = floor_of(st.Space(x=st.Float(0, 1)), [({"x": 0.5 + 0.01 * k}, 0.1 * k) for k in range(6)])
    assert found == pytest.approx(-0.5)


def test_of_noisy_values_the_one_that_is_known_better_is_recommended():
    """Three values at one config, about 0, against one value of -0.1 elsewhere, with noise of deviation 1."""
    study = st.Study(st.Space(c=st.Choice("often", "once", "bad")), seed=0, stop=None, model=st.GP(output="standard"))
    for config, values in {"often": (0.9, -0.9, 0.3, -0.4), "once": (-0.1,), "bad": (3.0, 4.5, 2.1, 5.0)}.items():
        for value in values:
            study.add({"c": config}, value)
    assert study.recommend(tried=True).config == {"c": "often"}


@pytest.mark.parametrize("failing", [False, True])
def test_where_runs_fail_on_their_way_only_complete_ones_are_recommended(failing):
    """The best config is between those that are complete. Without failures the model finds it; near it runs fail late."""
    space = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 9))
    study = st.Study(space, st.LogEI(), seed=0, stop=None, initial=4)
    tried = [0.02, 0.13, 0.24, 0.33, 0.41, 0.59, 0.67, 0.76, 0.87, 0.98, *([0.47, 0.52] if failing else [])]
    for x in tried:
        study.enqueue({"x": x, "epochs": 9})

    def train(config, trial):
        for epoch in range(1, 10):
            value = 1 + (config["x"] - 0.5) ** 2 + math.exp(-epoch / 2)
            if failing and 0.44 < config["x"] < 0.56 and epoch == 9:
                return math.nan
            trial.report(value, epochs=epoch)
        return value

    study.minimize(train, len(tried), progress=False)
    assert study.context.fits.curves is not None
    found = study.recommend()
    assert found.evaluated == failing
    assert (found.config["x"] in tried[:10]) == failing
    assert abs(found.config["x"] - 0.5) < 0.1
