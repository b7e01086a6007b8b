"""From a transferred cost model to this study's own, as evidence comes in.

Notation
    q(x)                        transferred prediction of log cost; tau^2, sigma^2 its variances (see ``regressors``)
    d_i = gamma_i - q(x_i)      what it missed by

Three candidates, by leave-one-out log predictive density:
    shifted     q + b, b ~ N(0, tau^2): this task as a whole is dearer or cheaper than foreseen
    corrected   q + the online model fitted to d
    online      the online model fitted to gamma: the transfer is overruled
Shifted is all there is up to two observations. With weight A = n + sigma^2 / tau^2 on the mean shift, it is a ridge regression
on a constant, so its left-out predictions are in closed form.

A cost model learned from earlier studies: of use from the first trial on, corrected by what this study observes.

The rows (config, meta-features, cost) are learned once a space (``regressors``); configs that do not fit the space are left
out. What this study observes then decides (``handover``) whether the transferred prediction is corrected by a constant, by
a linear model, or overruled by the model that has only seen this study.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from ..data.trial import State
from ..errors import ConfigError, MethodError
from ..numerics import Array
from ..space.encoding import Encoding
from ..space.parameters import Choice
from ..space.space import Space
from .auto import score
from .base import CostModel, CostObservations, CostPosterior
from .linear import CostFeatures, LinearCost, Ridge
from .transfer_regressors import REGRESSORS, Offline, learn

PRIOR_ROWS = 4.0  # observations that the offline estimate of sigma^2 counts as
ENOUGH = 3  # observations from which on the transfer may be corrected by more than a shift, or overruled
STEP = 0.01  # of differences: wide, since trees and neighbours are flat in the small


@dataclass(frozen=True)
class Transferred:
    """q and its gradient at points."""

    name: str
    features: CostFeatures
    offline: Offline
    about: Array  # this task's meta-features

    def __call__(self, U: Array) -> Array:
        if len(U) == 0:
            return np.empty(0)  # scikit-learn refuses to predict nothing
        F = self.features(U)
        return np.asarray(self.offline.predict(np.column_stack([F, np.tile(self.about, (len(U), 1))])))

    def with_gradient(self, U: Array) -> tuple[Array, Array]:
        value = self(U)
        if self.offline.weights is not None:
            slopes = self.offline.weights[1 : 1 + len(self.features.groups)]
            return value, self.features.pull_back(U, np.tile(slopes, (len(U), 1)))
        space, gradient = self.features.encoding.space, np.zeros(U.shape)
        active = space.active(U)
        for j, parameter in enumerate(space.values()):
            if isinstance(parameter, Choice):
                continue
            ahead, behind = U.copy(), U.copy()
            ahead[:, j], behind[:, j] = np.minimum(U[:, j] + STEP, 1.0), np.maximum(U[:, j] - STEP, 0.0)
            # A parent that moves may switch others on: then the difference is not a slope, and 0 is the safer answer.
            same = (space.active(ahead) == active).all(axis=1) & (space.active(behind) == active).all(axis=1)
            slope = (self(ahead) - self(behind)) / (ahead[:, j] - behind[:, j])
            gradient[:, j] = np.where(active[:, j] & same, slope, 0.0)
        return value, gradient


def hand_over(start: Transferred, costs: CostObservations, encoding: Encoding, online: CostModel) -> CostPosterior:
    """The candidate that predicts this study's costs best; ties and few data to the transferred one."""
    base = start(costs.U)
    missed = costs.with_gamma(costs.log_cost - base)
    best: CostPosterior = _shifted(start, base, missed.log_cost)
    if len(costs) < ENOUGH:
        return best
    correction = online.fit(missed, encoding)
    corrected = Corrected(f"{start.name} + {correction.name}", start, base, correction)
    for candidate in (corrected, Overruling(online.fit(costs, encoding))):
        if score(candidate, costs) > score(best, costs):
            best = candidate
    return best


def _shifted(start: Transferred, base: Array, missed: Array) -> Corrected:
    tau2, sigma2 = start.offline.tau2, start.offline.sigma2
    shift = Shift.learned(missed, tau2, sigma2)
    return Corrected(start.name if len(missed) == 0 else f"{start.name} + shift", start, base, shift)


