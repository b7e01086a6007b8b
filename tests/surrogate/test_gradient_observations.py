"""Gradients that are reported to a study: the gradients of the model in the user's units, and what uses them."""

import numpy as np
import pytest

import shoestring as st
from shoestring.data.dataset import to_dataset
from shoestring.space.encoding import Encoding
from shoestring.surrogate.belief import fit_belief
from shoestring.surrogate.gradient_data import GradientData
from shoestring.surrogate.output_transform import KINDS, OutputTransform
from tests.gradient_problems import SCALES, mixed_gradient, scales_gradient, scales_value, study_with_gradients
from tests.problems import belief_of, bowl, mixed_space, mixed_value, plane

each_direction = pytest.mark.parametrize("direction", ["minimize", "maximize"])
EXACT = 0.01  # of the deviation of the gradients: how far those of the model may be from the reported ones


def scales_study(count=14, **options):
    return study_with_gradients(SCALES, scales_value, scales_gradient, count, **options)


def gradients_of_the_model(posterior, belief, study, step=1e-5):
    """d prediction / d u in the user's units at each finished trial by differences: of the model, and reported."""
    encoding, seen = belief.encoding, to_dataset(study.log)

    def predicted(U):
        return seen.sign * belief.output.inverse(posterior.mean_at(encoding.features(U)))

    pairs = []
    for row, j in zip(*np.nonzero(np.isfinite(seen.gradients)), strict=True):
        move = step * np.eye(len(study.space))[j]
        ahead, behind = predicted(np.array([seen.U[row] + move, seen.U[row] - move]))
        trial, name = study.history.having(st.State.DONE)[row], study.space.names[j]
        pairs.append([(ahead - behind) / (2 * step), trial.gradient[name] * study.space[name].derivative(trial.config[name])])
    return np.array(pairs).T


def assert_reported(posterior, belief, study, within=EXACT):
    found, told = gradients_of_the_model(posterior, belief, study)
    assert len(told) > 10
    np.testing.assert_allclose(found, told, atol=within * told.std())


@pytest.mark.parametrize("kind", KINDS)
@each_direction
def test_the_models_gradients_are_the_reported_ones_on_every_scale_and_for_every_output(kind, direction):
    if (kind, direction) == ("log", "maximize"):
        pytest.skip("the negative of positive values has no logarithm")
    study = scales_study(direction=direction)
    belief, _, _ = belief_of(study, st.GP(output=kind))
    assert belief.output.kind == kind
    assert_reported(belief.objective, belief, study)


@pytest.mark.parametrize("kind", KINDS)
def test_the_derivatives_of_an_output_are_those_of_differences(kind):
    y = np.concatenate([np.linspace(0.1, 3, 30), [50.0]])
    output, step = OutputTransform.of(y, kind), 1e-6
    found = output.derivatives(y)
    expected = (output.forward(y + step) - output.forward(y - step)) / (2 * step)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    assert (found[-1] == 0.0) == (kind == "standard")  # above the cap, where it is only known to be bad


def test_a_value_above_the_cap_has_no_gradient():
    study = scales_study()
    study.add({"rate": 0.01, "width": 0.0, "depth": 2}, 1e6, gradient={"width": 1e6, "rate": -1e9})
    belief, encoding, seen = belief_of(study, st.GP(output="standard"))
    assert 14 not in GradientData.of(seen, encoding, belief.output).rows
    earlier = st.Study(SCALES)
    for trial in study.history[:14]:
        earlier.add(trial.config, trial.value, gradient=trial.gradient)
    assert_reported(belief.objective, belief, earlier, within=0.05)


def test_some_trials_report_gradients_and_some_do_not():
    study = scales_study(reported_where=lambda number: number % 3 == 0)
    belief, encoding, seen = belief_of(study, st.GP(output="standard"))
    gradients = GradientData.of(seen, encoding, belief.output)
    assert sorted(set(gradients.rows)) == [0, 3, 6, 9, 12]
    assert len(belief.objective.basis) == 14 + 15
    assert_reported(belief.objective, belief, study)
    assert len(belief.gradient_columns) == 0  # the next one will probably not
    assert len(belief_of(scales_study(reported_where=lambda number: number % 3))[0].gradient_columns) == 3


@pytest.mark.parametrize("inference", ["map", pytest.param("mcmc", marks=pytest.mark.slow)])
def test_a_mixed_and_conditional_space(inference):
    study = study_with_gradients(mixed_space(), mixed_value, mixed_gradient, 20)
    model = st.GP(output="standard", inference=inference, sets=2)
    belief, encoding, _ = belief_of(study, model)
    assert belief.fit.theta.shape == (len(mixed_space()) + 3,)
    assert len(belief.samples) == (2 if inference == "mcmc" else 1)
    for each in belief.samples:
        assert_reported(each.objective, belief, study, within=0.1)
    told = {name for trial in study.history for name in trial.gradient or ()}
    names = {study.space.names[j] for j in encoding.groups[belief.gradient_columns]}
    assert names == told  # of a parameter that is not always active too
    assert belief.gradient_noise_share == pytest.approx(np.exp(belief.fit.theta[-1]))


@each_direction
def test_failed_and_pending_trials(direction):
    study = scales_study(direction=direction, method=st.EI(), fails=lambda config: config["width"] > 4.5)
    assert len(study.history.having(st.State.FAILED)) > 1
    running = [study.ask() for _ in range(2)]
    belief, encoding, _ = belief_of(study, st.GP(output="standard"))
    assert_reported(belief.fit.posterior, belief, study)
    assert_reported(belief.without_pending, belief, study, within=0.1)
    waiting = encoding.features(np.array([SCALES.encode(trial.config) for trial in running]))
    np.testing.assert_array_equal(belief.pending, waiting)
    assert (belief.objective.mean_and_variance(waiting)[1] < belief.without_pending.mean_and_variance(waiting)[1]).all()


