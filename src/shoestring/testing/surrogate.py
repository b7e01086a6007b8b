"""The contract of a surrogate."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from ..acquisition.improvement import EI
from ..state.registry import read_code, text_of
from ..study import Study
from ..surrogate.base import Surrogate, SurrogatePosterior, check_fit, check_surrogate
from .problems import SPACES, configs, data_about, run

TRIALS, INITIAL = 9, 5


class SurrogateContract:
    """The checks that every surrogate must pass: derive a test class and define ``make``.

    Use it to test a surrogate of your own with pytest: shapes, variances, gradients, conditioning, a study that is stored.

    registered  it has a name in stored studies
    spaces      those of ``problems.SPACES`` that it works on

    >>> from shoestring.testing import SurrogateContract
    >>> class TestMine(SurrogateContract):
    ...     def make(self):
    ...         return st.GP(kernel="se")
    >>> TestMine().test_it_is_a_surrogate()
    """

    registered = True
    spaces: tuple[str, ...] = ("numbers", "mixed")

    def make(self) -> Surrogate:
        raise NotImplementedError("return the surrogate to test")

    def study(self, space: str = "numbers", **options: Any) -> Study:
        return Study(SPACES[space], EI(), stop=None, seed=1, initial=INITIAL, model=self.make(), **options)

    def fitted(self, space: str = "numbers", trials: int = 12) -> tuple[SurrogatePosterior, Any, Any]:
        """The posterior of standardised values, with features and targets."""
        encoding, data = data_about(space, trials)
        Z, y = encoding.features(data.U), (data.y - data.y.mean()) / data.y.std()
        fit = self.make().fit(Z, y, encoding.groups, start=None, cold=True, fidelities=(), gradients=None)
        check_fit(fit, self.make())
        return fit.posterior, Z, y

    def test_it_is_a_surrogate(self) -> None:
        check_surrogate(self.make())

    def test_means_and_variances_are_finite_one_for_each_point(self) -> None:
        for space in self.spaces:
            posterior, Z, _ = self.fitted(space)
            for X in (Z, np.random.default_rng(1).random((7, Z.shape[1]))):
                mean, variance = posterior.mean_and_variance(X)
                assert mean.shape == variance.shape == (len(X),)
                assert np.isfinite(mean).all()
                assert (variance > 0.0).all()
                np.testing.assert_allclose(posterior.mean_at(X), mean, rtol=1e-9, atol=1e-9)

    def test_gradients_are_those_of_differences(self) -> None:
        posterior, Z, _ = self.fitted()
        X = np.random.default_rng(2).uniform(0.2, 0.8, (5, Z.shape[1]))
        mean, variance, d_mean, d_variance = posterior.with_gradients(X)
        np.testing.assert_allclose(mean, posterior.mean_and_variance(X)[0], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(variance, posterior.mean_and_variance(X)[1], rtol=1e-6, atol=1e-9)
        for column in range(X.shape[1]):
            step = np.zeros(X.shape[1])
            step[column] = 1e-5
            above, below = posterior.mean_and_variance(X + step), posterior.mean_and_variance(X - step)
            np.testing.assert_allclose(d_mean[:, column], (above[0] - below[0]) / 2e-5, rtol=1e-3, atol=1e-4)
            np.testing.assert_allclose(d_variance[:, column], (above[1] - below[1]) / 2e-5, rtol=1e-2, atol=1e-4)

    def test_the_covariance_is_symmetric_and_its_diagonal_the_variance(self) -> None:
        posterior, Z, _ = self.fitted()
        X = np.random.default_rng(3).random((6, Z.shape[1]))
        covariance = posterior.covariance(X)
        np.testing.assert_allclose(covariance, covariance.T, atol=1e-9)
        np.testing.assert_allclose(np.diag(covariance), posterior.mean_and_variance(X)[1], rtol=1e-3, atol=1e-6)
        assert np.linalg.eigvalsh(covariance).min() > -1e-6
        np.testing.assert_allclose(posterior.covariance(X, X[:2]), covariance[:, :2], atol=1e-9)

    def test_an_observation_lowers_the_variance_and_moves_the_mean_towards_it(self) -> None:
        posterior, Z, _ = self.fitted()
        x = np.full((1, Z.shape[1]), 0.45)
        mean, variance = posterior.mean_and_variance(x)
        after = posterior.condition(x, mean + 1.0)
        assert isinstance(after, SurrogatePosterior)
        assert after.mean_and_variance(x)[1][0] <= variance[0] + 1e-9
        assert after.mean_and_variance(x)[0][0] >= mean[0] - 1e-9
        np.testing.assert_array_equal(posterior.mean_and_variance(x)[0], mean)  # the first one stays as it was

    def test_samples_have_the_moments_of_the_posterior(self) -> None:
        posterior, Z, _ = self.fitted()
        X = np.random.default_rng(4).random((3, Z.shape[1]))
        draws = posterior.sample(X, 4000, np.random.default_rng(5))
        mean, variance = posterior.mean_and_variance(X)
        assert draws.shape == (4000, 3)
        np.testing.assert_allclose(draws.mean(axis=0), mean, atol=5.0 * np.sqrt(variance.max() / 4000) + 1e-6)
        np.testing.assert_allclose(draws.var(axis=0), variance, rtol=0.2, atol=1e-6)

    def test_a_study_runs_with_failed_and_pending_trials(self) -> None:
        for space in self.spaces:
            study = run(self.study(space), TRIALS, fail_every=4)
            study.ask()
            study.tell(study.ask(), 0.5, cost=1.0)
            assert study.recommend() is not None

    def test_the_same_seed_gives_the_same_trials_and_replay_agrees(self) -> None:
        first, second = run(self.study(), TRIALS), run(self.study(), TRIALS)
        assert configs(first) == configs(second)
        assert first.replay().first_difference is None

    def test_a_stored_study_goes_on_as_if_it_had_not_been_closed(self) -> None:
        if not self.registered:
            return
        text = text_of("model", self.make())
        assert text is not None, f"{self.make()!r} has no text: register its class, and give it a repr that calls it again"
        assert read_code("model", text) == self.make()
        whole = run(self.study(), TRIALS)
        with tempfile.TemporaryDirectory() as folder:
            url = f"sqlite:///{Path(folder) / 'tune.db'}"
            run(self.study(storage=url, name="stored"), TRIALS - 3)
            again = Study.load(url, "stored")
            assert configs(run(again, 3)) == configs(whole)
            again.storage.close_connections()
