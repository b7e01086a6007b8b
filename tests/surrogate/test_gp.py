import logging

import numpy as np
import pytest

import shoestring as st
from shoestring.surrogate.gradient_data import GradientData
from shoestring.surrogate.marginal_likelihood import Layout, MarginalLikelihood
from shoestring.surrogate.output_transform import OutputTransform
from shoestring.surrogate.posterior import Posterior
from shoestring.surrogate.subset import AutoSubset

RNG = np.random.default_rng(0)
NASTY = {
    "one observation": (np.full((1, 3), 0.5), np.zeros(1)),
    "two equal observations": (np.full((2, 3), 0.5), np.zeros(2)),
    "all duplicates, other values": (np.full((30, 2), 0.5), RNG.normal(size=30)),
    "near duplicates": (0.5 + 1e-10 * RNG.normal(size=(40, 2)), RNG.normal(size=40)),
    "constant": (RNG.random((20, 2)), np.zeros(20)),
    "tiny": (RNG.random((20, 2)), 1e-300 * RNG.normal(size=20)),
    "one spike": (RNG.random((20, 2)), np.eye(20)[3] * 4.3),
    "many rows, one column": (RNG.random((300, 1)), RNG.normal(size=300)),
    "many columns, few rows": (RNG.random((4, 40)), RNG.normal(size=4)),
    "constant columns": (np.column_stack([np.ones(15), np.zeros(15), RNG.random(15)]), RNG.normal(size=15)),
    "corners": (RNG.integers(0, 2, (25, 3)).astype(float), RNG.normal(size=25)),
}


@pytest.mark.parametrize("warp", [False, True])
@pytest.mark.parametrize("kernel", ["matern52", "se"])
@pytest.mark.parametrize("case", list(NASTY))
def test_a_fit_never_raises_and_its_posterior_is_finite(case, kernel, warp):
    Z, y = NASTY[case]
    fit = st.GP(kernel=kernel, warp=warp).fit(Z, y)
    mean, variance = fit.posterior.mean_and_variance(np.random.default_rng(1).random((10, Z.shape[1])))
    assert np.isfinite(mean).all()
    assert np.isfinite(variance).all()
    assert (variance > 0).all()
    assert np.isfinite(fit.log_likelihood)
    assert fit.note == ""


@pytest.mark.parametrize("y", [[1e300, 1.0, 2.0, 0.5, -3.0], [1e-300, 2e-300, 5e-300], [5.0, 5.0, 5.0], [-1e300, 1e300, 0.0]])
def test_values_of_any_size_can_be_fitted_once_standardised(y):
    y = np.array(y)
    Z = np.linspace(0, 1, len(y))[:, None]
    output = OutputTransform.of(y)
    mean, variance = st.GP().fit(Z, output.forward(y)).posterior.mean_and_variance(Z)
    assert np.isfinite(output.inverse(mean)).all()
    assert np.isfinite(variance).all()


