"""The data of the look-ahead plot."""

import math

import numpy as np
import pytest

import shoestring as st
from shoestring.report.plot import lookahead_data as slices
from shoestring.report.plot.lookahead_data import surrogate_slice
from tests.problems import bowl, mixed_space, mixed_value, plane, told_study

LINE = st.Space(x=st.Float(0, 3))
PLACES = (0.1, 0.7, 1.25, 2.1, 2.8)


@pytest.fixture(autouse=True)
def fewer_draws(monkeypatch):
    monkeypatch.setattr(slices, "PMIN_DRAWS", 4_096)


def wave(x):
    return math.sin(3 * x) + 0.3 * x + 0.6 * math.cos(7 * x)


def waves(sign=1.0, **options):
    """A study of the wave at five places, its values as they are."""
    study = st.Study(LINE, model=options.pop("model", st.GP(output="standard")), initial=1, **options)
    for x in PLACES:
        study.add({"x": x}, sign * wave(x), cost=1.0)
    return study


def slice_of(study, **options):
    return surrogate_slice(study.context, **options)


def nearest(found, x):
    return int(np.argmin(np.abs(found.x - x)))


def test_p_min_is_a_distribution_and_an_observation_lowers_its_entropy():
    found = slice_of(waves())
    for view in (found.now, found.then):
        assert view.p_min.min() >= 0.0
        assert view.p_min.sum() == pytest.approx(1.0)
    assert found.then.entropy < found.now.entropy - 0.3


def test_p_min_is_concentrated_at_the_minimum_of_a_well_known_function():
    found = slice_of(told_study(plane(1), bowl, 25), method=st.EI())
    near = np.abs(found.x - 0.3) < 0.03
    assert found.now.p_min[near].sum() > 0.99
    assert found.x[found.now.lowest] == pytest.approx(0.3, abs=0.01)


def test_p_min_is_that_of_joint_draws():
    study = waves()
    found = slice_of(study, method=st.EI())
    belief = study.context.belief(costs=False)
    Z = belief.encoding.features(study.space["x"].to_unit(found.x)[:, None])
    mean, covariance = belief.objective.mean_at(Z), belief.objective.covariance(Z)
    draws = np.random.default_rng(1).multivariate_normal(mean, covariance, 4_096, method="eigh", check_valid="ignore")
    counted = np.bincount(np.argmin(draws, axis=1), minlength=len(Z)) / len(draws)
    assert np.abs(np.cumsum(counted) - np.cumsum(found.now.p_min)).max() < 0.04  # 4096 draws each: 0.03 is rarely exceeded


def test_the_look_ahead_passes_through_the_imagined_observation():
    found = slice_of(waves(), at={"x": 1.8}, outcome=-2.0)
    here = nearest(found, 1.8)
    assert found.outcome == -2.0
    assert found.then.mean[here] == pytest.approx(-2.0, abs=0.05)
    assert found.now.mean[here] > -1.0
    assert found.then.mean[found.then.lowest] < found.now.mean[found.now.lowest] - 0.5
    width_now, width_then = found.now.high - found.now.low, found.then.high - found.then.low
    assert (width_then <= width_now + 1e-9).all()  # one more observation never makes it less certain
    assert width_then[here] < 0.2 * width_now[here]


def test_what_is_known_is_passed_through_now_and_then():
    found = slice_of(waves())
    for x in PLACES:
        for view in (found.now, found.then):
            assert view.mean[nearest(found, x)] == pytest.approx(wave(x), abs=0.15)


def test_by_default_it_imagines_one_deviation_better_where_the_first_acquisition_is_highest():
    for acquisition in (st.EI(), st.KG()):
        found = slice_of(waves(), method=[acquisition, st.PI()])
        here = int(np.argmax(found.acquisitions[type(acquisition).__name__]))
        assert found.at == {"x": pytest.approx(found.x[here])}
        deviation = (found.now.high[here] - found.now.low[here]) / 4
        assert found.outcome == pytest.approx(found.now.mean[here] - deviation, rel=1e-6)


@pytest.mark.parametrize(("method", "near"), [(st.EI(), 0.02), (st.PI(), 0.02), (st.KG(), 0.06), (st.ES(), 0.1)], ids=repr)
def test_an_acquisition_is_highest_where_its_method_would_go(method, near):
    study = waves(method=method)
    curve = slice_of(study, method=method).acquisitions[type(method).__name__]
    assert curve.max() == 1.0
    assert curve.min() >= 0.0
    assert slice_of(study).x[np.argmax(curve)] == pytest.approx(study.ask().config["x"], abs=near)


def test_curves_are_named_and_two_of_the_same_kind_have_different_names():
    assert list(slice_of(waves()).acquisitions) == ["EI", "KG", "ES"]
    assert list(slice_of(waves(), method=st.MES()).acquisitions) == ["MES"]
    found = slice_of(waves(), method=(st.LCB(1.0), st.LCB(9.0), st.EIpu()))
    assert list(found.acquisitions) == ["LCB(beta=1.0)", "LCB(beta=9.0)", "EIpu"]
    assert all(curve.max() == 1.0 for curve in found.acquisitions.values())


def test_maximize_gives_the_same_plot_mirrored():
    down = slice_of(waves(), method=st.EI())
    up = slice_of(waves(sign=-1.0, direction="maximize"), method=st.EI())
    np.testing.assert_allclose(up.now.mean, -down.now.mean)
    np.testing.assert_allclose(up.then.high, -down.then.low)
    np.testing.assert_array_equal(up.now.p_min, down.now.p_min)
    assert up.outcome == pytest.approx(-down.outcome)
    assert up.now.lowest == down.now.lowest
    assert (up.now.low <= up.now.mean).all()
    assert sorted(up.done.values) == sorted(-wave(x) for x in PLACES)


