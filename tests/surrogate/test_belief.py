import numpy as np
import pytest

import shoestring as st
from shoestring.data.dataset import to_dataset
from shoestring.surrogate.belief import fit_belief
from tests.problems import belief_of, bowl, mixed_space, mixed_value, plane, told_study


def test_the_incumbent_is_the_lowest_mean_at_a_point_that_was_evaluated():
    belief, encoding, seen = belief_of(told_study(plane(), bowl, 15))
    assert belief.incumbent == pytest.approx(belief.fit.posterior.mean_at(encoding.features(seen.U)).min())


def test_pending_trials_count_as_one_deviation_worse_than_expected_each_given_those_before_it():
    study = told_study(plane(), bowl, 15)
    before, encoding, _ = belief_of(study)
    waiting = [study.ask(), study.ask(), study.ask()]
    after, _, seen = belief_of(study)
    Z = encoding.features(np.array([study.space.encode(trial.config) for trial in waiting]))
    one_by_one = before.objective
    for row in Z:
        mean, variance = one_by_one.mean_and_variance(row[None, :])
        one_by_one = one_by_one.condition(row[None, :], mean + np.sqrt(variance + one_by_one.noise))
    X = encoding.features(np.random.default_rng(0).random((20, 2)))
    assert len(seen.pending) == 3
    np.testing.assert_allclose(after.objective.mean_at(X), one_by_one.mean_at(X), rtol=1e-6, atol=1e-8)
    assert (after.objective.mean_and_variance(Z)[1] < before.objective.mean_and_variance(Z)[1]).all()
    assert after.incumbent == before.incumbent


def test_where_trials_fail_the_probability_of_success_is_low():
    study = told_study(plane(), bowl, 40, error_where=lambda config: config["x0"] > 0.7)
    belief, encoding, seen = belief_of(study)
    assert len(seen.failed) > 5
    good, bad = np.exp(belief.feasibility.log_probability(encoding.features(np.array([[0.2, 0.5], [0.95, 0.5]]))))
    assert good > 0.8
    assert bad < 0.3


def test_without_failures_there_is_no_model_of_them():
    assert belief_of(told_study(plane(), bowl, 8))[0].feasibility is None


@pytest.mark.parametrize(
    ("value", "kind"),
    [(lambda c: np.exp(8 * c["x0"] + 3 * c["x1"]), "log"), (lambda c: 5 + c["x0"] - c["x1"] ** 2, "standard")],
)
def test_the_output_transform_that_fits_better_is_chosen(value, kind):
    belief, *_ = belief_of(told_study(plane(), lambda config: float(value(config)), 30))
    assert belief.output.kind == kind


@pytest.mark.parametrize("huge", [1e30, 1e300])
def test_one_huge_value_does_not_hide_that_values_spread_over_orders_of_magnitude(huge):
    study = told_study(plane(), lambda config: float(np.exp(8 * config["x0"] + 3 * config["x1"])), 30)
    study.add({"x0": 1.0, "x1": 1.0}, huge)
    assert belief_of(study)[0].output.kind != "standard"


def test_values_that_are_not_positive_are_never_logged():
    study = told_study(plane(), lambda config: config["x0"] - 0.5, 12)
    for output in ("auto", "log", "standard"):
        assert belief_of(study, st.GP(output=output))[0].output.kind == "standard"


@pytest.mark.parametrize("output", ["standard", "log"])
def test_the_wanted_output_transform_is_used(output):
    study = told_study(plane(), lambda config: 1 + config["x0"], 12)
    assert belief_of(study, st.GP(output=output))[0].output.kind == output


def test_what_is_known_is_plain_json_and_the_next_fit_starts_from_it():
    study = told_study(mixed_space(), mixed_value, 20)
    belief, encoding, seen = belief_of(study)
    known = belief.to_warm_start(20)
    assert {type(value) for value in known["theta"]} == {float}
    again = fit_belief(seen, encoding, st.GP(), known)
    assert again.fit.evaluations < belief.fit.evaluations
    assert again.fit.log_likelihood >= belief.fit.log_likelihood - 1e-6


def test_low_fidelity_values_are_not_the_ones_to_beat():
    space = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 9))
    study = st.Study(space)
    for x in np.linspace(0, 1, 6):
        study.add({"x": x, "epochs": 1}, x - 5)
        study.add({"x": x}, x + 5)
    belief, *_ = belief_of(study)
    assert belief.output.inverse(np.array(belief.incumbent)) == pytest.approx(5, abs=1)


def test_one_observation_is_enough_for_a_belief():
    study = st.Study(plane())
    study.add({"x0": 0.5, "x1": 0.5}, 3.0)
    belief, encoding, _ = belief_of(study)
    mean, variance = belief.objective.mean_and_variance(encoding.features(np.random.default_rng(0).random((5, 2))))
    assert np.isfinite(mean).all()
    assert (variance > 0).all()


def test_the_order_of_the_parameters_does_not_change_what_is_believed():
    space = mixed_space()
    turned = st.Space({name: space[name] for name in reversed(space.names)})
    study, other = told_study(space, mixed_value, 20), st.Study(turned)
    for trial in study.history:
        other.add(trial.config, trial.value, cost=1.0)
    (belief, encoding, _), (again, encoding_again, _) = belief_of(study), belief_of(other)
    configs = [space.decode(u) for u in np.random.default_rng(1).random((20, len(space)))]
    mean = belief.objective.mean_at(encoding.features(np.array([space.encode(config) for config in configs])))
    turned_mean = again.objective.mean_at(encoding_again.features(np.array([turned.encode(config) for config in configs])))
    assert belief.output.kind == again.output.kind
    np.testing.assert_allclose(mean, turned_mean, atol=0.02)


def test_observations_are_signed_so_that_lower_is_better():
    up, down = (st.Study(plane(1), direction=direction) for direction in ("maximize", "minimize"))
    for x in (0.1, 0.6):
        up.add({"x0": x}, x)
        down.add({"x0": x}, -x)
    seen = [to_dataset(study.history) for study in (up, down)]
    np.testing.assert_array_equal(seen[0].y, seen[1].y)
    np.testing.assert_array_equal(seen[0].order, [1, 0])


@pytest.mark.parametrize("model", [st.GP(), st.GP(inference="mcmc", sets=2)], ids=["map", "mcmc"])
def test_a_stored_warm_start_with_the_old_name_of_yeo_johnson_is_the_same_warm_start(model):
    """Studies from before the rename say "bent"."""
    _, encoding, seen = belief_of(told_study(plane(), bowl, 12))
    known = fit_belief(seen, encoding, st.GP(output="yeo-johnson", inference=model.inference, sets=2), None).to_warm_start(12)
    assert known["output"] == "yeo-johnson"
    new, old = (fit_belief(seen, encoding, model, known | {"output": name}) for name in ("yeo-johnson", "bent"))
    assert old.output.kind == new.output.kind == "yeo-johnson"
    np.testing.assert_array_equal(old.fit.theta, new.fit.theta)
    for one, other in zip(old.samples, new.samples, strict=True):
        np.testing.assert_array_equal(one.fit.theta, other.fit.theta)
