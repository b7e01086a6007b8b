"""Posteriors under several hyperparameter samples that are evaluated together agree with each one alone."""

import numpy as np
import pytest

import shoestring as st
from shoestring.acquisition.base import Acquisition
from shoestring.acquisition.improvement import LogEI
from shoestring.surrogate.marginal_likelihood import MAX_STACKED_ROWS, Layout, MarginalLikelihood
from shoestring.surrogate.posterior import StackedPosteriors

SPACE = st.Space(x=st.Float(0, 1), y=st.Float(1e-4, 1, log=True), n=st.Int(1, 9), kind=st.Choice("a", "b", "c"))


def objective(config):
    return (config["x"] - 0.3) ** 2 + 0.1 * config["n"] + (config["kind"] == "b") * config["y"]


def belief_of(trials, **model):
    study = st.Study(SPACE, st.EI(), model=st.GP(inference="mcmc", sets=4, **model), initial=4, seed=2, stop=None)
    for _ in range(trials):
        trial = study.ask()
        study.tell(trial, objective(trial.config), cost=1.0)
    study.ask()  # one is pending
    return study.context.belief(costs=False)


def test_they_predict_what_each_posterior_predicts_alone():
    belief, rng = belief_of(8), np.random.default_rng(0)
    posteriors = [each.objective for each in belief.samples]
    stacked = StackedPosteriors.of(posteriors)
    Z = belief.encoding.features(rng.random((5, len(SPACE))))
    found = stacked.with_gradients(Z)
    for place, posterior in enumerate(posteriors):
        for together, alone in zip(found, posterior.with_gradients(Z), strict=True):
            np.testing.assert_allclose(together[place], alone, rtol=1e-8, atol=1e-10)
        both = [each[place] for each in stacked.mean_and_variance(Z)]
        np.testing.assert_allclose(both, posterior.mean_and_variance(Z), rtol=1e-9)


def test_the_average_of_log_ei_is_that_of_the_single_surfaces_with_gradients():
    belief, rng = belief_of(8), np.random.default_rng(1)
    U = rng.random((6, len(SPACE)))
    together, alone = LogEI().averaged_surface(belief, rng), Acquisition.averaged_surface(LogEI(), belief, rng)
    for one, other in zip(together(U, True), alone(U, True), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(together(U, False)[0], alone(U, False)[0], rtol=1e-9)


def test_with_a_warping_each_is_evaluated_alone():
    belief = belief_of(6, warp=True)
    assert StackedPosteriors.of([each.objective for each in belief.samples]) is None


@pytest.mark.parametrize("rows", [3, 20, MAX_STACKED_ROWS + 1])
def test_the_likelihoods_at_several_theta_are_those_at_each_of_them(rows):
    rng = np.random.default_rng(rows)
    layout = Layout(np.array([0, 1, 1, 2]))
    likelihood = MarginalLikelihood(rng.random((rows, 4)), rng.standard_normal(rows), layout, "matern52")
    thetas = layout.clip(layout.centre + rng.standard_normal((7, layout.size)))
    np.testing.assert_allclose(likelihood.values(thetas), [likelihood.value(theta) for theta in thetas], rtol=1e-8)


def test_a_covariance_that_cannot_be_factored_spoils_no_other():
    rng = np.random.default_rng(0)
    layout = Layout(np.array([0, 1]))
    likelihood = MarginalLikelihood(np.repeat(rng.random((3, 2)), 5, axis=0), rng.standard_normal(15), layout, "se")
    thetas = np.array([layout.centre, layout.centre + np.array([5.0, 5.0, 7.0, -40.0])])
    values = likelihood.values(thetas)
    assert np.isfinite(values[0])
    assert values[0] == pytest.approx(likelihood.value(thetas[0]))