def test_bands_go_through_the_transform_of_the_values():
    study = st.Study(LINE, model=st.GP(output="log"))
    for x in PLACES:
        study.add({"x": x}, math.exp(3 * wave(x)))
    found = slice_of(study, method=st.EI())
    assert (found.now.low > 0.0).all()
    np.testing.assert_allclose(found.now.low * found.now.high, found.now.mean**2, rtol=1e-6)  # symmetric in the logarithm
    with pytest.raises(st.OutcomeError, match="positive"):
        slice_of(study, outcome=-1.0)


def test_hyperparameters_are_averaged_over():
    study = waves(model=st.GP(output="standard", inference="mcmc", sets=4))
    found = slice_of(study, at={"x": 1.8}, outcome=-2.0, method=st.EI())
    belief = study.context.belief(costs=False)
    assert len(belief.samples) == 4
    U = study.space["x"].to_unit(found.x)[:, None]
    mean, variance = belief.moments(belief.encoding.features(U))
    np.testing.assert_allclose(found.now.mean, belief.output.inverse(mean), rtol=1e-8)
    np.testing.assert_allclose(found.now.high, belief.output.inverse(mean + 2 * np.sqrt(variance)), rtol=1e-8)
    assert found.then.mean[nearest(found, 1.8)] == pytest.approx(-2.0, abs=0.2)
    assert found.then.p_min.sum() == pytest.approx(1.0)


def test_failed_and_running_trials_are_there():
    study = waves()
    study.add({"x": 2.5}, error="out of memory")
    running = study.ask()
    found = slice_of(study, method=st.EI())
    assert found.failed.x.tolist() == pytest.approx([2.5])
    assert found.running.x.tolist() == pytest.approx([running.config["x"]])
    assert len(found.done.x) == 5
    assert found.now.high[nearest(found, running.config["x"])] < slice_of(waves()).now.high[nearest(found, running.config["x"])]


def test_nothing_finished_is_no_slice():
    study = st.Study(LINE)
    assert slice_of(study) is None
    study.add({"x": 1.0}, error="boom")
    assert slice_of(study) is None
    study.add({"x": 2.0}, 1.0)
    assert slice_of(study).now.p_min.sum() == pytest.approx(1.0)


# -- slices of larger spaces ---------------------------------------------------------------------------------------------


def test_a_slice_goes_through_the_recommended_config():
    study = told_study(mixed_space(), mixed_value, 30)
    best = study.recommend().config
    found = slice_of(study, method=st.EI())
    assert found.along == "rate"
    assert found.held == {name: value for name, value in best.items() if name != "rate"}
    np.testing.assert_allclose(np.diff(np.log(found.x)), math.log(1e3) / 200)  # a log scale is walked in logarithms
    value = found.now.mean[found.now.lowest]
    assert value == pytest.approx(study.recommend().value, abs=0.02)


def test_an_int_is_evaluated_at_each_value():
    found = slice_of(told_study(mixed_space(), mixed_value, 30), along="depth", method=st.EI())
    assert found.x.tolist() == [1, 2, 3, 4, 5, 6]
    assert isinstance(found.at["depth"], int)
    assert found.x[found.now.lowest] == 4


def test_only_trials_on_the_slice_are_inside():
    study = st.Study(st.Space(depth=st.Int(0, 4), x=st.Float(0, 1)))
    for k in range(15):
        study.add({"depth": k % 5, "x": k / 14}, (k % 5 - 2) ** 2 + (k / 14 - 0.5) ** 2)
    found = slice_of(study, along="x", method=st.EI())
    assert found.held == {"depth": 2}
    assert found.done.inside.tolist() == [k % 5 == 2 for k in range(15)]
    assert found.done.x.tolist() == pytest.approx([k / 14 for k in range(15)])


def test_trials_without_the_parameter_are_not_drawn():
    space = st.Space(kind=st.Choice("a", "b"), extra=st.Float(0, 1, when={"kind": "b"}))
    study = st.Study(space)
    for k in range(6):
        study.add({"kind": "b", "extra": k / 5}, (k / 5 - 0.4) ** 2)
        study.add({"kind": "a"}, 5.0)
    found = slice_of(study, method=st.EI())
    assert found.along == "extra"
    assert found.done.x.tolist() == pytest.approx([k / 5 for k in range(6)])
    assert found.done.inside.all()
    elsewhere = slice_of(study, method=st.EI(), at={"kind": "a"})  # what is not active there is not asked for
    assert elsewhere.at == {"kind": "a"}


def test_fidelities_are_at_their_target():
    study = st.Study(st.Space(epochs=st.Fidelity(1, 27, log=True), x=st.Float(0, 1)))
    for k in range(8):
        epochs = 27 if k % 2 else 3
        study.add({"epochs": epochs, "x": k / 7}, (k / 7 - 0.3) ** 2 + 1 / epochs)
    found = slice_of(study, method=st.EI())
    assert (found.along, found.held, found.at["epochs"]) == ("x", {"epochs": 27}, 27)
    assert found.done.inside.tolist() == [k % 2 == 1 for k in range(8)]
    assert slice_of(study, method=st.EI(), at={"x": 0.5, "epochs": 3}).at == {"epochs": 3, "x": 0.5}