@pytest.mark.parametrize("warp", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_a_warm_start_ends_no_lower_than_it_began(seed, warp):
    rng = np.random.default_rng(seed)
    Z = rng.random((25, 2))
    y = np.sin(6 * Z[:, 0]) + Z[:, 1] ** 2 + 0.05 * rng.normal(size=25)
    y = (y - y.mean()) / y.std()
    layout = Layout(np.arange(2), warp)
    start = layout.clip(layout.centre + rng.normal(size=layout.size))
    began = MarginalLikelihood(Z, y, layout, "matern52")(start)[0]
    fit = st.GP(warp=warp).fit(Z, y, start=start)
    assert fit.log_likelihood >= began
    assert fit.log_likelihood == pytest.approx(MarginalLikelihood(Z, y, layout, "matern52")(fit.theta)[0])


def test_a_cold_restart_can_only_help():
    rng = np.random.default_rng(3)
    Z = rng.random((20, 2))
    y = np.sin(9 * Z[:, 0])
    y = (y - y.mean()) / y.std()
    layout = Layout(np.arange(2))
    poor = np.array([bounds[1] for bounds in layout.bounds])
    assert st.GP().fit(Z, y, start=poor, cold=True).log_likelihood >= st.GP().fit(Z, y, start=poor, cold=False).log_likelihood


def test_a_start_of_another_model_is_ignored():
    Z, y = NASTY["corners"]
    assert st.GP().fit(Z, y, start=np.zeros(17)).log_likelihood == st.GP().fit(Z, y).log_likelihood


def test_a_fit_that_fails_keeps_the_last_hyperparameters_and_says_so(monkeypatch, caplog):
    monkeypatch.setattr(MarginalLikelihood, "__call__", lambda self, theta: (-np.inf, np.zeros_like(theta)))
    Z, y = NASTY["corners"]
    start = Layout(np.arange(3)).centre + 0.1
    with caplog.at_level(logging.WARNING, "shoestring"):
        warm, cold = st.GP().fit(Z, y, start=start), st.GP().fit(Z, y)
    np.testing.assert_allclose(warm.theta, start)
    np.testing.assert_allclose(cold.theta, Layout(np.arange(3)).centre)
    assert "last good" in warm.note
    assert "prior" in cold.note
    assert caplog.text.count("fit failed") == 2
    assert np.isfinite(warm.posterior.mean_at(Z)).all()


def test_a_start_that_is_not_finite_falls_back_to_the_prior():
    Z, y = NASTY["corners"]
    fit = st.GP().fit(Z, y, start=np.full(5, np.nan))
    assert np.isfinite(fit.theta).all()
    assert np.isfinite(fit.posterior.mean_at(Z)).all()


def test_one_length_scale_for_the_columns_of_a_choice():
    rng = np.random.default_rng(4)
    Z = np.column_stack([rng.random(20), np.eye(3)[rng.integers(3, size=20)] * np.sqrt(0.5)])
    fit = st.GP().fit(Z, rng.normal(size=20), np.array([0, 1, 1, 1]))
    assert len(fit.theta) == 4
    assert len(set(fit.posterior.kernel.inverse_lengths[1:])) == 1


def test_a_fit_finds_what_the_data_show():
    rng = np.random.default_rng(5)
    Z = rng.random((60, 2))
    y = np.sin(8 * Z[:, 0])  # the second column does not matter
    y = (y - y.mean()) / y.std()
    fit = st.GP().fit(Z, y)
    lengths = 1 / fit.posterior.kernel.inverse_lengths
    assert lengths[1] > 3 * lengths[0]
    X = rng.random((50, 2))
    truth = (np.sin(8 * X[:, 0]) - np.sin(8 * Z[:, 0]).mean()) / np.sin(8 * Z[:, 0]).std()
    assert np.abs(fit.posterior.mean_at(X) - truth).max() < 0.2


def test_the_same_data_give_the_same_fit_to_the_last_bit():
    Z, y = NASTY["corners"]
    np.testing.assert_array_equal(st.GP().fit(Z, y).theta, st.GP().fit(Z, y).theta)


@pytest.mark.parametrize("wrong", [{"kernel": "rbf"}, {"kernel": None}, {"output": "sqrt"}, {"inference": "guess"}])
def test_an_unknown_model_is_refused_and_the_known_ones_named(wrong):
    (field, value), = wrong.items()
    with pytest.raises(st.MethodError, match=field) as refused:
        st.GP(**wrong)
    assert repr(value) in str(refused.value)


@pytest.mark.parametrize("n", [30, 400], ids=["few", "hyperparameters of a subset"])
def test_a_fit_can_be_restricted_to_rows_with_its_hyperparameters(n):
    rng = np.random.default_rng(6)
    Z = rng.random((n, 2))
    y = np.sin(8 * Z[:, 0])
    fit, rows = st.GP(subset=AutoSubset()).fit(Z, y), np.arange(5, n)
    part = fit.restrict(rows)
    expected = Posterior.given(fit.posterior.kernel, fit.posterior.noise, Z[rows], y[rows])
    X = rng.random((4, 2))
    np.testing.assert_array_equal(part.mean_and_variance(X), expected.mean_and_variance(X))
    assert len(part) == n - 5


def test_a_fit_with_gradients_can_be_restricted_to_rows_with_and_without_them():
    rng = np.random.default_rng(7)
    Z, y = rng.random((12, 2)), rng.normal(size=12)
    gradients = GradientData(np.array([0, 1, 1]), np.array([0, 0, 1]), np.array([1.0, -1.0, 0.5]))
    fit = st.GP().fit(Z, y, gradients=gradients)
    assert len(fit.restrict(np.arange(1, 12)).basis) == 11 + 2
    assert len(fit.restrict(np.arange(2, 12)).basis) == 10
