"""The model of learning curves: exact against a dense Gaussian process, gradients, odd curves, and the evidence for it."""

import time

import numpy as np
import pytest

from shoestring.surrogate import curves_posterior
from shoestring.surrogate.curves import MEAN_VARIANCE, CurveLayout, CurveLikelihood, Curves
from shoestring.surrogate.curves_posterior import (
    CurvePosterior,
    RunForecaster,
    curve_weights,
    fit_hyperparameters,
    robust_posterior,
)
from shoestring.surrogate.gp import GP
from tests.differences import gradient_of

GRID = np.arange(1, 11) / 10
LENGTHS = (10, 3, 1, 7, 2, 10, 5)
GROUPS = np.array([0, 1, 1])


def small_problem(seed=0):
    """Seven curves: long and short ones, one of a single point, and one on a grid of its own."""
    rng = np.random.default_rng(seed)
    times = [GRID[:length] for length in LENGTHS]
    times[3] = np.array([0.15, 0.3, 0.5, 0.55, 0.7, 0.9, 1.0])
    values = [rng.standard_normal(len(t)) + 2 / (1 + 10 * t) for t in times]
    curves, layout = Curves.of(rng.random((7, 3)), times, values), CurveLayout(GROUPS)
    theta = layout.centre + 0.3 * rng.standard_normal(len(layout.centre))
    return curves, layout, theta, rng.uniform(0.5, 3, 7)


class Dense:
    """The same model with the covariances of all points written out."""

    def __init__(self, curves, layout, theta, kappa):
        self.layout, self.theta, self.kappa = layout, theta, kappa
        self.own = np.repeat(np.arange(len(curves)), curves.lengths)
        self.Z, self.t, self.y = curves.Z[self.own], np.concatenate(curves.times), np.concatenate(curves.values)
        noise = layout.shape(theta).noise * kappa[self.own]
        self.K = self.prior(self.Z, self.t, self.own, self.Z, self.t, self.own) + np.diag(noise)

    def prior(self, Za, ta, a, Zb, tb, b):
        shape = self.layout.shape(self.theta)
        P, Q = shape.basis(ta), shape.basis(tb)
        total = np.zeros((len(ta), len(tb)))
        for column, kernel in enumerate(self.layout.kernels(self.theta)):
            k = kernel.covariance(kernel.scale(Za), kernel.scale(Zb)) + MEAN_VARIANCE[column]
            total += P[:, [column]] * k * Q[:, column]
        scale = np.array([self.kappa[each] if each >= 0 else 1.0 for each in a])
        return total + (a[:, None] == b) * shape.covariance(ta, tb) * scale[:, None]

    def log_likelihood(self):
        _, log_det = np.linalg.slogdet(2 * np.pi * self.K)
        return -0.5 * (self.y @ np.linalg.solve(self.K, self.y) + log_det)

    def posterior(self, Z, t, own, rows=slice(None)):
        k = self.prior(Z, t, own, self.Z, self.t, self.own)[:, rows]
        K, y = self.K[rows][:, rows], self.y[rows]
        return k @ np.linalg.solve(K, y), self.prior(Z, t, own, Z, t, own) - k @ np.linalg.solve(K, k.T)


def test_the_likelihood_is_that_of_a_dense_gaussian_process():
    curves, layout, theta, kappa = small_problem()
    found = CurveLikelihood(curves, layout, kappa).value(theta)
    expected = Dense(curves, layout, theta, kappa).log_likelihood() + layout.log_prior(theta)[0]
    assert found == pytest.approx(expected, rel=1e-9)


def test_its_gradient_is_that_of_finite_differences():
    curves, layout, theta, kappa = small_problem()
    likelihood = CurveLikelihood(curves, layout, kappa)
    _, gradient = likelihood(theta)
    np.testing.assert_allclose(gradient, gradient_of(likelihood.value, theta), rtol=1e-5, atol=1e-5)


def test_curves_on_one_grid_share_their_factor():
    curves, *_ = small_problem()
    assert len(curves.chains) == 2
    assert sorted(len(chain.rows) for chain in curves.chains) == [1, 6]


