"""Learning curves of a study: from the reports of trials to curves, their output transform, and the fitted model.

A curve is a run: a trial, and the trials that it went on from. Its points are the values that were reported with a fidelity, and
the result where the run ended. The fidelity that the reports name is the traced one; other fidelities (rows) are parameters.

The hyperparameters are fitted to the first n0 trials that have ended, n0 the last power of 4/3 (``cold_start_due``). They depend
on these trials alone, so a study that was interrupted finds the same ones again. In between only the posterior is computed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.history import History
from ..data.intermediate import SAME_FIDELITY, asked_again
from ..data.trial import State, Trial
from ..numerics import Array, one_thread, special
from ..space.encoding import Encoding
from ..space.parameters import Fidelity
from ..space.space import Space
from .curves import CurveLayout, Curves
from .curves_evidence import MIN_CURVES, Points, beats_plain, tells_the_end
from .curves_posterior import CurvePosterior, RunForecaster, fit_hyperparameters, robust_posterior
from .gp import COLD_START_GROWTH
from .output_transform import KINDS, OutputTransform

MAX_POINTS = 50  # of a curve; of more, so many are used, spread evenly over all epochs that were reported
MAX_CURVES_FOR_TRANSFORM = 20  # that decide about the output transform
MAX_MEMO = 4  # fits that are kept


def traced_fidelity(trials: Sequence[Trial], space: Space) -> str | None:
    """The one fidelity that reports name; None where they name none, or several."""
    named = {name for trial in trials for report in trial.reports[:1] for name in report["fidelity"]}
    return next(iter(named)) if len(named) == 1 and named <= set(space.fidelities) else None


def points_of(reports: Sequence[Mapping[str, Any]], name: str, goal: float) -> Points:
    """The reported values by time."""
    return {float(each["fidelity"][name]) / goal: float(each["value"]) for each in reports if name in each["fidelity"]}


@dataclass(frozen=True, kw_only=True)
class StudyCurves:
    """The curves of a study's trials that have ended, in the user's units.

    traced    the name of the traced fidelity;   goal  its target
    runs      for each curve the number of its run's first trial
    U         n x D, the configurations (the traced fidelity at its target)
    points    the points of each curve
    failed    which runs have failed after some points
    """

    encoding: Encoding
    traced: str
    goal: float
    sign: float
    runs: tuple[int, ...]
    U: Array
    points: tuple[Points, ...]
    failed: NDArray[np.bool_]

    @property
    def usable(self) -> bool:
        """Whether there are curves enough for a model."""
        return sum(len(each) > 1 for each in self.points) >= MIN_CURVES

    @cached_property
    def _columns(self) -> NDArray[np.bool_]:
        return np.asarray(self.encoding.groups != self.encoding.space.names.index(self.traced))

    @cached_property
    def groups(self) -> NDArray[np.intp]:
        """The parameter of each feature, the traced fidelity left out."""
        kept = self.encoding.groups[self._columns]
        return np.asarray(kept - (kept > self.encoding.space.names.index(self.traced)), dtype=np.intp)

    @cached_property
    def fidelities(self) -> tuple[int, ...]:
        """The other fidelities, as ``groups`` counts."""
        traced = self.encoding.space.names.index(self.traced)
        return tuple(each - (each > traced) for each in self.encoding.fidelities if each != traced)

    def features(self, U: Array) -> Array:
        """Features of configurations, the traced fidelity left out."""
        return self.encoding.features(U)[:, self._columns]

    @cached_property
    def grid(self) -> NDArray[np.float64]:
        """The times that are used: all that were reported, or of many an even share."""
        times = np.unique(np.concatenate([np.fromiter(each, dtype=float) for each in self.points]))
        return times[np.unique(np.linspace(0, len(times) - 1, MAX_POINTS).round().astype(np.intp))]

    def thinned(self, points: Points) -> tuple[Array, Array]:
        """Times and values of one curve: on the grid, and its end."""
        kept = set(self.grid.tolist()) | {max(points)} if len(points) > 1 else set(points)
        times = np.array(sorted(kept & points.keys()))
        return times, self.sign * np.array([points[time] for time in times.tolist()])

    def curves(self, output: OutputTransform) -> Curves:
        """With transformed values."""
        found = [self.thinned(each) for each in self.points]
        return Curves.of(self.features(self.U), [t for t, _ in found], [output.forward(y) for _, y in found])

    @cached_property
    def at_target(self) -> NDArray[np.bool_]:
        """Which curves have ended at the target of all fidelities, and have not failed there."""
        others = self.encoding.space.at_target(self.U)
        reached = np.array([max(each) > 1.0 - SAME_FIDELITY for each in self.points], dtype=bool)
        return reached & ~self.failed & (np.abs(others - self.U) < SAME_FIDELITY).all(axis=1)

    @cached_property
    def ended(self) -> dict[int, Points]:
        """By run, the curves that have ended at the target, and those of runs that have failed: with the worst value there."""
        worst = {1.0: self.sign * math.inf}
        found = zip(self.runs, self.points, self.at_target, self.failed, strict=True)
        return {run: points | worst if failed else points for run, points, complete, failed in found if complete or failed}

    @cached_property
    def positive(self) -> bool:
        """Whether all values have a logarithm."""
        return all(self.sign * value > 0.0 for points in self.points for value in points.values())

    @cached_property
    def first_times(self) -> Array:
        """When each curve begins."""
        return np.array([min(each) for each in self.points])

    @cached_property
    def last(self) -> Array:
        """The last value of each curve, lower is better."""
        return self.sign * np.array([each[max(each)] for each in self.points])


def study_curves(trials: Sequence[Trial], history: History, encoding: Encoding) -> StudyCurves | None:
    """The curves of these trials; None where no fidelity is traced."""
    space = history.space
    traced = traced_fidelity(trials, space)
    parameter = None if traced is None else space[traced]
    if traced is None or not isinstance(parameter, Fidelity) or parameter.goal <= 0:
        return None
    runs: dict[int, Points] = {}
    first: dict[int, int] = {}
    failed: dict[int, bool] = {}
    configs: dict[int, Array] = {}
    column = space.names.index(traced)
    for trial in trials:
        before = trial.resumed_from
        run = first[trial.number] = trial.number if before is None else first.get(before.number, before.number)
        points = points_of(trial.reports, traced, float(parameter.goal))
        if trial.state is State.DONE and trial.value is not None:
            points[float(trial.config[traced]) / float(parameter.goal)] = float(trial.value)
        if points:
            runs.setdefault(run, {}).update(points)
            if run not in configs:
                configs[run] = history.table.U[trial.number].copy()
                configs[run][column] = space.target_units[column]
        failed[run] = trial.state is State.FAILED
    if not runs:
        return None
    return StudyCurves(
        encoding=encoding, traced=traced, goal=float(parameter.goal), sign=-1.0 if history.maximize else 1.0,
        runs=tuple(runs), U=np.array(list(configs.values())), points=tuple(runs.values()),
        failed=np.array([failed[run] for run in runs], dtype=bool),
    )  # fmt: skip


def ended_trials(history: History) -> list[Trial]:
    """The trials whose curves are data, in order of number: those that have ended; interrupted ones until asked again."""
    table = history.table
    rows = np.flatnonzero((table.having(State.DONE) | table.has_reports[: table.count]) & ~table.having(State.RUNNING))
    found = [history.trials[row] for row in rows.tolist()]
    return [t for t in found if t.state is not State.ABANDONED or not asked_again(t, history.trials, history.space)]


def scheduled(count: int) -> int:
    """The last power of 4/3, rounded up, that is not above ``count``."""
    power = math.floor(math.log(max(count, 1)) / math.log(COLD_START_GROWTH) + 1e-9)
    return next(n for n in (math.ceil(COLD_START_GROWTH**k - 1e-9) for k in range(power, -1, -1)) if n <= count)


@dataclass(frozen=True)
class CurveFit:
    """The model of a study's curves: data, output transform and posterior."""

    data: StudyCurves
    output: OutputTransform
    posterior: CurvePosterior
    chosen: bool = True  # by evidence, against the plain kernel
    judged: bool = True  # whether ``trusted`` is asked

    @cached_property
    def incumbent(self) -> float | None:
        """The lowest expected value at the target among the runs that have ended there; None while there is none."""
        rows = np.flatnonzero(self.data.at_target)
        if not len(rows):
            return None
        return float(self.posterior.mean_and_variance(self.posterior.started(rows))[0].min())

    def chances(self, U: Array) -> Array:
        """How likely each config's run is to become better at the target than the best one there; 1 where that is not known."""
        found = np.ones(len(U))
        if self.incumbent is None or not len(U):
            return found
        others = np.arange(U.shape[1]) != self.data.encoding.space.names.index(self.data.traced)
        mean, variance = self.posterior.mean_and_variance(self.posterior.started(np.arange(len(self.data.runs))))
        of_runs = special.ndtr((self.incumbent - mean) / np.sqrt(np.maximum(variance, 1e-300)))
        for place, u in enumerate(U):
            same = (np.abs(self.data.U[:, others] - u[others]) < SAME_FIDELITY).all(axis=1)
            if same.any():
                found[place] = of_runs[same].max()
        return found

    def forecaster(self, u: Array, run: int) -> RunForecaster:
        """Forecasts of a run of a configuration; points of the run itself that are data are left out."""
        found = self._forecasters.get((run, u.tobytes()))
        if found is None:
            found = self._forecasters[run, u.tobytes()] = self._make_forecaster(u, run)
        return found

    @cached_property
    def _forecasters(self) -> dict[tuple[int, bytes], RunForecaster]:
        return {}

    def _make_forecaster(self, u: Array, run: int) -> RunForecaster:
        posterior = self.posterior
        if run in self.data.runs:
            rows = np.flatnonzero(np.array(self.data.runs) != run)
            posterior = CurvePosterior.given(
                posterior.curves.select(rows), posterior.layout, posterior.theta, posterior.kappa[rows]
            )
        mean, covariance = posterior.parts_at(self.data.features(u[None, :]))
        return RunForecaster(posterior.shape, mean[0], covariance[0])

    @cached_property
    def trusted(self) -> bool:
        """Whether what runs show on their way tells how they end (see ``curves_evidence``). True while nothing speaks against it.

        With several fidelities a run to the end of one of them is no evaluation at the target, and this is not asked.
        """
        if not self.judged or len(self.data.encoding.space.fidelities) > 1:
            return True
        with one_thread():
            ended, complete = list(self.data.ended.values()), np.flatnonzero(self.data.at_target)
            return tells_the_end(self.posterior, ended, complete, self.data.groups)

    @cached_property
    def unjudged(self) -> CurveFit:
        """The same, trusted in any case."""
        return replace(self, judged=False)