def test_maximizing_is_minimizing_upside_down():
    model = st.GP(output="standard")
    down, up = (scales_study(direction=direction, method=st.EI(), model=model) for direction in ("minimize", "maximize"))
    assert [down.ask().config for _ in range(2)] == [up.ask().config for _ in range(2)]


def next_after_three_values(slope):
    """Nearly equal values on a line, the one in the middle perhaps with a gradient."""
    study = st.Study(plane(1), st.EI(), seed=0, initial=3)
    for x in (0.1, 0.5, 0.9):
        study.add({"x0": x}, 1.0 + 0.05 * x, gradient={"x0": slope} if slope and x == 0.5 else None, cost=1.0)
    return study.ask().config["x0"]


def test_a_gradient_changes_what_is_suggested():
    """Where the values alone point to the left end, a descent to one side of the middle is followed."""
    assert next_after_three_values(None) < 0.1
    assert 0.5 < next_after_three_values(-2.0) < 0.7
    assert 0.3 < next_after_three_values(2.0) < 0.5


def test_a_suggestion_and_the_belief_have_one_posterior():
    study = scales_study(method=st.EI())
    known = study.ask().suggestion
    belief, encoding, _ = belief_of(scales_study())
    z = encoding.features(np.array([SCALES.encode(study.history[-1].config)]))
    assert known["predicted"] == pytest.approx(float(belief.output.inverse(belief.objective.mean_at(z))[0]), rel=1e-6)
    assert known["model"]["theta"] == pytest.approx(belief.fit.theta.tolist())


@pytest.mark.slow
def test_recommendation_and_bound_on_the_regret_are_better_with_gradients():
    lowest = min(scales_value({"rate": 10**-2.5, "width": width, "depth": 4}) for width in np.linspace(0, 3, 3001))
    for seed in range(2):
        bounds, off = [], []
        for told in (True, False):
            study = scales_study(count=30, seed=seed, reported_where=lambda number, told=told: told)
            bounds.append(st.RegretBound(after=5).bound(study.history).regret)
            off.append(scales_value(study.recommend().config) - lowest)
        regret = study.best.value - lowest
        assert regret <= bounds[0] < regret + 0.06 < bounds[1]
        assert off[0] < min(0.02, off[1])


@pytest.mark.parametrize("rule", [
    st.RegretBound(1e-3, after=5), st.EIBelow(1e-3, after=5), pytest.param(st.PIBelow(1e-3, after=5), marks=pytest.mark.slow),
], ids=repr)  # fmt: skip
def test_every_rule_that_has_a_model_stops_a_study_with_gradients(rule):
    def objective(config):
        return st.Outcome(bowl(config), cost=1.0, gradient={name: 2 * (x - 0.3) for name, x in config.items()})

    result = st.minimize(objective, plane(2), 40, method=st.EI(), stop=rule, seed=0, initial=5)
    assert result.stop.kind == "rule"
    assert bowl(result.recommended.config) < 1e-3


def test_a_fit_that_began_without_gradients_goes_on_with_them():
    """The hyperparameters of the last fit have no place for the noise of gradients."""
    study = scales_study(reported_where=lambda number: False)
    before, encoding, _ = belief_of(study)
    study.add({"rate": 1e-3, "width": 0.0, "depth": 3}, 1.0, gradient={"width": 0.1})
    after = fit_belief(to_dataset(study.log), encoding, st.GP(), before.to_warm_start(14))
    assert len(after.fit.theta) == len(before.fit.theta) + 1
    assert after.fit.note == ""


@pytest.mark.parametrize("wild", [1e3, 1e6, 1e200])
def test_one_derivative_that_cannot_be_true_does_not_spoil_the_model(wild):
    """Exploded gradients are common, and a value of 1e200 is accepted too."""
    study = scales_study()
    config = {"rate": 0.01, "width": 0.0, "depth": 2}
    study.add(config, scales_value(config), gradient={"width": wild})
    belief, encoding, _ = belief_of(study, st.GP(output="standard"))
    U = SCALES.snap(np.random.default_rng(1).random((200, 3)))
    truth = np.array([scales_value(SCALES.decode(u)) for u in U])
    predicted = belief.output.inverse(belief.objective.mean_at(encoding.features(U)))
    assert np.sqrt(np.mean((predicted - truth) ** 2)) < 0.5 * truth.std()


def test_gradients_that_are_never_usable_are_not_expected_of_the_next_trial():
    """All derivatives along the width are impossible, so only those along the rate are expected of a further trial."""
    study = study_with_gradients(SCALES, scales_value, lambda config: scales_gradient(config) | {"width": 1e30}, 14)
    belief, encoding, seen = belief_of(study, st.GP(output="standard"))
    assert set(GradientData.of(seen, encoding, belief.output).columns) == {0, 2}
    assert belief.gradient_columns.tolist() == [0, 2]
    study = study_with_gradients(SCALES, scales_value, lambda config: {"width": 1e30}, 14)
    assert belief_of(study, st.GP(output="standard"))[0].gradient_columns.tolist() == []


@pytest.mark.parametrize("warp", [False, True])
def test_axes_are_not_warped_where_gradients_are_reported(warp):
    study = scales_study()
    belief = fit_belief(to_dataset(study.log), Encoding(SCALES), st.GP(warp=warp, output="standard"), None)
    assert belief.objective.kernel.warp is None
    assert_reported(belief.objective, belief, study)
