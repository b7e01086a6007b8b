"""Hyperparameters integrated out by MCMC: samples of their posterior, drawn by an ensemble of walkers (emcee).

Notation
    theta       p hyperparameters; their log posterior is the value of ``MarginalLikelihood``
    mode, H     the MAP fit, and minus the Hessian of the log posterior there, nowhere flatter than the prior
    sample_i    the hyperparameter samples of the last suggestion
    walker_w    one of W >= 2 p walkers, a point theta each; after some steps the ensemble is a sample of the posterior

    (1) cold start  walker_w = mode + e_w,    e_w ~ N(0, H^-1)       (Laplace's approximation)
    (2) warm start  walker_w = mode + sqrt(1 - r) (sample_i - mode) + sqrt(r) e_w,    i = w modulo the number of samples

A warm start keeps the spread of the samples, and fills the directions that so few of them do not span. So it needs fewer steps.
The moves are differential evolution with a fifth of snooker moves: at p = 12 their autocorrelation is half as long as that of the
stretch move. The samples are walkers of the last step, which depend on each other less than the steps of one walker do.

Sources: Foreman-Mackey, Hogg, Lang, Goodman, "emcee: the MCMC hammer" (2013); ter Braak, "A Markov chain Monte Carlo version
of the genetic algorithm differential evolution" (2006); ter Braak, Vrugt, "Differential evolution Markov chain with snooker
updater and fewer chains" (2008); averaging acquisitions: Snoek, Larochelle, Adams, "Practical Bayesian optimization" (2012).
"""

from __future__ import annotations

import logging
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..numerics import Array
from .base import Fit
from .gp import GP, SAMPLE_ROWS, layout_for, likelihood_of, posterior_of_rows, posterior_under
from .gradient_data import GradientData
from .marginal_likelihood import AnyLikelihood
from .subset import sample_by_rank

log = logging.getLogger("shoestring")

COLD_STEPS, WARM_STEPS = 100, 30  # steps of each walker: about three and one autocorrelation times, at p = 12
RENEWED_SHARE = 0.25  # r: the share of a warm walker's variance that is drawn again
SNOOKER_SHARE = 0.2  # of the moves
HESSIAN_STEP = 1e-3  # in theta, for central differences of the gradient
LOG_POSTERIOR_FLOOR = -1e10  # where the covariance cannot be factored: finite, since emcee takes differences
STORED_DIGITS = 4  # decimals of a stored hyperparameter, which is a logarithm


def sampled_fits(
    model: GP, fit: Fit, groups: NDArray[np.intp], rng: np.random.Generator, last: Array | None = None,
    fidelities: tuple[int, ...] = (), gradients: GradientData | None = None,
) -> tuple[Fit, ...]:
    """One fit for each hyperparameter sample, for the data of the MAP ``fit``; ``last`` are the samples of the last suggestion.

    Of large data a sample of rows is used to draw hyperparameters; the posteriors hold all rows. Never raises on numerical
    trouble: then the MAP fit is returned alone, and the log says so.
    """
    layout, Z, y = layout_for(model, groups, fidelities, gradients), fit.posterior.Z, fit.posterior.y
    rows = sample_by_rank(y, SAMPLE_ROWS) if len(y) > SAMPLE_ROWS else np.arange(len(y))
    some = None if gradients is None else gradients.select(rows)
    if gradients is not None and some is None:
        rows, some = np.arange(len(y)), gradients
    log_likelihood = likelihood_of(Z[rows], y[rows], some, layout, model.kernel)
    if last is not None and (last.ndim != 2 or last.shape[1] != layout.size or not np.isfinite(last).all()):
        last = None
    thetas, values = draw_hyperparameters(log_likelihood, fit.theta, model.sets, rng, last)
    if not len(thetas):
        log.warning("Gaussian process: no hyperparameters could be drawn; the most probable ones were used (n = %d)", len(y))
        return (fit,)
    fits = []
    for theta, value in zip(thetas, values, strict=True):
        known = (theta, layout, model.kernel, Z, y, gradients)
        fits.append(Fit(posterior_under(*known), theta, float(value), restrict=partial(posterior_of_rows, *known)))
    return tuple(fits)


def draw_hyperparameters(
    log_likelihood: AnyLikelihood, mode: Array, count: int, rng: np.random.Generator, last: Array | None = None
) -> tuple[Array, Array]:
    """``count`` samples (count x p) and their log posteriors; fewer, or none, where the posterior can hardly be computed."""
    import emcee  # here, since it is slow to import

    layout = log_likelihood.layout
    low, high = np.array(layout.bounds).T

    def log_posterior(thetas: Array) -> Array:
        inside = ((thetas >= low) & (thetas <= high)).all(axis=1)
        values = np.full(len(thetas), -np.inf)
        if inside.any():
            found = log_likelihood.values(thetas[inside])
            values[inside] = np.where(found > LOG_POSTERIOR_FLOOR, found, LOG_POSTERIOR_FLOOR)  # NaN too
        return values

    start = initial_walkers(log_likelihood, mode, max(2 * layout.size, count + count % 2), rng, last)
    moves = [(emcee.moves.DEMove(), 1.0 - SNOOKER_SHARE), (emcee.moves.DESnookerMove(), SNOOKER_SHARE)]
    sampler = emcee.EnsembleSampler(len(start), layout.size, log_posterior, moves=moves, vectorize=True)
    own = np.random.RandomState(rng.integers(2**32)).get_state()  # emcee draws from the older generator, or from the global one
    state = emcee.State(layout.clip(start), random_state=own)
    end = sampler.run_mcmc(state, COLD_STEPS if last is None else WARM_STEPS, skip_initial_state_check=True, store=False)
    possible = np.flatnonzero(end.log_prob > LOG_POSTERIOR_FLOOR)
    chosen = np.sort(rng.choice(possible, min(count, len(possible)), replace=False))
    return np.asarray(end.coords[chosen]), np.asarray(end.log_prob[chosen])


def initial_walkers(
    log_likelihood: AnyLikelihood, mode: Array, count: int, rng: np.random.Generator, last: Array | None
) -> Array:
    """Where the walkers start (count x p)."""
    e = rng.standard_normal((count, len(mode))) @ laplace_root(log_likelihood, mode).T
    if last is None:
        return mode + e  # (1)
    kept = last[np.arange(count) % len(last)] - mode
    return np.asarray(mode + np.sqrt(1.0 - RENEWED_SHARE) * kept + np.sqrt(RENEWED_SHARE) * e)  # (2)


def laplace_root(log_likelihood: AnyLikelihood, mode: Array) -> Array:
    """R with R R' = H^-1, by differences of the exact gradient; in units of the prior's widths no eigenvalue of H is below 1."""
    steps, width = HESSIAN_STEP * np.eye(len(mode)), log_likelihood.layout.width
    rows = [log_likelihood(mode + step)[1] - log_likelihood(mode - step)[1] for step in steps]
    hessian = np.array(rows) / (2.0 * HESSIAN_STEP)
    H = -0.5 * (hessian + hessian.T) * np.outer(width, width)
    values, vectors = np.linalg.eigh(np.where(np.isfinite(H), H, 0.0))
    return np.asarray(width[:, None] * vectors / np.sqrt(np.maximum(values, 1.0)))