def test_predictions_of_started_and_new_runs_are_those_of_a_dense_gaussian_process():
    curves, layout, theta, kappa = small_problem()
    posterior, dense = CurvePosterior.given(curves, layout, theta, kappa), Dense(curves, layout, theta, kappa)
    new = np.random.default_rng(5).random((2, 3))
    rows, t = np.array([1, 1, 3, 5]), np.array([0.8, 1.0, 1.0, 1.0])
    started, fresh = posterior.started(rows, t), posterior.new(new, 0.7)
    mean, covariance = dense.posterior(np.vstack([curves.Z[rows], new]), np.append(t, [0.7, 0.7]), np.append(rows, [-1, -2]))
    found = [posterior.mean_and_variance(each) for each in (started, fresh)]
    np.testing.assert_allclose(np.concatenate([m for m, _ in found]), mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(np.concatenate([v for _, v in found]), np.diag(covariance), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(posterior.covariance(started, fresh), covariance[:4, 4:], rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(posterior.covariance(started, started), covariance[:4, :4], rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(posterior.covariance(fresh, fresh), covariance[4:, 4:], rtol=1e-7, atol=1e-10)


def test_a_curve_that_is_left_out_is_predicted_as_if_it_had_never_been_there():
    curves, layout, theta, kappa = small_problem()
    posterior, dense = CurvePosterior.given(curves, layout, theta, kappa), Dense(curves, layout, theta, kappa)
    densities = posterior.leave_curve_out()
    for row in range(len(curves)):
        last = np.flatnonzero(dense.own == row)[-1:]
        mean, covariance = dense.posterior(dense.Z[last], dense.t[last], dense.own[last], dense.own != row)
        variance = covariance[0, 0] + layout.shape(theta).noise * kappa[row]
        expected = -0.5 * ((dense.y[last] - mean) ** 2 / variance + np.log(2 * np.pi * variance))
        assert densities[row] == pytest.approx(float(expected[0]), rel=1e-7)


def test_one_running_curve_is_updated_as_if_all_were_fitted_again(monkeypatch):
    monkeypatch.setattr(curves_posterior, "DEGREES_OF_FREEDOM", 1e9)  # no kappa for the running curve
    curves, layout, theta, _ = small_problem()
    others = CurvePosterior.given(curves.select(np.array([0, 1, 2, 4, 5, 6])), layout, theta)
    whole = CurvePosterior.given(curves, layout, theta)
    mean, covariance = others.parts_at(curves.Z[[3]])
    forecaster = RunForecaster(layout.shape(theta), mean[0], covariance[0])
    found = forecaster.at(curves.times[3], curves.values[3])
    expected = whole.mean_and_variance(whole.started(np.array([3])))
    assert found == pytest.approx((expected[0][0], expected[1][0]), rel=1e-6)
    before = others.mean_and_variance(others.new(curves.Z[[3]]))
    assert forecaster.at((), ()) == pytest.approx((before[0][0], before[1][0]), rel=1e-9)


def decaying(n=24, seed=0, noise=0.01):
    """Curves that fall to a value which depends on the configuration; every third stops early."""
    rng = np.random.default_rng(seed)
    t, Z = np.arange(1, 31) / 30, rng.random((n, 2))
    ends = 3 * (Z[:, 0] - 0.4) ** 2 + Z[:, 1]
    Y = ends[:, None] + (0.5 + Z[:, [1]]) * (0.1 / (t + 0.1)) + noise * rng.standard_normal((n, 30))
    return Z, t, (Y - ends.mean()) / ends.std(), [30 if i % 3 else 8 for i in range(n)]


def fitted(Z, t, Y, lengths):
    curves = Curves.of(Z, [t[:k] for k in lengths], [y[:k] for y, k in zip(Y, lengths, strict=True)])
    _, theta = fit_hyperparameters(curves, np.arange(2))
    return robust_posterior(curves, CurveLayout(np.arange(2)), theta)


def test_the_end_of_a_short_curve_is_predicted_with_honest_deviations():
    Z, t, Y, lengths = decaying()
    posterior = fitted(Z, t, Y, lengths)
    short = np.flatnonzero(np.array(lengths) == 8)
    mean, variance = posterior.mean_and_variance(posterior.started(short))
    off = (Y[short, -1] - mean) / np.sqrt(variance + posterior.shape.noise)
    assert np.abs(Y[short, -1] - mean).max() < 0.15  # of values with deviation 1, of curves that fall by 1 after that
    assert np.sqrt(np.mean(off**2)) < 2.0


def test_curves_that_diverge_jump_or_rise_do_not_change_what_is_said_of_the_others():
    Z, t, Y, lengths = decaying()
    rng = np.random.default_rng(1)
    odd = Y.copy()
    odd[1] = np.minimum(Y[1] + np.exp(8 * t) / 50, 4.0)  # diverges, and is capped by the output transform
    odd[4, 10:] += 2.0  # jumps
    odd[7] += rng.standard_normal(30)  # goes up and down
    kept = np.setdiff1d(np.arange(len(Z)), [1, 4, 7])
    short = np.array([i for i in kept if lengths[i] == 8])
    posterior = fitted(Z, t, odd, lengths)
    assert posterior.kappa[[1, 4, 7]].min() > 2 * np.median(posterior.kappa)
    mean, _ = posterior.mean_and_variance(posterior.started(short))
    assert np.abs(Y[short, -1] - mean).max() < 0.3


def test_a_curve_unlike_the_others_has_less_weight():
    Z, t, Y, lengths = decaying()
    Y[4, 10:] += 2.0
    curves = Curves.of(Z, [t[:k] for k in lengths], [y[:k] for y, k in zip(Y, lengths, strict=True)])
    layout = CurveLayout(np.arange(2))
    weights = curve_weights(CurvePosterior.given(curves, layout, layout.centre))
    assert weights.argmax() == 4


def test_hyperparameters_of_a_fit_are_a_start_for_the_next():
    Z, t, Y, lengths = decaying(12)
    curves = Curves.of(Z, [t[:k] for k in lengths], [y[:k] for y, k in zip(Y, lengths, strict=True)])
    value, theta = fit_hyperparameters(curves, np.arange(2))
    again, _ = fit_hyperparameters(curves, np.arange(2), start=theta)
    assert again > value - 1.0


@pytest.mark.slow
def test_200_curves_of_50_points_cost_no_more_than_300_trials():
    rng = np.random.default_rng(0)
    t, Z = np.arange(1, 51) / 50, rng.random((200, 4))
    Y = (Z.sum(axis=1) - 2)[:, None] + 0.3 / (t + 0.1) + 0.05 * rng.standard_normal((200, 50))
    curves = Curves.of(Z, [t] * 200, list(Y))

    def with_curves():
        _, theta = fit_hyperparameters(curves, np.arange(4))
        robust_posterior(curves, CurveLayout(np.arange(4)), theta)

    points = rng.random((300, 4))
    values = points.sum(axis=1) - 2 + 0.05 * rng.standard_normal(300)

    def seconds(call):
        times = []
        for _ in range(3):
            began = time.process_time()
            call()
            times.append(time.process_time() - began)
        return min(times)

    assert seconds(with_curves) < 1.5 * seconds(lambda: GP().fit(points, values)) + 0.1