@dataclass(frozen=True)
class Shift:
    """b, the same everywhere."""

    name: str
    mean: float
    variance: float
    missed: Array
    ridge: Ridge | None

    @classmethod
    def learned(cls, missed: Array, tau2: float, sigma2: float) -> Shift:
        if len(missed) == 0:
            return cls("shift", 0.0, tau2 + sigma2, missed, None)
        ridge = Ridge.solve(np.ones((len(missed), 1)), missed, np.array([sigma2 / tau2]), (sigma2, PRIOR_ROWS))
        return cls("shift", float(ridge.weights[0]), ridge.noise * (1.0 + float(ridge.inverse[0, 0])), missed, ridge)

    def log_cost(self, U: Array) -> tuple[Array, Array]:
        return np.full(len(U), self.mean), np.full(len(U), self.variance)

    def log_cost_with_gradient(self, U: Array) -> tuple[Array, Array, Array, Array]:
        return *self.log_cost(U), np.zeros(U.shape), np.zeros(U.shape)

    def leave_one_out(self) -> tuple[Array, Array]:
        if self.ridge is None:
            return self.missed, self.missed  # no observation, no row
        return self.missed - self.ridge.left_out_error, self.ridge.left_out_noise / self.ridge.room


@dataclass(frozen=True)
class Corrected:
    """The transferred prediction plus what this study adds to it."""

    name: str
    start: Transferred
    base: Array  # q at the observations
    correction: CostPosterior

    def log_cost(self, U: Array) -> tuple[Array, Array]:
        mean, variance = self.correction.log_cost(U)
        return self.start(U) + mean, variance

    def log_cost_with_gradient(self, U: Array) -> tuple[Array, Array, Array, Array]:
        value, slope = self.start.with_gradient(U)
        mean, variance, d_mean, d_variance = self.correction.log_cost_with_gradient(U)
        return value + mean, variance, slope + d_mean, d_variance

    def leave_one_out(self) -> tuple[Array, Array]:
        mean, variance = self.correction.leave_one_out()
        return self.base + mean, variance


@dataclass(frozen=True)
class Overruling:
    """This study's own model."""

    own: CostPosterior

    @property
    def name(self) -> str:
        return f"{self.own.name} (transfer overruled)"

    def log_cost(self, U: Array) -> tuple[Array, Array]:
        return self.own.log_cost(U)

    def log_cost_with_gradient(self, U: Array) -> tuple[Array, Array, Array, Array]:
        return self.own.log_cost_with_gradient(U)

    def leave_one_out(self) -> tuple[Array, Array]:
        return self.own.leave_one_out()


Meta = Mapping[str, float]


@dataclass(frozen=True)
class Row:
    """One earlier evaluation; ``task`` is equal for rows of one task."""

    config: Mapping[str, Any]
    meta: Meta
    cost: float
    task: str


