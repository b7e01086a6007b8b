import numpy as np
import pytest

import shoestring as st
from shoestring.surrogate.output_transform import KINDS, OutputTransform, read_kind

each_kind = pytest.mark.parametrize("kind", KINDS)


def uncapped(output, y):
    return output.unscaled(y) <= output.cap


@each_kind
@pytest.mark.parametrize("scale", [1e-200, 1e-8, 1.0, 1e8, 1e200])
def test_inverse_undoes_forward_below_the_cap(kind, scale):
    y = scale * np.random.default_rng(0).lognormal(size=50)
    output = OutputTransform.of(y, kind)
    below = uncapped(output, y)
    assert below.sum() > 40
    np.testing.assert_allclose(output.inverse(output.forward(y))[below], y[below], rtol=1e-10)


@each_kind
def test_forward_gives_mean_zero_and_deviation_one(kind):
    y = np.random.default_rng(1).lognormal(size=200)
    t = OutputTransform.of(y, kind).forward(y)
    assert t.mean() == pytest.approx(0, abs=1e-12)
    assert t.std() == pytest.approx(1)


@pytest.mark.parametrize("kind", ["standard", "yeo-johnson"])
@pytest.mark.parametrize(("a", "b"), [(3.0, 0.0), (1e-9, 0.0), (1e12, 0.0), (2.5, -7.0), (1e6, 1e6)])
def test_values_are_invariant_to_an_affine_change(kind, a, b):
    y = np.random.default_rng(2).normal(size=60)
    changed = OutputTransform.of(a * y + b, kind).forward(a * y + b)
    np.testing.assert_allclose(changed, OutputTransform.of(y, kind).forward(y), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("a", [1e-30, 7.0, 1e30])
def test_log_values_are_invariant_to_a_factor(a):
    y = np.random.default_rng(3).lognormal(size=60)
    changed = OutputTransform.of(a * y, "log").forward(a * y)
    np.testing.assert_allclose(changed, OutputTransform.of(y, "log").forward(y), atol=1e-10)


@each_kind
@pytest.mark.parametrize("scale", [1e-12, 1.0])
@pytest.mark.parametrize("huge", [1e300, 1.7e308])
def test_one_huge_value_does_not_flatten_the_others(kind, huge, scale):
    y = np.append(scale * np.random.default_rng(4).lognormal(size=30), huge)
    output = OutputTransform.of(y, kind)
    t = output.forward(y)
    assert np.isfinite(t).all()
    assert t[:-1].std() > 0.5
    assert t[-1] >= t[:-1].max()
    below = uncapped(output, y)
    np.testing.assert_allclose(output.inverse(t)[below], y[below], rtol=1e-7)


@pytest.mark.parametrize("kind", ["standard", "yeo-johnson"])
def test_a_very_good_value_is_never_capped(kind):
    y = np.append(np.random.default_rng(5).normal(size=30), -1e6)
    output = OutputTransform.of(y, kind)
    assert output.inverse(output.forward(y))[-1] == pytest.approx(-1e6)
    assert output.forward(y)[-1] < output.forward(y)[:-1].min()


@each_kind
@pytest.mark.parametrize("value", [1e-300, 5.0, 1e300])
def test_constant_values_become_zero(kind, value):
    y = np.full(7, value)
    output = OutputTransform.of(y, kind)
    np.testing.assert_allclose(output.forward(y), 0.0, atol=1e-9)
    assert output.scale > 0
    np.testing.assert_allclose(output.inverse(np.zeros(2)), value, rtol=1e-9)


@pytest.mark.parametrize("kind", ["standard", "yeo-johnson"])
@pytest.mark.parametrize("y", [[-1e300, 1e300], [-1.7e308, 1.7e308, 0.0], [3.0], [0.0, 0.0, 0.0, 1e300]])
def test_extremes_stay_finite(y, kind):
    y = np.array(y)
    output = OutputTransform.of(y, kind)
    assert np.isfinite(output.forward(y)).all()
    assert np.isfinite([output.centre, output.scale, output.cap]).all()


@each_kind
def test_forward_keeps_the_order(kind):
    y = np.sort(np.random.default_rng(6).lognormal(sigma=3, size=80))
    assert (np.diff(OutputTransform.of(y, kind).forward(y)) >= 0).all()


@each_kind
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_log_jacobian_is_the_sum_of_log_derivatives(kind, scale):
    y = scale * np.random.default_rng(7).uniform(1, 3, size=12)
    output = OutputTransform.of(y, kind)
    step = 1e-5 * y
    slopes = (output.forward(y + step) - output.forward(y - step)) / (2 * step)
    assert (slopes > 0).all()
    assert output.log_jacobian(y) == pytest.approx(np.log(slopes).sum(), rel=1e-6)


@each_kind
@pytest.mark.parametrize(("mean", "deviation"), [(-1.0, 0.3), (0.0, 1.0), (-0.5, 1.5), (0.5, 0.7)])
def test_gain_is_the_mean_improvement_of_draws(kind, mean, deviation):
    rng = np.random.default_rng(8)
    y = rng.lognormal(size=40)
    output, best = OutputTransform.of(y, kind), -0.8
    draws = np.maximum(output.inverse(np.array(best)) - output.inverse(mean + deviation * rng.standard_normal(400_000)), 0)
    assert output.gain(mean, deviation, best) == pytest.approx(draws.mean(), rel=0.05, abs=4 * draws.std() / 600)


def test_gain_is_never_negative_and_grows_as_the_mean_falls():
    output = OutputTransform.of(np.random.default_rng(9).lognormal(size=40))
    gains = [output.gain(mean, 0.5, 0.0) for mean in np.linspace(4, -4, 30)]
    assert gains[0] >= 0
    assert (np.diff(gains) >= 0).all()
    assert gains[-1] == pytest.approx(4 * output.scale, rel=1e-6)


def test_the_old_name_of_yeo_johnson_is_still_read():
    assert read_kind("bent") == "yeo-johnson"
    assert [read_kind(kind) for kind in (*KINDS, "auto", None)] == [*KINDS, "auto", None]


@pytest.mark.parametrize("Model", [st.GP, st.VFE, st.FITC])
def test_a_model_with_the_old_name_is_the_model_with_the_new_name(Model):
    old, new = Model(output="bent"), Model(output="yeo-johnson")
    assert old == new
    assert repr(old) == repr(new)
    assert "yeo-johnson" in repr(new)