@dataclass
class CurveMemo:
    """Fits of one study's curves, kept while they are of use. A memo changes no result: each is a function of the trials."""

    thetas: dict[tuple[int, ...], tuple[str, Array, bool]] = field(default_factory=dict)
    fits: dict[tuple[int, ...], CurveFit | None] = field(default_factory=dict)
    encoding: Encoding | None = None
    last: tuple[History, CurveFit | None] | None = None  # a running trial asks many times about one history

    def fit(self, history: History, encoding: Encoding) -> CurveFit | None:
        """The model of the curves of a history; None while they are too few, or no fidelity is traced."""
        if self.last is None or self.last[0] is not history or self.encoding is not encoding:
            self.last = history, self._look_up(history, encoding)
        return self.last[1]

    def _look_up(self, history: History, encoding: Encoding) -> CurveFit | None:
        if not history.space.fidelities or not history.table.has_reports[: history.table.count].any():
            return None
        if self.encoding is not encoding:  # the space was extended
            self.thetas, self.fits, self.encoding = {}, {}, encoding
        ended = ended_trials(history)
        key = tuple(trial.number for trial in ended)
        if key not in self.fits:
            with one_thread():
                keep(self.fits, key, self._fit(ended, history, encoding))
        return self.fits[key]

    def _fit(self, ended: Sequence[Trial], history: History, encoding: Encoding) -> CurveFit | None:
        data = study_curves(ended, history, encoding)
        if data is None or not data.usable:
            return None
        part = ended[: scheduled(len(ended))]
        key = tuple(trial.number for trial in part)
        if key not in self.thetas:
            known = study_curves(part, history, encoding)
            known = known if known is not None and known.usable and known.traced == data.traced else data
            kind, theta = fit_theta(known)
            found = posterior_under(known, kind, theta).posterior
            keep(self.thetas, key, (kind, theta, beats_plain(found, known.groups, known.fidelities)))
        kind, theta, chosen = self.thetas[key]
        if kind == "log" and not data.positive:
            kind, theta = fit_theta(data)
        return replace(posterior_under(data, kind, theta), chosen=chosen)


