"""The exact Gaussian process: a specification, and how it is fitted.

``GP(...)`` says what is wanted and never changes; ``fit`` returns a ``Fit``, which holds the posterior, the
hyperparameters behind it and how they were come by. The hyperparameters of the last fit are an argument of the next
(``start``), not a hidden state: a study that is resumed elsewhere computes the same.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import MethodError
from ..numerics import Array, single_threaded
from .covariance import Basis, ValueBlock
from .gradient_data import GradientData, gradient_noise
from .hyperparameters import Layout
from .kernels import PROFILES
from .marginal_likelihood import GradientMarginalLikelihood, MarginalLikelihood
from .output_transform import KINDS
from .posterior import Posterior
from .subset import Subset

log = logging.getLogger("shoestring")

SAMPLE_ROWS = 128  # rows that settle what need not be settled on all of them
OUTPUTS = ("auto", *KINDS)
INFERENCES = ("map", "mcmc")
MAX_HYPERPARAMETER_SAMPLES = 1000


@dataclass(frozen=True)
class Fit:
    """A posterior, its hyperparameters (in ``Layout``'s order), its log evidence, and what it took."""

    posterior: Posterior
    theta: Array
    log_likelihood: float
    evaluations: int
    note: str = ""


@dataclass(frozen=True)
class GP:
    """``GP(kernel="matern52", inference="map", warp=False, output="auto", sets=10, subset=None)``.

    kernel     "matern52" or "se", one length scale a parameter
    inference  "map": hyperparameters at their most probable values; "mcmc": integrated out, by ``sets`` of them drawn from
               their posterior, over which every acquisition is averaged
    warp       True: each parameter's axis may bend (Kumaraswamy, two shapes a parameter)
    output     how values are modelled: "standard", "log" (positive values), "bent" (good values apart, bad ones together),
               or "auto", whichever the evidence prefers
    sets       how many sets of hyperparameters "mcmc" draws
    subset     the part of the trials to learn from once they are many: ``KMeansSubset()``, ...; None: all of them
    """

    kernel: Literal["matern52", "se"] = "matern52"
    inference: Literal["map", "mcmc"] = "map"
    warp: bool = False
    output: Literal["auto", "standard", "log", "bent"] = "auto"
    sets: int = 10
    subset: Subset | None = None

    def __post_init__(self) -> None:
        for field, value, known in (
            ("kernel", self.kernel, tuple(PROFILES)), ("inference", self.inference, INFERENCES), ("output", self.output, OUTPUTS)
        ):
            if value not in known:
                raise MethodError(f"GP: {field} must be one of {', '.join(map(repr, known))}, not {value!r}")
        if isinstance(self.sets, bool) or not isinstance(self.sets, int) or not 1 <= self.sets <= MAX_HYPERPARAMETER_SAMPLES:
            raise MethodError(f"GP: sets must be a whole number from 1 to {MAX_HYPERPARAMETER_SAMPLES} (10 by default), not {self.sets!r}")
        if self.subset is not None and not isinstance(self.subset, Subset):
            wanted = "None, st.KMeansSubset(), st.SeedSubset() or st.RandomSubset()"
            raise MethodError(f"GP: subset must be {wanted}, not {self.subset!r}")

    @single_threaded
    def fit(
        self, Z: Array, y: Array, groups: NDArray[np.intp] | None = None, *, start: Array | None = None,
        cold: bool | None = None, fidelities: tuple[int, ...] = (), gradients: GradientData | None = None,
    ) -> Fit:
        """The most probable hyperparameters for features Z and standardised targets y, and the posterior under them.

        ``groups`` says which parameter a column belongs to, ``far`` which parameters are fidelities; ``gradients`` are slopes
        that were told with the values.

        Starts from ``start`` when given, and from the prior's centre when not, or when ``cold`` asks for it too; the
        better end wins. Never raises on numerical trouble: falls back to ``start``, then to the prior, and says so.
        """
        layout = layout_for(self, np.arange(Z.shape[1]) if groups is None else groups, fidelities, gradients)
        rows = np.arange(len(y)) if self.subset is None else self.subset.hyperparameter_rows(y)
        few = gradients if gradients is None or len(rows) == len(y) else gradients.select(rows)
        if len(rows) < len(y) and (few is None) == (gradients is None):
            part = replace(self, subset=None).fit(Z[rows], y[rows], groups, start=start, cold=cold, fidelities=fidelities, gradients=few)
            return replace(part, posterior=posterior_under(part.theta, layout, self.kernel, Z, y, gradients))
        log_likelihood = likelihood_of(Z, y, gradients, layout, self.kernel)
        if start is not None and (len(start) != layout.size or not np.isfinite(start).all()):
            start = None
        starts = [layout.clip(start)] if start is not None else []
        if start is None or cold:
            starts.append(self._from_scratch(Z, y, layout, gradients))
            if gradients is not None:  # slopes that are mostly noise: not to be reached from where they are exact
                starts.append(np.append(starts[-1][:-1], np.log(0.3)))
        if len(y) > SAMPLE_ROWS:  # one climb is dear enough: from the start that is higher already
            starts = [max(starts, key=lambda theta: log_likelihood(theta)[0])] if len(starts) > 1 else starts
        ends = [maximize_likelihood(log_likelihood, layout, theta) for theta in starts]
        ends = [end for end in ends if np.isfinite(end[0])]
        note = ""
        if ends:
            value, theta = max(ends, key=lambda end: end[0])
        else:
            value, theta = -np.inf, starts[0]
            kept = "the last good hyperparameters were kept" if start is not None else "the prior's were used"
            note = f"the fit failed; {kept}"
            log.warning("Gaussian process: %s (n = %d)", note, len(y))
        return Fit(posterior_under(theta, layout, self.kernel, Z, y, gradients), theta, value, log_likelihood.evaluations, note)

    def _from_scratch(self, Z: Array, y: Array, layout: Layout, gradients: GradientData | None) -> Array:
        """Where a cold fit starts: the prior's centre, or for large data the fit of a sample."""
        if len(y) <= SAMPLE_ROWS:
            return layout.centre
        rows = sample_by_rank(y, SAMPLE_ROWS)
        few = None if gradients is None else gradients.select(rows)
        if gradients is not None and few is None:  # no slope among them, and so nothing to learn of slopes' noise
            return layout.centre
        value, theta = maximize_likelihood(likelihood_of(Z[rows], y[rows], few, layout, self.kernel), layout, layout.centre)
        return theta if np.isfinite(value) else layout.centre


def layout_for(model: GP, groups: NDArray[np.intp], fidelities: tuple[int, ...], gradients: GradientData | None) -> Layout:
    """Which hyperparameters there are. Where slopes were told, axes are not bent."""
    return Layout(groups, model.warp and gradients is None, fidelities, gradients is not None)


def likelihood_of(Z: Array, y: Array, gradients: GradientData | None, layout: Layout, kernel: str) -> MarginalLikelihood | GradientMarginalLikelihood:
    return MarginalLikelihood(Z, y, layout, kernel) if gradients is None else GradientMarginalLikelihood(Z, y, gradients, layout, kernel)


def posterior_under(
    theta: Array, layout: Layout, profile: str, Z: Array, y: Array, gradients: GradientData | None
) -> Posterior:
    """What is believed after the data under known hyperparameters."""
    kernel, noise = layout.kernel(theta, profile), layout.noise(theta)
    if gradients is None:
        return Posterior.given(kernel, noise, Z, y)
    part = gradients.part(kernel, Z)
    basis = Basis(kernel, (ValueBlock(kernel.scale(Z)), part))
    noises = np.concatenate([np.full(len(y), noise), gradient_noise(kernel, layout.gradient_noise_share(theta), part)])
    return Posterior.given_all(basis, noise, noises, Z, y, np.concatenate([y, gradients.values]))


def maximize_likelihood(log_likelihood: MarginalLikelihood | GradientMarginalLikelihood, layout: Layout, theta: Array) -> tuple[float, Array]:
    """The end of a gradient ascent of the evidence, stopped when a step gains less than matters for a decision."""

    from scipy.optimize import minimize  # here, since it is slow to import

    def negative(point: Array) -> tuple[float, Array]:
        value, gradient = log_likelihood(point)
        return (-value, -gradient) if np.isfinite(value) else (1e10, np.zeros_like(point))

    end = minimize(
        negative, theta, jac=True, method="L-BFGS-B", bounds=layout.bounds,
        options={"maxiter": 60, "maxfun": 90, "ftol": 1e-6, "gtol": 0.02},
    )
    return (-float(end.fun), np.asarray(end.x)) if end.fun < 1e10 else (-np.inf, theta)


def sample_by_rank(y: Array, count: int) -> NDArray[np.intp]:
    """Rows spread evenly over the sorted values, lowest and highest included; all rows when they are few."""
    if len(y) <= count:
        return np.arange(len(y))
    order = np.argsort(y, kind="stable")
    return np.sort(order[np.linspace(0, len(y) - 1, count).round().astype(np.intp)])


def cold_start_due(n: int, before: int) -> bool:
    """Whether a fit from scratch is worth its time: when the data have grown by a third since the last power of 4/3."""
    step = math.log(4 / 3)
    return math.floor(math.log(max(n, 1)) / step) > math.floor(math.log(max(before, 1)) / step)
