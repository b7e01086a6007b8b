"""The exact Gaussian process: a specification, and its fit.

``GP(...)`` is a frozen specification. ``fit`` returns a ``Fit``: the posterior, the hyperparameters and how they were found. The
hyperparameters of the last fit are an argument of the next (``start``), not hidden state, so a resumed study computes the same.

Notation: Z (n x p) features, y (n) standardised targets, theta the hyperparameters (see ``marginal_likelihood``).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from .._validation import whole_number
from ..errors import MethodError
from ..numerics import Array, single_threaded
from .base import Fit, Surrogate
from .gradient_data import GradientData, gradient_noise
from .kernels import PROFILES, Basis, ValueBlock
from .marginal_likelihood import AnyLikelihood, GradientMarginalLikelihood, Layout, MarginalLikelihood, maximize_likelihood
from .output_transform import KINDS, read_kind
from .posterior import Posterior
from .subset import Subset, sample_by_rank

log = logging.getLogger("shoestring")

SAMPLE_ROWS = 128  # rows of large data that decide what does not need all of them
OUTPUTS = ("auto", *KINDS)
INFERENCES = ("auto", "map", "mcmc")
MCMC_TRIALS = 30  # of inference="auto": as long as there are so few, several sets of hyperparameters fit the data
MAX_HYPERPARAMETER_SAMPLES = 1000
NOISY_GRADIENT_SHARE = 0.3  # of the prior variance of a gradient observation: a second start of the search, with much noise
COLD_START_GROWTH = 4 / 3  # by which the data grow between two fits from scratch


@dataclass(frozen=True)
class GP(Surrogate):
    """The Gaussian process that models the objective, for ``model=``.

    The default, ``GP()``, fits most problems. Use ``warp=True`` where the objective changes faster at one end of an axis,
    ``inference="mcmc"`` where trials are very expensive and few, and ``VFE`` or a subset with thousands of trials.

    kernel     "matern52" or "se", with one length scale for each parameter
    inference  "map": the most probable hyperparameters; "mcmc": hyperparameters are integrated out by ``sets`` samples of their
               posterior, and every acquisition is averaged over these; "auto": "mcmc" up to 30 trials with EI and its cost-aware
               kin, else "map"
    warp       True: the axis of each parameter is warped (Kumaraswamy, two shapes for each parameter)
    output     the output transform of the values: "standard", "log" (positive values), "yeo-johnson" (differences of good values
               count more), or "auto", the one with the highest marginal likelihood
    sets       how many hyperparameter samples "mcmc" draws
    subset     the part of the trials to learn from once they are many: ``KMeansSubset()``, ...; None: all of them

    >>> study = st.Study(st.Space(x=st.Float(0, 1)), model=st.GP(kernel="se", warp=True))
    >>> study.model.kernel
    'se'
    """

    kernel: Literal["matern52", "se"] = "matern52"
    inference: Literal["auto", "map", "mcmc"] = "map"
    warp: bool = False
    output: Literal["auto", "standard", "log", "yeo-johnson"] = "auto"
    sets: int = 10
    subset: Subset | None = None

    learns_gradients: ClassVar[bool] = True
    gaussian_process: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "output", read_kind(self.output))
        check_choices("GP", kernel=(self.kernel, PROFILES), inference=(self.inference, INFERENCES), output=(self.output, OUTPUTS))
        object.__setattr__(self, "sets", whole_number(self.sets, "GP: sets", 1))
        if self.sets > MAX_HYPERPARAMETER_SAMPLES:
            raise MethodError(f"GP: sets must be at most {MAX_HYPERPARAMETER_SAMPLES} (10 by default), not {self.sets!r}")
        if self.subset is not None and not isinstance(self.subset, Subset):
            wanted = "None, st.KMeansSubset(), st.SeedSubset() or st.RandomSubset()"
            raise MethodError(f"GP: subset must be {wanted}, not {self.subset!r}")

    def resolved(self, trials: int, cheap: bool) -> GP:
        """This model with "map" or "mcmc" in place of "auto": ``cheap``, whether the acquisition is cheap to average."""
        return self._by_mcmc if cheap and trials <= MCMC_TRIALS else self._by_map

    @cached_property
    def _by_mcmc(self) -> GP:
        return replace(self, inference="mcmc")

    @cached_property
    def _by_map(self) -> GP:
        return replace(self, inference="map")

    @single_threaded
    def fit(
        self, Z: Array, y: Array, groups: NDArray[np.intp] | None = None, *, start: Array | None = None,
        cold: bool | None = None, fidelities: tuple[int, ...] = (), gradients: GradientData | None = None,
    ) -> Fit:
        """The most probable hyperparameters for features Z and standardised targets y, and the posterior under them.

        The search starts from ``start`` if it is given. Without it, or if ``cold`` is True, it also starts from the centre of the
        prior; the better end is taken. It never raises on numerical trouble: then the hyperparameters are ``start``, or the
        centre of the prior, and the fit's ``note`` says so. For the other arguments see ``Surrogate.fit``.
        """
        layout = layout_for(self, np.arange(Z.shape[1]) if groups is None else groups, fidelities, gradients)
        every = self.subset is None or len(y) <= self.subset.max_exact_trials
        rows = np.arange(len(y)) if every or self.subset is None else self.subset.hyperparameter_rows(y)
        some = gradients if gradients is None or len(rows) == len(y) else gradients.select(rows)
        if len(rows) < len(y) and (some is None) == (gradients is None):
            part = replace(self, subset=None).fit(
                Z[rows], y[rows], groups, start=start, cold=cold, fidelities=fidelities, gradients=some
            )
            known = (part.theta, layout, self.kernel, Z, y, gradients)
            return replace(part, posterior=posterior_under(*known), restrict=partial(posterior_of_rows, *known))
        log_likelihood = likelihood_of(Z, y, gradients, layout, self.kernel)
        if start is not None and (len(start) != layout.size or not np.isfinite(start).all()):
            start = None
        starts = [layout.clip(start)] if start is not None else []
        if start is None or cold:
            starts.append(self._cold_start(Z, y, layout, gradients))
            if gradients is not None:  # gradients that are mostly noise: the search does not get there from exact ones
                starts.append(np.append(starts[-1][:-1], np.log(NOISY_GRADIENT_SHARE)))
        if len(y) > SAMPLE_ROWS and len(starts) > 1:  # one search is expensive enough: from the start with the higher likelihood
            starts = [max(starts, key=lambda theta: log_likelihood(theta)[0])]
        ends = [maximize_likelihood(log_likelihood, theta) for theta in starts]
        ends = [end for end in ends if np.isfinite(end[0])]
        note = ""
        if ends:
            value, theta = max(ends, key=lambda end: end[0])
        else:
            value, theta = -np.inf, starts[0]
            kept = "the last good hyperparameters were kept" if start is not None else "those of the prior were used"
            note = f"the fit failed; {kept}"
            log.warning("Gaussian process: %s (n = %d)", note, len(y))
        known = (theta, layout, self.kernel, Z, y, gradients)
        restrict = partial(posterior_of_rows, *known)
        return Fit(posterior_under(*known), theta, value, log_likelihood.evaluations, note, restrict)

    def _cold_start(self, Z: Array, y: Array, layout: Layout, gradients: GradientData | None) -> Array:
        """Where a fit from scratch starts: the centre of the prior, or for large data the fit of a sample."""
        if len(y) <= SAMPLE_ROWS:
            return layout.centre
        rows = sample_by_rank(y, SAMPLE_ROWS)
        some = None if gradients is None else gradients.select(rows)
        if gradients is not None and some is None:  # no gradient in the sample, so it tells nothing of their noise
            return layout.centre
        value, theta = maximize_likelihood(likelihood_of(Z[rows], y[rows], some, layout, self.kernel), layout.centre)
        return theta if np.isfinite(value) else layout.centre


@dataclass(frozen=True)
class FixedGP(GP):
    """A GP that keeps the hyperparameters of the last fit until a fit from scratch is due: several suggestions from one fit."""

    @classmethod
    def like(cls, model: GP) -> FixedGP:
        return cls(**{item.name: getattr(model, item.name) for item in fields(model) if item.init})

    @single_threaded
    def fit(
        self, Z: Array, y: Array, groups: NDArray[np.intp] | None = None, *, start: Array | None = None,
        cold: bool | None = None, fidelities: tuple[int, ...] = (), gradients: GradientData | None = None,
    ) -> Fit:
        """The posterior under ``start``; a search for hyperparameters without one, or if ``cold`` is True."""
        layout = layout_for(self, np.arange(Z.shape[1]) if groups is None else groups, fidelities, gradients)
        if cold or start is None or len(start) != layout.size or not np.isfinite(start).all():
            return super().fit(Z, y, groups, start=start, cold=cold, fidelities=fidelities, gradients=gradients)
        known = (layout.clip(start), layout, self.kernel, Z, y, gradients)
        return Fit(posterior_under(*known), known[0], restrict=partial(posterior_of_rows, *known))


def check_choices(model: str, **choices: tuple[object, Iterable[str]]) -> None:
    """A MethodError that names the possible values, unless each option has one of them."""
    for option, (value, possible) in choices.items():
        if value not in tuple(possible):
            raise MethodError(f"{model}: {option} must be one of {', '.join(map(repr, possible))}, not {value!r}")


def layout_for(model: GP, groups: NDArray[np.intp], fidelities: tuple[int, ...], gradients: GradientData | None) -> Layout:
    """The hyperparameters of a model; no warping where there are gradient observations."""
    return Layout(groups, model.warp and gradients is None, fidelities, gradients is not None)


def likelihood_of(Z: Array, y: Array, gradients: GradientData | None, layout: Layout, kernel: str) -> AnyLikelihood:
    """The log marginal likelihood of values, and of gradient observations if there are any."""
    if gradients is None:
        return MarginalLikelihood(Z, y, layout, kernel)
    return GradientMarginalLikelihood(Z, y, gradients, layout, kernel)


def posterior_under(
    theta: Array, layout: Layout, profile: str, Z: Array, y: Array, gradients: GradientData | None
) -> Posterior:
    """The posterior given the data and the hyperparameters."""
    kernel, noise = layout.kernel(theta, profile), layout.noise(theta)
    if gradients is None:
        return Posterior.given(kernel, noise, Z, y)
    block = gradients.block(kernel, Z)
    basis = Basis(kernel, (ValueBlock(kernel.scale(Z)), block))
    noises = np.concatenate([np.full(len(y), noise), gradient_noise(kernel, layout.gradient_noise_share(theta), block)])
    return Posterior.given_basis(basis, np.concatenate([y, gradients.values]), noises, Z=Z, y=y, noise=noise)


def posterior_of_rows(
    theta: Array, layout: Layout, profile: str, Z: Array, y: Array, gradients: GradientData | None, rows: NDArray[np.intp]
) -> Posterior:
    """The posterior given some rows of the data; the hyperparameters stay."""
    some = None if gradients is None else gradients.select(rows)
    return posterior_under(theta, layout, profile, Z[rows], y[rows], some)


def cold_start_due(n: int, before: int) -> bool:
    """Whether a fit from scratch is worth its time: when n has passed a power of 4/3 since ``before``."""
    step = math.log(COLD_START_GROWTH)
    return math.floor(math.log(max(n, 1)) / step) > math.floor(math.log(max(before, 1)) / step)
