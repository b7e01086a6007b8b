"""Hyperparameters integrated out: sets of them drawn from their posterior by an ensemble of walkers (emcee).

Notation
    theta       p hyperparameters; their log posterior is the ``MarginalLikelihood``, its value alone
    mode, H     the MAP fit, and minus the second derivatives of the log posterior there, nowhere flatter than the prior
    set_i       the sets of the last time
    walker_w    W of them, at least 2 p, each a point theta; after some steps the ensemble is a sample of the posterior

    cold start  walker_w = mode + e_w,    e_w ~ N(0, H^-1)       (Laplace's approximation)
    warm start  walker_w = mode + sqrt(1 - r) (set_i - mode) + sqrt(r) e_w,    i = w modulo the number of sets, r = RENEWED

A warm start keeps the spread of the sets and fills the directions that a few of them leave out, so that it needs fewer steps.
The moves are differential evolution with a fifth of snooker moves: at p = 12 they forget their past in half the steps of the
stretch move. The sets are walkers of the last step, which depend on each other less than the steps of one walker do.

Sources: Foreman-Mackey, Hogg, Lang, Goodman, "emcee: the MCMC hammer" (2013); ter Braak, "A Markov chain Monte Carlo version
of the genetic algorithm differential evolution" (2006); ter Braak, Vrugt, "Differential evolution Markov chain with snooker
updater and fewer chains" (2008); averaging acquisitions: Snoek, Larochelle, Adams, "Practical Bayesian optimization" (2012).
"""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import NDArray

from ..numerics import Array
from .gp import GP, SAMPLE_ROWS, Fit, layout_for, likelihood_of, posterior_under, sample_by_rank
from .gradient_data import GradientData
from .marginal_likelihood import GradientMarginalLikelihood, MarginalLikelihood
from .posterior import Posterior

log = logging.getLogger("shoestring")
AnyLikelihood = MarginalLikelihood | GradientMarginalLikelihood

COLD_STEPS, WARM_STEPS = 100, 30  # steps of each walker: about three and one times what it takes to forget its past, at p = 12
RENEWED_SHARE = 0.25  # r, the share of a warm walker's variance that is drawn anew
SNOOKER = 0.2  # share of the moves
STEP = 1e-3  # of the differences that H is computed by
IMPOSSIBLE = -1e10  # log posterior where the covariance cannot be factored: finite, since differences of it are taken
DIGITS = 4  # of a stored hyperparameter, a logarithm


def sampled_fits(
    model: GP, fit: Fit, groups: NDArray[np.intp], rng: np.random.Generator, last: Array | None = None,
    fidelities: tuple[int, ...] = (), gradients: GradientData | None = None,
) -> tuple[Fit, ...]:
    """One fit for each set of hyperparameters, for the data of the MAP ``fit``; ``last`` are the sets of the last time.

    Large data are represented by a sample where hyperparameters are drawn, and not where they are used. Never raises on
    numerical trouble: falls back to the MAP fit alone, and says so.
    """
    layout, Z, y = layout_for(model, groups, fidelities, gradients), fit.posterior.Z, fit.posterior.y
    rows = sample_by_rank(y, SAMPLE_ROWS)
    few = None if gradients is None else gradients.select(rows)
    if gradients is not None and few is None:
        rows, few = np.arange(len(y)), gradients
    evidence = likelihood_of(Z[rows], y[rows], few, layout, model.kernel)
    if last is not None and (last.ndim != 2 or last.shape[1] != layout.size or not np.isfinite(last).all()):
        last = None
    sets, values = draw_hyperparameters(evidence, fit.theta, model.sets, rng, last)
    if not len(sets):
        log.warning("Gaussian process: no hyperparameters could be drawn; the most probable ones were used (n = %d)", len(y))
        return (fit,)

    def under(theta: Array) -> Posterior:
        return posterior_under(theta, layout, model.kernel, Z, y, gradients)

    return tuple(Fit(under(theta), theta, float(value), 0) for theta, value in zip(sets, values, strict=True))


def draw_hyperparameters(
    evidence: AnyLikelihood, mode: Array, count: int, rng: np.random.Generator, last: Array | None = None
) -> tuple[Array, Array]:
    """``count`` sets (count x p) and their log posteriors; fewer, or none, where the posterior can hardly be computed."""
    import emcee  # here, since it is slow to import

    layout = evidence.layout
    low, high = np.array(layout.bounds).T

    def log_posterior(theta: Array) -> float:
        if (theta < low).any() or (theta > high).any():
            return -np.inf
        value = evidence.value(theta)
        return value if value > IMPOSSIBLE else IMPOSSIBLE  # NaN too

    start = walkers(evidence, mode, max(2 * layout.size, count + count % 2), rng, last)
    moves = [(emcee.moves.DEMove(), 1.0 - SNOOKER), (emcee.moves.DESnookerMove(), SNOOKER)]
    sampler = emcee.EnsembleSampler(len(start), layout.size, log_posterior, moves=moves)
    own = np.random.RandomState(rng.integers(2**32)).get_state()  # emcee draws from the older generator, or the global one
    state = emcee.State(layout.clip(start), random_state=own)
    end = sampler.run_mcmc(state, COLD_STEPS if last is None else WARM_STEPS, skip_initial_state_check=True, store=False)
    possible = np.flatnonzero(end.log_prob > IMPOSSIBLE)
    chosen = np.sort(rng.choice(possible, min(count, len(possible)), replace=False))
    return np.asarray(end.coords[chosen]), np.asarray(end.log_prob[chosen])


def walkers(evidence: AnyLikelihood, mode: Array, count: int, rng: np.random.Generator, last: Array | None) -> Array:
    """Where the walkers start (count x p)."""
    fresh = rng.standard_normal((count, len(mode))) @ laplace_root(evidence, mode).T
    if last is None:
        return mode + fresh
    kept = last[np.arange(count) % len(last)] - mode
    return np.asarray(mode + np.sqrt(1.0 - RENEWED_SHARE) * kept + np.sqrt(RENEWED_SHARE) * fresh)


def laplace_root(evidence: AnyLikelihood, mode: Array) -> Array:
    """R with R R' = H^-1, by differences of the exact gradient; in units of the prior's widths no eigenvalue of H is below 1."""
    moves, width = STEP * np.eye(len(mode)), evidence.layout.width
    slopes = np.array([evidence(mode + move)[1] - evidence(mode - move)[1] for move in moves]) / (2.0 * STEP)
    H = -0.5 * (slopes + slopes.T) * np.outer(width, width)
    values, vectors = np.linalg.eigh(np.where(np.isfinite(H), H, 0.0))
    return np.asarray(width[:, None] * vectors / np.sqrt(np.maximum(values, 1.0)))
