"""The belief: what is known of a problem at one moment. Acquisitions and stopping rules may know nothing else.

A belief holds the posterior of the objective, the posterior of the cost, the incumbent, and where evaluations fail. It is
computed once a step, and the suggestion and the stopping rules share it.

Notation (see also ``kernels``, ``output_transform``)
    U   n x D   points of the unit cube;   Z = features(U)   n x p   what the model sees
    t           modelled values: the output transform of y, standardised, lower is better
    f           the latent function, a posterior over t;   theta  its hyperparameters
    y* = min_x mu(x)   the incumbent: the lowest posterior mean over the evaluated configs, at the target fidelity

Pending points are conditioned on as a pessimistic constant liar: their values are mean + C 1, with C C' the covariance of their
observations (``with_pessimistic_pending``).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cost.base import CostModel, CostObservations, CostPosterior, needs_no_data
from ..cost.base import to_warm_start as cost_warm_start
from ..cost.censored import fit_costs
from ..data.dataset import Dataset
from ..data.trial_table import SAME_POINT
from ..numerics import Array, cholesky, single_threaded
from ..space.encoding import Encoding
from .base import Fit, Surrogate
from .curves_target import CurveSurrogate
from .feasibility import Feasibility, fit_feasibility
from .gp import GP, SAMPLE_ROWS, cold_start_due
from .gradient_data import GradientData
from .mcmc import STORED_DIGITS, sampled_fits
from .output_transform import KINDS, OutputTransform, read_kind
from .posterior import Posterior
from .subset import refreshed, sample_by_rank

log = logging.getLogger("shoestring")

MAX_AUXILIARY_ROWS = 400  # rows that the feasibility and the cost model learn from at most: neither needs to be known better
MIN_GRADIENT_SHARE = 0.5  # a gradient that was reported with this share of the trials is expected with the next one
FAILURE_FLOOR = 0.0  # the average of standardised values: what a predicted failure counts as, at best


@dataclass(frozen=True)
class Spending:
    """A budget (in cost, or in trials where cost has no limit), what is spent and reserved, and what the initial design cost.

    most    what a single trial may cost at most, None for no limit: it has to end before the time is over
    timed   the budget is the time of all workers, at its price; so the time that pending trials take is not spent twice
    price   of a second, where there is a limit in time
    trials  a limit of trials beside that in cost
    """

    total: float
    spent: float
    initial: float
    in_cost: bool = True
    most: float | None = None
    timed: bool = False
    price: float | None = None
    trials: int | None = None

    @property
    def left(self) -> float:
        return self.total - self.spent

    @property
    def left_share(self) -> float:
        """(tau - tau_k) / (tau - tau_init), kept in [0, 1]."""
        room = self.total - self.initial
        return min(max(self.left / room, 0.0), 1.0) if room > 0.0 else 0.0


def _no_points() -> Array:
    return np.empty((0, 0))


@dataclass(frozen=True, kw_only=True)
class Belief:
    """What is known at one moment: the posterior of the objective (pending points included), the incumbent, cost, feasibility.

    model       the surrogate's specification;   data  what it learnt from: of many trials perhaps a subset
    fit         the fit before pending points were added
    objective   its posterior with pending points;   without_pending  the same without them
    pending     features of the pending points;   pending_at_target  their configs at the target fidelity
    evaluated   the evaluated configs in ``data``, at the target fidelity
    incumbent   the lowest posterior mean over ``evaluated``, in the model's units
    output      the output transform of the values
    feasibility the probability that an evaluation succeeds, None while nothing has failed
    cost        the cost posterior, None when it is not wanted or nothing is known
    median_log_cost, cost_count    of the costs that are known
    spending    the budget and what is spent of it, None without a budget
    warm_start  what the last suggestion left for this one
    n_trials    how many values are known, learnt from or not
    gradient_columns      features whose gradients the next trial is expected to report;   gradient_noise_share  their noise
    hyperparameter_samples   where hyperparameters are integrated out: a belief for each sample, with an incumbent of its own.
                The objective and the fit are then those of the most probable hyperparameters, and the incumbent is that of the
                mean over the samples
    """

    encoding: Encoding
    model: Surrogate
    data: Dataset
    fit: Fit
    objective: Posterior
    incumbent: float
    output: OutputTransform
    feasibility: Feasibility | None = None
    cost: CostPosterior | None = None
    median_log_cost: float = 0.0
    cost_count: int = 0
    spending: Spending | None = None
    warm_start: Mapping[str, Any] = field(default_factory=dict)
    evaluated: Array = field(default_factory=_no_points)
    without_pending: Posterior | None = None
    pending: Array = field(default_factory=_no_points)
    pending_at_target: Array = field(default_factory=_no_points)
    gradient_columns: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    gradient_noise_share: float = 0.0
    n_trials: int = 0
    hyperparameter_samples: tuple[Belief, ...] = ()

    @property
    def samples(self) -> tuple[Belief, ...]:
        """One belief for each hyperparameter sample; this one alone where they are not integrated out."""
        return self.hyperparameter_samples or (self,)

    def moments(self, Z: Array) -> tuple[Array, Array]:
        """Mean and variance of f at features Z over all samples: mean of means; mean of variances + variance of means."""
        found = [each.objective.mean_and_variance(Z) for each in self.samples]
        means, variances = np.array([mean for mean, _ in found]), np.array([variance for _, variance in found])
        return means.mean(axis=0), variances.mean(axis=0) + means.var(axis=0)

    def fitted_mean(self, Z: Array) -> Array:
        """The posterior mean over all samples, before pending points were added."""
        return np.asarray(np.mean([each.fit.posterior.mean_at(Z) for each in self.samples], axis=0))

    def gain(self, z: Array) -> float:
        """Expected improvement at one point's features (1 x p), in the user's units; the chance of failure does not count."""
        gains = []
        for each in self.samples:
            mean, variance = each.objective.mean_and_variance(z)
            gains.append(each.output.gain(float(mean[0]), float(np.sqrt(variance[0])), each.incumbent))
        return float(np.mean(gains))

    def to_warm_start(self, trials: int) -> dict[str, Any]:
        """What the next fit starts from, JSON-ready. The keys are a stored format: they stay as they are."""
        known: dict[str, Any] = {"theta": self.fit.theta.tolist(), "output": self.output.kind, "trials": trials}
        if self.hyperparameter_samples:
            known["sets"] = [np.round(each.fit.theta, STORED_DIGITS).tolist() for each in self.hyperparameter_samples]
        fits = (self.fit, self.feasibility.fit if self.feasibility else None)
        notes = [fit.note for fit in fits if fit is not None and fit.note]
        if self.feasibility is not None:
            known["viability"] = self.feasibility.fit.theta.tolist()
        if self.cost is not None:
            known["cost"] = cost_warm_start(self.cost, self.cost_count)
        return known | ({"note": "; ".join(notes)} if notes else {})


@single_threaded
def fit_belief(
    data: Dataset,
    encoding: Encoding,
    model: Surrogate,
    last: Mapping[str, Any] | None,
    rng: np.random.Generator | None = None,
    seed: int = 0,
) -> Belief:
    """Fit the model to a dataset with one finished trial at least; cost and spending are added by ``SearchContext.belief``.

    last   the warm start: what ``to_warm_start`` gave at the last suggestion
    rng    draws the hyperparameter samples, where the model wants them; without one, the same draw each time
    seed   the study's: it picks the subset, where the model learns from one
    """
    Z, n = encoding.features(data.U), len(data.y)
    last = last or {}
    start = np.array(last["theta"], dtype=float) if last.get("theta") else None
    due = start is None or cold_start_due(n, int(last["trials"]))
    whole_Z, failed_U, pending_U, log_cost = Z, data.failed, data.pending, data.log_cost
    subset = model.subset
    if subset is not None and data.finished >= subset.min_trials and subset.in_use(data.finished, len(encoding.space)):
        whole = data.without_intermediate()
        data = whole.select(subset.rows(Z[: len(whole.y)], whole.y, whole.at_target, encoding, seed))
        due = due or refreshed(len(whole.y), int(last["trials"]), len(encoding.space))
        Z = encoding.features(data.U)
    if isinstance(model, CurveSurrogate):
        output, fit = model.curves.output, model.fit(Z, data.y, start=start, cold=due)
    else:
        output, fit = fit_output(data, Z, encoding, model, start, due, None if due else read_kind(last.get("output")))
    feasibility, predicted = None, failed_U[:0]
    if len(failed_U):
        failed = encoding.features(failed_U[-MAX_AUXILIARY_ROWS // 2 :])
        labels = np.array(last["viability"], dtype=float) if last.get("viability") else None
        finished = whole_Z[spread_rows(n, MAX_AUXILIARY_ROWS)]
        feasibility = fit_feasibility(finished, failed, encoding.groups, start=labels, cold=due)
        predicted = failed[:0] if feasibility is None else failed[feasibility.predicted_failures()]
    evaluated = data.U[: data.finished]
    if encoding.space.fidelities:
        evaluated = encoding.space.at_target(evaluated)
        if feasibility is not None:
            evaluated = feasible_evaluated(evaluated, data, feasibility, encoding)
    answers, pending = encoding.features(evaluated), encoding.features(pending_U)
    gradient_data = gradients_of(data, encoding, output) if isinstance(model, GP) else None
    gradient_columns = expected_gradient_columns(gradient_data, data, encoding)  # a sparse model learns nothing from gradients

    def under(fit: Fit) -> Belief:
        """The belief under one sample of the hyperparameters."""
        objective = fit.posterior
        incumbent = float(objective.mean_at(answers).min())
        if len(predicted):
            objective = objective.condition(predicted, np.maximum(objective.mean_at(predicted), FAILURE_FLOOR))
        without_pending = objective
        if len(pending):
            objective = with_pessimistic_pending(objective, pending)
        return Belief(
            encoding=encoding, model=model, data=data, fit=fit, objective=objective, incumbent=incumbent, output=output,
            feasibility=feasibility, warm_start=last, evaluated=evaluated, without_pending=without_pending,
            median_log_cost=float(np.median(log_cost)) if len(log_cost) else 0.0, cost_count=len(log_cost),
            pending=pending, pending_at_target=encoding.space.at_target(pending_U), gradient_columns=gradient_columns,
            gradient_noise_share=float(np.exp(fit.theta[-1])) if len(gradient_columns) else 0.0, n_trials=n,
        )  # fmt: skip

    belief = under(fit)
    if model.inference != "mcmc":
        return belief
    assert isinstance(model, GP)  # no other integrates hyperparameters out
    sets = np.array(last["sets"], dtype=float) if last.get("sets") and read_kind(last.get("output")) == output.kind else None
    rng = np.random.default_rng(0) if rng is None else rng
    drawn = sampled_fits(model, fit, encoding.groups, rng, sets, encoding.fidelities, gradient_data)
    belief = replace(belief, hyperparameter_samples=tuple(under(each) for each in drawn))
    return replace(belief, incumbent=float(belief.fitted_mean(answers).min()))


def fit_cost(
    data: Dataset, encoding: Encoding, model: CostModel, known: Mapping[str, Any] | None = None
) -> CostPosterior | None:
    """The cost model fitted to what was paid so far; None while nothing is known and the model needs data."""
    rows = spread_rows(len(data.log_cost), MAX_AUXILIARY_ROWS)
    costs = CostObservations(data.cost_points[rows], data.log_cost[rows], data.censored[rows])
    return fit_costs(model, costs, encoding, known) if len(costs) or needs_no_data(model) else None


def feasible_evaluated(evaluated: Array, data: Dataset, feasibility: Feasibility, encoding: Encoding) -> Array:
    """Of evaluated configs, those that succeeded at the target, or are likelier to than not; all, if there are none."""
    proven = data.at_target[: len(evaluated)]
    failed = np.array([(np.abs(data.failed - u) < SAME_POINT).all(axis=1).any() for u in evaluated], dtype=bool)
    kept = proven | (feasibility.is_likely(encoding.features(evaluated)) & ~failed)
    return evaluated[kept] if kept.any() else evaluated


def gradients_of(data: Dataset, encoding: Encoding, output: OutputTransform) -> GradientData | None:
    """The gradient observations of a dataset; None where there are none."""
    return GradientData.of(data, encoding, output) if np.isfinite(data.gradients).any() else None


def expected_gradient_columns(used: GradientData | None, data: Dataset, encoding: Encoding) -> NDArray[np.intp]:
    """The features whose gradients the next trial will report: those of most trials in which the parameter is active."""
    if used is None:
        return np.empty(0, dtype=np.intp)
    times = np.bincount(used.columns, minlength=encoding.width)
    active = encoding.space.active(data.U[: data.finished]).sum(axis=0)[encoding.groups]
    return np.flatnonzero((times > 0) & (times >= MIN_GRADIENT_SHARE * active))


def spread_rows(count: int, most: int) -> NDArray[np.intp]:
    """All rows, or of many: the last quarter of ``most``, and the others spread evenly over the rest."""
    if count <= most:
        return np.arange(count)
    late = most // 4
    early = np.linspace(0, count - late - 1, most - late).round().astype(np.intp)
    return np.concatenate([early, np.arange(count - late, count)])


def with_pessimistic_pending(objective: Posterior, pending: Array) -> Posterior:
    """The posterior as if each pending trial came out one deviation worse than expected, given those before it.

    A constant liar in one joint step: with C C' the covariance of the pending results, their values are mean + C 1. The
    uncertainty there goes, and the mean rises a little, so that the next suggestion goes elsewhere. With the mean itself as the
    value, the members of a batch crowd together.
    """
    covariance = objective.covariance(pending)
    covariance[np.diag_indices(len(pending))] += objective.noise
    factor, _ = cholesky(covariance)
    return objective.condition(pending, objective.mean_at(pending) + factor.sum(axis=1))


def fit_output(
    data: Dataset, Z: Array, encoding: Encoding, model: Surrogate, start: Array | None, due: bool, kind: str | None
) -> tuple[OutputTransform, Fit]:
    """The fit under the wanted output transform; for "auto" the one with the highest likelihood, Jacobian included.

    ``kind`` is what was chosen last time, and stays unless a choice is ``due``. Large data are compared by a sample.
    """
    y = data.y
    possible: list[str] = [name for name in KINDS if name != "log" or bool((y > 0).all())]
    kinds: list[str]
    if model.output != "auto":
        kinds = [model.output if model.output in possible else "standard"]
        if kinds[0] != model.output:
            log.warning('output="%s" needs positive values; the values as they are were modelled instead', model.output)
    else:
        kinds = [kind] if kind in possible else possible

    def fitted(name: str, rows: NDArray[np.intp]) -> tuple[OutputTransform, Fit]:
        part = data if len(rows) == len(y) else data.select(rows)
        output = OutputTransform.of(part.y, name)
        gradients = gradients_of(part, encoding, output) if model.learns_gradients else None
        options: dict[str, Any] = {"start": start, "cold": due, "fidelities": encoding.fidelities, "gradients": gradients}
        return output, model.fit(Z[rows], output.forward(part.y), encoding.groups, **options)

    def comparable(output: OutputTransform, fit: Fit, part: Dataset) -> float:
        """The log likelihood in the user's units: gradients are stretched with the values."""
        gradients = gradients_of(part, encoding, output) if model.learns_gradients else None
        stretched = 0.0 if gradients is None else float(np.log(output.derivatives(part.y)[gradients.rows]).sum())
        return fit.log_likelihood + output.log_jacobian(part.y) + stretched

    everything = np.arange(len(y))
    if len(kinds) == 1:
        return fitted(kinds[0], everything)
    rows = sample_by_rank(y, SAMPLE_ROWS)
    compared = [fitted(name, rows) for name in kinds]
    part = data if len(rows) == len(y) else data.select(rows)
    best = max(compared, key=lambda pair: comparable(pair[0], pair[1], part))
    return best if len(rows) == len(y) else fitted(best[0].kind, everything)
