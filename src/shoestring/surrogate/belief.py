"""What is believed of a problem at one moment: all that acquisitions and stopping rules may know."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cost.base import CostModel, CostObservations, CostPosterior, remember
from ..cost.censored import fit_costs
from ..data.dataset import Dataset
from ..numerics import Array, cholesky, single_threaded
from ..space.encoding import Encoding
from .feasibility import Feasibility, fit_feasibility
from .gp import GP, SAMPLE_ROWS, Fit, cold_start_due, sample_by_rank
from .gradient_data import GradientData
from .mcmc import DIGITS, sampled_fits
from .output_transform import KINDS, OutputTransform
from .posterior import Posterior
from .sparse import Model
from .subset import refreshed

log = logging.getLogger("shoestring")

MAX_AUXILIARY_ROWS = 400  # rows that what fails and what things cost are learnt from at most: neither needs to be known better
MIN_GRADIENT_SHARE = 0.5  # a slope that was told with this share of the trials will be told with the next
FAILURE_FLOOR = 0.0  # of standardised values: what a failure that could be foreseen counts as, at best


@dataclass(frozen=True)
class Spending:
    """A budget (in cost, or in trials where cost has no limit), what is spent and reserved, and what the start cost."""

    total: float
    spent: float
    initial: float
    in_cost: bool = True

    @property
    def left(self) -> float:
        return self.total - self.spent

    @property
    def left_share(self) -> float:
        """(tau - tau_k) / (tau - tau_init), kept in [0, 1]."""
        room = self.total - self.initial
        return min(max(self.left / room, 0.0), 1.0) if room > 0.0 else 0.0


@dataclass(frozen=True)
class Belief:
    """The objective's posterior (pending trials included), the value to beat, and where evaluations fail.

    incumbent   the lowest posterior mean at an evaluated config and the target fidelity, in the model's units
    fit         the objective's fit before pending trials were added
    viability   where evaluations fail, None while nothing has failed
    cost        what evaluations cost, None when it is not wanted or nothing is known
    spending    the budget and what is gone of it, None without a budget
    remembered  what the last suggestion left behind
    tried       the evaluated configs that the model learnt from, at the target fidelity
    trials      how many values are known, learnt from or not
    settled     the objective without what is only supposed of pending trials;  waiting  the features of those,
                running  their configs at the target fidelity
    sloped      the columns of features whose slopes the next trial is expected to tell;  slope_share  their noise
    alternatives  where hyperparameters are integrated out: a belief for each set of them, with a value to beat of its own.
                The objective and the fit are then those of the most probable hyperparameters, and the incumbent is that of
                the mean over the sets
    """

    encoding: Encoding
    objective: Posterior
    incumbent: float
    output: OutputTransform
    fit: Fit
    feasibility: Feasibility | None
    cost: CostPosterior | None = None
    median_log_cost: float = 0.0
    priced: int = 0
    spending: Spending | None = None
    warm_start: Mapping[str, Any] = field(default_factory=dict)
    evaluated: Array = field(default_factory=lambda: np.empty((0, 0)))
    hyperparameter_samples: tuple[Belief, ...] = ()
    without_pending: Posterior | None = None
    pending: Array = field(default_factory=lambda: np.empty((0, 0)))
    pending_at_target: Array = field(default_factory=lambda: np.empty((0, 0)))
    gradient_columns: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    gradient_noise_share: float = 0.0
    trials: int = 0

    @property
    def samples(self) -> tuple[Belief, ...]:
        """One belief for each set of hyperparameters: what an average is taken over."""
        return self.hyperparameter_samples or (self,)

    def moments(self, Z: Array) -> tuple[Array, Array]:
        """Of the objective at features Z, over all sets: the mean of means, the mean of variances + the variance of means."""
        found = [each.objective.mean_and_variance(Z) for each in self.samples]
        means, variances = np.array([mean for mean, _ in found]), np.array([variance for _, variance in found])
        return means.mean(axis=0), variances.mean(axis=0) + means.var(axis=0)

    def fitted_mean(self, Z: Array) -> Array:
        """The mean over all sets before pending trials were added."""
        return np.asarray(np.mean([each.fit.posterior.mean_at(Z) for each in self.samples], axis=0))

    def gain(self, z: Array) -> float:
        """Expected improvement at one point's features (1 x p), in the user's units; the chance of failure not counted."""
        gains = []
        for each in self.samples:
            mean, variance = each.objective.mean_and_variance(z)
            gains.append(each.output.gain(float(mean[0]), float(np.sqrt(variance[0])), each.incumbent))
        return float(np.mean(gains))

    def to_warm_start(self, trials: int) -> dict[str, Any]:
        """What the next fit starts from, JSON-ready."""
        known: dict[str, Any] = {"theta": self.fit.theta.tolist(), "output": self.output.kind, "trials": trials}
        if self.hyperparameter_samples:
            known["sets"] = [np.round(each.fit.theta, DIGITS).tolist() for each in self.hyperparameter_samples]
        notes = [fit.note for fit in (self.fit, self.feasibility.fit if self.feasibility else None) if fit is not None and fit.note]
        if self.feasibility is not None:
            known["viability"] = self.feasibility.fit.theta.tolist()
        if self.cost is not None:
            known["cost"] = remember(self.cost, self.priced)
        return known | ({"note": "; ".join(notes)} if notes else {})


@single_threaded
def fit_belief(
    seen: Dataset,
    encoding: Encoding,
    model: Model,
    last: Mapping[str, Any] | None,
    cost: CostPosterior | None = None,
    spending: Spending | None = None,
    rng: np.random.Generator | None = None,
    seed: int = 0,
) -> Belief:
    """Fit the model to what was seen (one finished trial at least), starting from what was known at the ``last`` suggestion.

    ``rng`` is what sets of hyperparameters are drawn with, where the model wants them; without one, the same draw each time.
    ``seed`` is the study's: what a part of the trials is picked with, where the model learns from one.
    """
    Z, n = encoding.features(seen.U), len(seen.y)
    last = last or {}
    start = np.array(last["theta"], dtype=float) if last.get("theta") else None
    due = start is None or cold_start_due(n, int(last["trials"]))
    if model.subset is not None and model.subset.in_use(seen.finished, len(encoding.space)):
        whole = seen.without_intermediate()
        seen = whole.select(model.subset.rows(Z[: len(whole.y)], whole.y, whole.at_target, encoding, seed))
        due = due or refreshed(len(whole.y), int(last["trials"]), len(encoding.space))
    kind = None if due else last.get("output")
    output, fit = fit_output(seen, encoding.features(seen.U), encoding, model, start, due, kind)
    failed = encoding.features(seen.failed[-MAX_AUXILIARY_ROWS // 2 :])
    labels = np.array(last["viability"], dtype=float) if last.get("viability") else None
    feasibility = fit_feasibility(Z[spread_rows(n, MAX_AUXILIARY_ROWS)], failed, encoding.groups, start=labels, cold=due)
    foreseen = failed[:0] if feasibility is None else failed[feasibility.predicted_failures()]
    pending = encoding.features(seen.pending)
    typical = float(np.median(seen.log_cost)) if len(seen.log_cost) else 0.0
    tried = seen.U[: seen.finished]
    tried = encoding.space.at_target(tried) if encoding.space.fidelities else tried
    if feasibility is not None and encoding.space.fidelities:
        tried = feasible_evaluated(tried, seen, feasibility, encoding)
    answers = encoding.features(tried)
    running = encoding.space.at_target(seen.pending)
    sloped = expected_gradient_columns(seen, encoding, output, model)

    def under(fit: Fit) -> Belief:
        """What is believed under one set of hyperparameters."""
        objective, incumbent = fit.posterior, float(fit.posterior.mean_at(answers).min())
        if len(foreseen):
            objective = objective.condition(foreseen, np.maximum(objective.mean_at(foreseen), FAILURE_FLOOR))
        settled = objective
        if len(pending):
            objective = with_pessimistic_pending(objective, pending)
        return Belief(
            encoding, objective, incumbent, output, fit, feasibility, cost, typical, len(seen.log_cost), spending, last,
            tried, (), settled, pending, running, sloped, float(np.exp(fit.theta[-1])) if len(sloped) else 0.0,
            n,
        )

    belief = under(fit)
    if model.inference == "map":
        return belief
    assert isinstance(model, GP)  # no other integrates hyperparameters out
    sets = np.array(last["sets"], dtype=float) if last.get("sets") and last.get("output") == output.kind else None
    rng = np.random.default_rng(0) if rng is None else rng
    slopes = GradientData.of(seen, encoding, output)
    drawn = sampled_fits(model, fit, encoding.groups, rng, sets, encoding.fidelities, slopes)
    belief = replace(belief, hyperparameter_samples=tuple(under(each) for each in drawn))
    return replace(belief, incumbent=float(belief.fitted_mean(answers).min()))


def fit_cost(
    seen: Dataset, encoding: Encoding, model: CostModel, known: Mapping[str, Any] | None = None
) -> CostPosterior | None:
    """The cost model fitted to what was paid so far; some models need no data."""
    rows = spread_rows(len(seen.log_cost), MAX_AUXILIARY_ROWS)
    costs = CostObservations(seen.cost_points[rows], seen.log_cost[rows], seen.censored[rows])
    return fit_costs(model, costs, encoding, known) if len(costs) or getattr(model, "needs_no_data", False) else None


def feasible_evaluated(tried: Array, seen: Dataset, feasibility: Feasibility, encoding: Encoding) -> Array:
    """Of tried configs, those that succeeded at the target, or are likelier to than not; all, if there are none."""
    proven = seen.at_target[: len(tried)]
    failed = np.array([(np.abs(seen.failed - u) < 1e-9).all(axis=1).any() for u in tried], dtype=bool)
    kept = proven | (feasibility.is_likely(encoding.features(tried)) & ~failed)
    return tried[kept] if kept.any() else tried


def expected_gradient_columns(seen: Dataset, encoding: Encoding, output: OutputTransform, model: Model) -> NDArray[np.intp]:
    """The columns whose slopes the next trial will tell: those of most trials in which the parameter counts, if of any use."""
    used = GradientData.of(seen, encoding, output) if isinstance(model, GP) else None  # a sparse model learns nothing from slopes
    if used is None:
        return np.empty(0, dtype=np.intp)
    times = np.bincount(used.columns, minlength=encoding.width)
    active = encoding.space.active(seen.U[: seen.finished]).sum(axis=0)[encoding.groups]
    return np.flatnonzero((times > 0) & (times >= MIN_GRADIENT_SHARE * active))


def spread_rows(count: int, most: int) -> NDArray[np.intp]:
    """All rows, or of many: the last quarter of ``most``, and the others spread evenly over the rest."""
    if count <= most:
        return np.arange(count)
    late = most // 4
    early = np.linspace(0, count - late - 1, most - late).round().astype(np.intp)
    return np.concatenate([early, np.arange(count - late, count)])


def with_pessimistic_pending(objective: Posterior, waiting: Array) -> Posterior:
    """The posterior as if each open trial came out one deviation worse than expected, given those opened before it.

    By one joint step: with C C' the covariance of the open results, their values are mean + C 1. The uncertainty there
    goes, and the mean rises a little, so that the next suggestion goes elsewhere; with the mean as the value, batches crowd.
    """
    covariance = objective.covariance(waiting)
    covariance[np.diag_indices(len(waiting))] += objective.noise
    factor, _ = cholesky(covariance)
    return objective.condition(waiting, objective.mean_at(waiting) + factor.sum(axis=1))


def fit_output(
    seen: Dataset, Z: Array, encoding: Encoding, model: Model, start: Array | None, due: bool, kind: str | None
) -> tuple[OutputTransform, Fit]:
    """The fit under the wanted output transform; for "auto" the one with the highest evidence, Jacobian included.

    ``kind`` is what was chosen last time, and stays unless a choice is ``due``. Large data are compared by a sample.
    """
    y = seen.y
    possible: list[str] = [name for name in KINDS if name != "log" or bool((y > 0).all())]
    kinds: list[str]
    if model.output != "auto":
        kinds = [model.output if model.output in possible else "standard"]
        if kinds[0] != model.output:
            log.warning('output="%s" needs positive values; the values as they are were modelled instead', model.output)
    else:
        kinds = [kind] if kind in possible else possible

    def fitted(name: str, rows: NDArray[np.intp]) -> tuple[OutputTransform, Fit]:
        few = seen if len(rows) == len(y) else seen.select(rows)
        output = OutputTransform.of(few.y, name)
        targets, slopes = output.forward(few.y), GradientData.of(few, encoding, output)
        fidelities = encoding.fidelities
        return output, model.fit(Z[rows], targets, encoding.groups, start=start, cold=due, fidelities=fidelities, gradients=slopes)

    def comparable(output: OutputTransform, fit: Fit, few: Dataset) -> float:
        """The evidence in the user's units: slopes are stretched with the values."""
        slopes = GradientData.of(few, encoding, output)
        stretched = 0.0 if slopes is None else float(np.log(output.slopes(few.y)[slopes.rows]).sum())
        return fit.log_likelihood + output.log_jacobian(few.y) + stretched

    everything = np.arange(len(y))
    if len(kinds) == 1:
        return fitted(kinds[0], everything)
    rows = sample_by_rank(y, SAMPLE_ROWS)
    tried = [fitted(name, rows) for name in kinds]
    few = seen if len(rows) == len(y) else seen.select(rows)
    best = max(tried, key=lambda pair: comparable(pair[0], pair[1], few))
    return best if len(rows) == len(y) else fitted(best[0].kind, everything)