@dataclass(frozen=True, eq=False)  # equal only to itself, so that what was learned can be kept by identity
class TransferCost:
    """Made by ``from_rows`` or ``from_studies``; ``online`` is the model that evidence may hand over to."""

    needs_no_data: ClassVar[bool] = True

    rows: tuple[Row, ...]
    meta: Meta = field(default_factory=dict)
    regressor: str = "task_linear"
    online: CostModel = field(default_factory=LinearCost)

    def __post_init__(self) -> None:
        if self.regressor not in REGRESSORS:
            raise MethodError(f"TransferCost: regressor must be one of {', '.join(REGRESSORS)}, not {self.regressor!r}")
        if not self.rows:
            raise MethodError("TransferCost: there is no row with a cost to learn from")
        if self.regressor == "task_linear" and not self.shared_meta:
            raise MethodError(
                'TransferCost: "task_linear" needs meta-features that every row and this task have, such as '
                'meta={"rows": 5000, "columns": 20}; without any, use regressor="linear"'
            )

    @classmethod
    def from_rows(
        cls, rows: Iterable[tuple[Mapping[str, Any], Meta | None, float]], meta: Meta | None = None,
        regressor: str = "task_linear", online: CostModel | None = None,
    ) -> TransferCost:
        """From (config, meta-features of its task, cost); rows with equal meta-features count as one task."""
        read = []
        for number, row in enumerate(rows):
            try:
                config, about, cost = row
            except (TypeError, ValueError):
                raise MethodError(f"TransferCost: row {number} must be (config, meta-features, cost), not {row!r}") from None
            about = _checked_meta(about, f"row {number}")
            read.append(Row(dict(config), about, _checked_cost(cost, f"row {number}"), repr(sorted(about.items()))))
        return cls(tuple(read), _checked_meta(meta, "meta"), regressor, online or LinearCost())

    @classmethod
    def from_studies(
        cls, studies: Iterable[Any], metas: Sequence[Meta] | None = None, meta: Meta | None = None,
        regressor: str | None = None, online: CostModel | None = None,
    ) -> TransferCost:
        """From every finished trial whose cost is known exactly.

        ``metas`` holds the meta-features of each study's task, ``meta`` those of this one.

        A study counts as one task. Without meta-features the regressor is "linear" unless another one is named.
        """
        earlier = list(studies)
        if metas is not None and len(metas) != len(earlier):
            raise MethodError(f"TransferCost: {len(earlier)} studies need as many metas, not {len(metas)}")
        read = []
        for number, study in enumerate(earlier):
            about = _checked_meta(metas[number] if metas is not None else None, f"metas[{number}]")
            for trial in getattr(study, "history", study):
                if trial.cost is not None and trial.state in (State.DONE, State.FAILED) and not trial.censored:
                    cost = _checked_cost(trial.cost, f"study {number}, trial {trial.number}")
                    read.append(Row(dict(trial.config), about, cost, str(number)))
        return cls(
            tuple(read), _checked_meta(meta, "meta"), regressor or ("task_linear" if metas and meta else "linear"),
            online or LinearCost(),
        )

    @property
    def shared_meta(self) -> tuple[str, ...]:
        """Meta-features that this task and every row have; none for the naive linear model."""
        if self.regressor == "linear":
            return ()
        return tuple(name for name in self.meta if all(name in row.meta for row in self.rows))

    def fit(self, costs: CostObservations, encoding: Encoding, known: Mapping[str, Any] | None = None) -> CostPosterior:
        return hand_over(transferred(self, encoding), costs, encoding, self.online)


def transferred(model: TransferCost, encoding: Encoding) -> Transferred:
    """The offline prediction in a space."""
    offline, used = _learned(model, encoding.space)
    about = np.array([_scaled(model, name)(model.meta[name]) for name in model.shared_meta], dtype=float)
    return Transferred(f"transferred ({model.regressor}, {used} rows)", CostFeatures(encoding), offline, about)


@lru_cache(maxsize=8)
def _learned(model: TransferCost, space: Space) -> tuple[Offline, int]:
    """Offline learning, once a model and space: a function of its arguments, kept since an MLP takes seconds."""
    points, rows = [], []
    for row in model.rows:
        try:
            config = space.check({name: value for name, value in row.config.items() if name in space})
        except ConfigError:
            continue  # a value that this space does not have: there is no feature for it
        points.append(space.encode(config))
        rows.append(row)
    if not rows:
        raise MethodError(f"TransferCost: none of the {len(model.rows)} rows fits the space ({', '.join(space.names)})")
    F = CostFeatures(Encoding(space))(np.array(points))
    about = [[_scaled(model, name)(row.meta[name]) for name in model.shared_meta] for row in rows]
    G: Array = np.column_stack([F, np.array(about, dtype=float).reshape(len(rows), -1)])
    _, tasks = np.unique([row.task for row in rows], return_inverse=True)
    return learn(model.regressor, G, np.log([row.cost for row in rows]), tasks), len(rows)


def _scaled(model: TransferCost, name: str) -> Any:
    """A meta-feature enters by its log when it is positive everywhere: a task of twice the rows takes twice the time."""
    positive = model.meta[name] > 0 and all(row.meta[name] > 0 for row in model.rows)
    return math.log if positive else float


def _checked_cost(cost: Any, where: str) -> float:
    try:
        number = float(cost)
    except (TypeError, ValueError):
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise MethodError(f"TransferCost: the cost of {where} must be positive and finite, not {cost!r}")
    return number


def _checked_meta(meta: Meta | None, where: str) -> dict[str, float]:
    checked = {}
    for name, value in (meta or {}).items():
        try:
            checked[name] = float(value)
        except (TypeError, ValueError):
            checked[name] = math.nan
        if not math.isfinite(checked[name]):
            raise MethodError(f"TransferCost: meta-feature {name!r} of {where} must be a finite number, not {value!r}")
    return checked
