"""Sparse models: where their inducing points are, and fits that never fail."""

import logging
import time

import numpy as np
import pytest

from shoestring.errors import MethodError
from shoestring.space.encoding import Encoding
from shoestring.surrogate.gp import GP, SAMPLE_ROWS
from shoestring.surrogate.marginal_likelihood import Layout
from shoestring.surrogate.sparse import FITC, INDUCING_POINTS, VFE, inducing_points, maximize_sparse_likelihood, movable_columns
from shoestring.surrogate.sparse_likelihood import SparseMarginalLikelihood
from shoestring.surrogate.subset import sample_by_rank
from tests.problems import mixed_space
from tests.surrogate.test_gp import NASTY

each_model = pytest.mark.parametrize("Sparse", [VFE, FITC])


def data(n, p=2, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.random((n, p))
    y = np.sin(4 * Z).sum(axis=1)
    return Z, (y - y.mean()) / y.std()


# -- inducing points -------------------------------------------------------------------------------------------------------


def test_inducing_points_are_different_data_points_the_best_among_them():
    Z, y = data(60, 3)
    Z, y = np.repeat(Z, 2, axis=0), np.repeat(y, 2)
    U = inducing_points(Z, Z, y, 20)
    assert len(np.unique(U, axis=0)) == len(U) == 20
    assert all((u == Z).all(axis=1).any() for u in U)
    for row in np.argsort(y, kind="stable")[:4]:
        assert (Z[row] == U).all(axis=1).any()
    np.testing.assert_array_equal(U, inducing_points(Z, Z, y, 20))
    assert len(inducing_points(Z[:6], Z[:6], y[:6], 20)) == 3  # no more than there are


def test_columns_of_choices_keep_the_values_of_data_points():
    encoding = Encoding(mixed_space())
    space = encoding.space
    Z = encoding.features(space.snap(np.random.default_rng(0).random((200, len(space)))))
    moves = movable_columns(Z, encoding.groups)
    kinds = ["rate", "depth", "kind", "kind", "kind", "extra", "mode", "deep"]
    assert [kind for kind, moved in zip(kinds, moves, strict=True) if moved] == ["rate", "depth", "extra", "deep"]
    y = Z @ np.random.default_rng(1).normal(size=Z.shape[1])
    layout = Layout(encoding.groups)
    likelihood = SparseMarginalLikelihood(Z, (y - y.mean()) / y.std(), layout, "matern52", "vfe")
    U = inducing_points(Z, Z, y, 12)
    began = likelihood.value(layout.centre, U)
    value, theta, moved = maximize_sparse_likelihood(likelihood, layout.centre, U, True)
    assert value > began
    assert value == pytest.approx(likelihood.value(theta, moved))
    np.testing.assert_array_equal(moved[:, ~moves], U[:, ~moves])
    assert (moved[:, moves] != U[:, moves]).any(axis=0).all()
    assert ((moved >= 0) & (moved <= 1)).all()
    np.testing.assert_array_equal(theta[: layout.count], layout.centre[: layout.count])  # held
    free, theta, _ = maximize_sparse_likelihood(likelihood, theta, moved, False)
    assert free > value
    assert (theta[: layout.count] != layout.centre[: layout.count]).all()


# -- fits ------------------------------------------------------------------------------------------------------------------


@each_model
def test_few_data_are_fitted_exactly_and_many_through_inducing_points(Sparse):
    Z, y = data(60, 2)
    for model, n in ((Sparse(), 59), (Sparse(m=60, exact_until=0), 60)):
        fit, exact = model.fit(Z[:n], y[:n]), GP().fit(Z[:n], y[:n])
        np.testing.assert_array_equal(fit.theta, exact.theta)
        assert len(fit.posterior.basis) == n
    assert len(Sparse().fit(Z, y).posterior.basis) == INDUCING_POINTS * 2
    assert len(Sparse(m=7).fit(Z, y).posterior.basis) == 7
    assert len(Sparse(exact_until=0).fit(Z[:12], y[:12]).posterior.basis) == 10


@each_model
@pytest.mark.parametrize("warp", [False, True])
@pytest.mark.parametrize("kernel", ["matern52", pytest.param("se", marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", list(NASTY))
def test_a_fit_never_raises_and_its_posterior_is_finite(case, kernel, warp, Sparse):
    Z, y = NASTY[case]
    fit = Sparse(m=4, kernel=kernel, warp=warp, exact_until=0).fit(Z, y)
    mean, variance = fit.posterior.mean_and_variance(np.random.default_rng(1).random((10, Z.shape[1])))
    assert np.isfinite(mean).all()
    assert (variance > 0).all()
    assert np.isfinite(variance).all()
    assert np.isfinite(fit.log_likelihood)
    assert fit.note == ""


@each_model
@pytest.mark.parametrize("warp", [False, True])
def test_a_fit_finds_what_the_data_show(Sparse, warp):
    rng = np.random.default_rng(5)
    Z, X = rng.random((400, 2)), rng.random((100, 2))
    y, truth = np.sin(8 * Z[:, 0]), np.sin(8 * X[:, 0])  # the second column does not matter
    centre, scale = y.mean(), y.std()
    fit = Sparse(warp=warp).fit(Z, (y - centre) / scale)
    lengths = 1 / fit.posterior.kernel.inverse_lengths
    assert lengths[1] > 3 * lengths[0]
    assert np.abs(fit.posterior.mean_at(X) * scale + centre - truth).max() < 0.2
    likelihood = SparseMarginalLikelihood(Z, (y - centre) / scale, Layout(np.arange(2), warp), "matern52", Sparse.approximation)
    inverse = 1 / fit.posterior.kernel.inverse_lengths
    if not warp:
        assert fit.log_likelihood == pytest.approx(likelihood.value(fit.theta, fit.posterior.basis.blocks[0].A * inverse))


@each_model
def test_no_parameter_that_matters_is_lost_not_even_from_fit_to_fit(Sparse):
    """VFE would, if all length scales were free from the beginning, or from a noise that leaves it far below."""
    rng = np.random.default_rng(0)
    Z = np.vstack([rng.random((400, 10)), np.clip(0.4 + 0.12 * rng.normal(size=(400, 10)), 0, 1)])
    y = np.sin(4 * Z[:, :4]).sum(axis=1) + 3 * ((Z - 0.4) ** 2).sum(axis=1) + np.cos(6 * Z[:, 0] * Z[:, 1])
    y, theta = (y - y.mean()) / y.std(), None
    for _ in range(3):
        fit = Sparse().fit(Z, y, start=theta)
        theta = fit.theta
        assert (np.exp(theta[:10]) < 10).all()
        assert fit.posterior.noise < 0.12
    rest = y - fit.posterior.mean_at(Z)
    assert rest.std() < 0.3


@each_model
def test_moved_inducing_points_gain_on_those_of_the_start(Sparse):
    Z, y = data(300, 2)
    rows = sample_by_rank(y, SAMPLE_ROWS)
    theta = GP().fit(Z[rows], y[rows]).theta
    layout = Layout(np.arange(2))
    U = inducing_points(layout.kernel(theta, "matern52").scale(Z), Z, y, 10)
    fixed = SparseMarginalLikelihood(Z, y, layout, "matern52", Sparse.approximation).value(theta, U)
    assert Sparse().fit(Z, y).log_likelihood > fixed + 10


@each_model
def test_a_warm_start_and_the_same_data_give_the_same_fit_to_the_last_bit(Sparse):
    Z, y = data(150, 2)
    first = Sparse().fit(Z, y)
    np.testing.assert_array_equal(first.theta, Sparse().fit(Z, y).theta)
    warm = [Sparse().fit(Z, y, start=first.theta, cold=False) for _ in range(2)]
    np.testing.assert_array_equal(warm[0].theta, warm[1].theta)
    assert warm[0].log_likelihood > first.log_likelihood - 0.05 * abs(first.log_likelihood) - 5
    assert np.isfinite(Sparse().fit(Z, y, start=np.full(4, np.nan)).log_likelihood)
    assert np.isfinite(Sparse().fit(Z, y, start=np.zeros(17)).log_likelihood)


@each_model
def test_a_fit_that_fails_keeps_the_hyperparameters_of_the_sample_and_says_so(Sparse, monkeypatch, caplog):
    def failing(self, theta, U):
        return -np.inf, np.zeros_like(theta), np.zeros_like(U)

    monkeypatch.setattr(SparseMarginalLikelihood, "__call__", failing)
    Z, y = data(100, 2)
    with caplog.at_level(logging.WARNING, "shoestring"):
        fit = Sparse().fit(Z, y)
    assert "fit failed" in fit.note
    assert "fit failed" in caplog.text
    assert np.isfinite(fit.posterior.mean_at(Z)).all()
    np.testing.assert_allclose(fit.theta[:2], GP().fit(Z, y).theta[:2])


@each_model
@pytest.mark.parametrize("n", [20, 300])
def test_fidelities_are_expected_to_matter_little(Sparse, n):
    """In the exact fit and in the sparse one; with nothing in the data, the prior decides."""
    Z, y = np.random.default_rng(0).random((n, 2)), np.zeros(n)
    lengths = Sparse().fit(Z, y, fidelities=(1,)).theta[:2]
    assert lengths[1] > lengths[0] + 0.2
    lengths = Sparse().fit(Z, y).theta[:2]
    assert abs(lengths[1] - lengths[0]) < 0.1


@each_model
def test_choices_share_a_length_scale_and_only_choices_can_be_fitted_too(Sparse):
    rng = np.random.default_rng(4)
    blocks = np.eye(3)[rng.integers(3, size=80)] * np.sqrt(0.5)
    Z = np.column_stack([rng.random(80), blocks])
    y = blocks @ [1.0, 0.0, -2.0] + Z[:, 0]
    fit = Sparse().fit(Z, (y - y.mean()) / y.std(), np.array([0, 1, 1, 1]))
    assert len(fit.theta) == 4
    assert len(set(fit.posterior.kernel.inverse_lengths[1:])) == 1
    assert np.abs(fit.posterior.mean_at(Z) * y.std() + y.mean() - y).max() < 0.2
    only = Sparse(m=3).fit(blocks, (y - y.mean()) / y.std(), np.zeros(3, dtype=int))
    assert np.isfinite(only.log_likelihood)
    assert len(only.posterior.basis) == 3


@each_model
def test_a_fit_can_be_restricted_to_rows_with_its_inducing_points(Sparse):
    Z, y = data(80, 2)
    fit, rows = Sparse(m=6).fit(Z, y), np.arange(10, 80)
    part = fit.restrict(rows)
    np.testing.assert_array_equal(part.basis.blocks[0].A, fit.posterior.basis.blocks[0].A)
    assert part.kernel == fit.posterior.kernel
    np.testing.assert_array_equal(part.Z, Z[rows])
    np.testing.assert_allclose(fit.restrict(np.arange(80)).mean_at(Z), fit.posterior.mean_at(Z))


@each_model
@pytest.mark.parametrize("wrong", [
    {"m": 0}, {"m": 2.5}, {"m": True}, {"kernel": "rbf"}, {"output": "sqrt"}, {"inference": "mcmc"}, {"exact_until": -1},
    {"exact_until": None},
])  # fmt: skip
def test_what_cannot_be_is_refused_and_named(Sparse, wrong):
    (field, value), = wrong.items()
    with pytest.raises(MethodError, match=f"{Sparse.__name__}: {field}") as refused:
        Sparse(**wrong)
    assert repr(value) in str(refused.value)


@pytest.mark.slow
@each_model
@pytest.mark.parametrize("n", [1000, 10_000])
def test_how_long_a_fit_takes(Sparse, n):
    Z, y = data(n, 10)
    began = time.process_time()
    fit = Sparse().fit(Z, y)
    seconds = time.process_time() - began
    print(f"\n{Sparse.__name__}, n = {n}, m = {len(fit.posterior.basis)}, d = 10: {seconds:.2f} s of one core")
    assert np.isfinite(fit.log_likelihood)