def posterior_under(data: StudyCurves, kind: str, theta: Array) -> CurveFit:
    """The fit to curves under known hyperparameters."""
    output = transform_of(data, kind)
    return CurveFit(data, output, robust_posterior(data.curves(output), CurveLayout(data.groups, data.fidelities), theta))


def keep(memo: dict[tuple[int, ...], Any], key: tuple[int, ...], value: Any) -> None:
    """Add to a memo; the oldest entry goes when there are many."""
    memo[key] = value
    if len(memo) > MAX_MEMO:
        del memo[next(iter(memo))]


def transform_of(data: StudyCurves, kind: str) -> OutputTransform:
    """The transform that standardises last values. Values far worse than these are capped: how bad they are does not matter."""
    return OutputTransform.of(data.last, kind)


def fit_theta(data: StudyCurves) -> tuple[str, Array]:
    """The output transform with the highest likelihood, Jacobian included, and the hyperparameters under it."""
    kinds = [kind for kind in KINDS if kind != "log" or data.positive]
    spread = np.unique(np.linspace(0, len(data.runs) - 1, MAX_CURVES_FOR_TRANSFORM).round().astype(np.intp))
    some = replace(
        data, runs=tuple(data.runs[k] for k in spread), U=data.U[spread], points=tuple(data.points[k] for k in spread),
        failed=data.failed[spread],
    )  # fmt: skip
    compared: list[tuple[float, str, Array]] = []
    for kind in kinds:
        output = transform_of(data, kind)
        value, theta = fit_hyperparameters(some.curves(output), data.groups, fidelities=data.fidelities)
        every = np.concatenate([some.thinned(points)[1] for points in some.points])
        compared.append((value + output.log_jacobian(every), kind, theta))
    _, kind, theta = max(compared, key=lambda each: each[0])
    if len(spread) < len(data.runs):
        _, theta = fit_hyperparameters(
            data.curves(transform_of(data, kind)), data.groups, fidelities=data.fidelities, start=theta
        )
    return kind, theta
