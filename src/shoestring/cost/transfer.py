"""A cost model transferred from earlier studies: useful from the first trial on, corrected by what this study observes.

A regressor is fitted to the earlier rows (config, meta-features, cost) once for each space (``transfer_regressors``). Configs
that do not fit the space are skipped. Its prediction is the prior mean of log cost. How far it can be off, as a whole and in the
slope of each hyperparameter, was learned on earlier tasks that it had not seen. So a few costs change it as much as they should.

Notation
    q(x)                        the transferred prediction of log cost
    V, sigma^2                  variances of its error between tasks (intercept, slopes) and within one
    d_i = gamma_i - q(x_i)      its error in this study
    (1)  corrected   q + b_0 + sum_k b_k f_k, fitted to d by ridge regression with b ~ N(0, diag(V)): first mostly a shift
    (2)  with a GP   the same and a GP on what is left of d
    (3)  overruled   the online model fitted to gamma alone

Below MIN_COSTS_FOR_MIXTURE observations only (1) is used. From there on the three are mixed by their leave-one-out predictions of
this study's costs, as in ``auto``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from .auto import MIN_COSTS_FOR_MIXTURE, SCORE_TEMPERATURE, mix, score
from .base import CostModel, CostObservations, CostPosterior, WarmStart, theta_of
from .features import CostFeatures
from .linear import LinearCost, LinearPosterior, WeightPrior
from .log_gp import with_residuals
from .transfer_regressors import REGRESSORS, FittedRegressor, fit_regressor

PRIOR_OBSERVATIONS = 4.0  # what the offline estimate of sigma^2 counts as
PRIOR_WEIGHTS = (3.0, 3.0, 1.0)  # of the three parts before any score: the transfer has to be overruled by evidence
DIFFERENCE_STEP = 0.01  # of the unit cube: wide, since trees and nearest neighbours are locally constant

Meta = Mapping[str, float]


@dataclass(frozen=True)
class Row:
    """One earlier evaluation; ``task`` is the same for all rows of one task."""

    config: Mapping[str, Any]
    meta: Meta
    cost: float
    task: str


@dataclass(frozen=True, eq=False)  # equal only to itself, so that its fitted regressor can be cached by identity
class TransferCost(CostModel):
    """A cost model learned from earlier runs: useful from the first trial on, and corrected by what this study observes.

    Use it where you have tuned similar things before. Make it with ``from_rows`` or ``from_studies``.

    rows       earlier evaluations
    meta       meta-features of this task, such as the number of rows of its data
    regressor  "task_linear", "linear", ...
    online     the model that may correct or overrule the transfer

    >>> rows = [({"depth": d}, {"rows": n}, d * n / 1000) for d in (2, 4, 8) for n in (1000, 2000)]
    >>> model = st.TransferCost.from_rows(rows, meta={"rows": 5000})
    >>> st.Study(st.Space(depth=st.Int(1, 16)), method=st.EIpu(), cost_model=model).context.cost.name
    'transferred (task_linear, 6 rows)'
    """

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
        """From (config, meta-features of its task, cost); rows with equal meta-features count as one task.

        >>> st.TransferCost.from_rows([({"depth": 2}, None, 3.0)], regressor="linear").rows[0].cost
        3.0
        """
        read = []
        for number, row in enumerate(rows):
            try:
                config, task_meta, cost = row
            except (TypeError, ValueError):
                raise MethodError(f"TransferCost: row {number} must be (config, meta-features, cost), not {row!r}") from None
            task_meta = _checked_meta(task_meta, f"row {number}")
            read.append(Row(dict(config), task_meta, _checked_cost(cost, f"row {number}"), repr(sorted(task_meta.items()))))
        return cls(tuple(read), _checked_meta(meta, "meta"), regressor, online or LinearCost())

    @classmethod
    def from_studies(
        cls, studies: Iterable[Any], metas: Sequence[Meta] | None = None, meta: Meta | None = None,
        regressor: str | None = None, online: CostModel | None = None,
    ) -> TransferCost:
        """From every finished or failed trial whose cost is known exactly. A study counts as one task.

        studies    studies or histories
        metas      the meta-features of each study's task
        meta       those of this one
        regressor  "linear" without meta-features, unless another one is named

        >>> earlier = st.Study(st.Space(depth=st.Int(1, 16)))
        >>> _ = earlier.add({"depth": 4}, value=0.2, cost=12.0)
        >>> len(st.TransferCost.from_studies([earlier]).rows)
        1
        """
        earlier = list(studies)
        if metas is not None and len(metas) != len(earlier):
            raise MethodError(f"TransferCost: {len(earlier)} studies need as many metas, not {len(metas)}")
        read = []
        for number, study in enumerate(earlier):
            task_meta = _checked_meta(metas[number] if metas is not None else None, f"metas[{number}]")
            for trial in getattr(study, "history", study):
                if trial.cost is not None and trial.state in (State.DONE, State.FAILED) and not trial.censored:
                    cost = _checked_cost(trial.cost, f"study {number}, trial {trial.number}")
                    read.append(Row(dict(trial.config), task_meta, cost, str(number)))
        return cls(
            tuple(read), _checked_meta(meta, "meta"), regressor or ("task_linear" if metas and meta else "linear"),
            online or LinearCost(),
        )

    @property
    def shared_meta(self) -> tuple[str, ...]:
        """Meta-features that this task and every row have; none for the plain linear regressor."""
        if self.regressor == "linear":
            return ()
        return tuple(name for name in self.meta if all(name in row.meta for row in self.rows))

    def fit(self, costs: CostObservations, encoding: Encoding, warm_start: WarmStart | None = None) -> CostPosterior:
        return hand_over(transferred(self, encoding), costs, encoding, self.online, warm_start)

    def check_space(self, space: Space) -> None:
        if isinstance(self.online, CostModel):
            self.online.check_space(space)


def transferred(model: TransferCost, encoding: Encoding) -> TransferredLogCost:
    """The transferred prediction in a space."""
    regressor, used, meta = _fitted(model, encoding.space)
    return TransferredLogCost(f"transferred ({model.regressor}, {used} rows)", CostFeatures(encoding), regressor, meta)


@lru_cache(maxsize=8)
def _fitted(model: TransferCost, space: Space) -> tuple[FittedRegressor, int, Array]:
    """The regressor fitted to the rows, how many rows were used, and M of this task. Cached, since an MLP takes seconds."""
    points, rows = [], []
    for row in model.rows:
        try:
            config = space.check({name: value for name, value in row.config.items() if name in space})
        except ConfigError:
            continue  # a value that this space does not have, so there is no feature for it
        points.append(space.encode(config))
        rows.append(row)
    if not rows:
        raise MethodError(f"TransferCost: none of the {len(model.rows)} rows fits the space ({', '.join(space.names)})")
    F = CostFeatures(Encoding(space))(np.array(points))
    scales = {name: _scale(model, name) for name in model.shared_meta}
    M = [[scale(row.meta[name]) for name, scale in scales.items()] for row in rows]
    meta = np.array([scale(model.meta[name]) for name, scale in scales.items()], dtype=float)
    G: Array = np.column_stack([F, np.array(M, dtype=float).reshape(len(rows), -1)])
    _, tasks = np.unique([row.task for row in rows], return_inverse=True)
    return fit_regressor(model.regressor, G, np.log([row.cost for row in rows]), tasks, Encoding(space).groups), len(rows), meta


def _scale(model: TransferCost, name: str) -> Callable[[float], float]:
    """A meta-feature that is always positive enters by its logarithm: a task of twice the rows takes twice the time."""
    positive = model.meta[name] > 0 and all(row.meta[name] > 0 for row in model.rows)
    return math.log if positive else float


@dataclass(frozen=True)
class TransferredLogCost:
    """q and its gradient at points; ``meta`` are the meta-features of this task."""

    name: str
    features: CostFeatures
    regressor: FittedRegressor
    meta: Array

    @property
    def error_prior(self) -> WeightPrior:
        """What its error in this task is expected to be, from its errors in held-out earlier tasks."""
        between, within = self.regressor.between, self.regressor.within
        return WeightPrior(np.zeros(len(between)), within / between, (within, PRIOR_OBSERVATIONS))

    def __call__(self, U: Array) -> Array:
        if len(U) == 0:
            return np.empty(0)  # scikit-learn refuses an empty array
        F = self.features(U)
        return np.asarray(self.regressor.predict(np.column_stack([F, np.tile(self.meta, (len(U), 1))])))

    def with_gradient(self, U: Array) -> tuple[Array, Array]:
        value = self(U)
        if self.regressor.weights is not None:
            weights = self.regressor.weights[1 : 1 + len(self.features.groups)]
            return value, self.features.pull_back(U, np.tile(weights, (len(U), 1)))
        space, gradient = self.features.encoding.space, np.zeros(U.shape)
        active = space.active(U)
        for j, parameter in enumerate(space.values()):
            if isinstance(parameter, Choice):
                continue
            ahead, behind = U.copy(), U.copy()
            ahead[:, j], behind[:, j] = np.minimum(U[:, j] + DIFFERENCE_STEP, 1.0), np.maximum(U[:, j] - DIFFERENCE_STEP, 0.0)
            # A parent that moves may activate others: then the difference is no derivative, and 0 is the safer answer.
            same = (space.active(ahead) == active).all(axis=1) & (space.active(behind) == active).all(axis=1)
            derivative = (self(ahead) - self(behind)) / (ahead[:, j] - behind[:, j])
            gradient[:, j] = np.where(active[:, j] & same, derivative, 0.0)
        return value, gradient


def hand_over(
    transfer: TransferredLogCost, costs: CostObservations, encoding: Encoding, online: CostModel, warm_start: WarmStart | None
) -> CostPosterior:
    """The transferred prediction and what this study's costs make of it, equations (1) to (3)."""
    base = transfer(costs.U)
    errors = costs.with_gamma(costs.log_cost - base)
    everything = list(range(len(encoding.space)))
    F = transfer.features(costs.U)
    linear = LinearPosterior.given(transfer.features, everything, transfer.error_prior, F, errors.log_cost)
    name = transfer.name if len(costs) == 0 else f"{transfer.name} + shift and slopes"
    corrected = Corrected(name, transfer, base, linear)
    if len(costs) < MIN_COSTS_FOR_MIXTURE:
        return corrected
    last = {entry["kind"]: entry for entry in (warm_start or {}).get("parts", ())} or {(warm_start or {}).get("kind"): warm_start}
    start = theta_of(last.get("CorrectedByGP"), "CorrectedByGP")
    residual = with_residuals(linear, errors, encoding, start)
    parts: list[CostPosterior] = [
        corrected,
        CorrectedByGP(f"{name} + GP", transfer, base, residual, residual.theta),
        Overruling(online.fit(costs, encoding)),
    ]
    scores = np.array([score(part, costs) for part in parts])
    return mix(parts, np.log(PRIOR_WEIGHTS) + scores / SCORE_TEMPERATURE)


@dataclass(frozen=True)
class Corrected(CostPosterior):
    """The transferred prediction plus a correction from this study."""

    name: str
    transfer: TransferredLogCost
    base: Array  # q at the observations
    correction: CostPosterior

    def log_cost(self, U: Array) -> tuple[Array, Array]:
        mean, variance = self.correction.log_cost(U)
        return self.transfer(U) + mean, variance

    def log_cost_with_gradient(self, U: Array) -> tuple[Array, Array, Array, Array]:
        value, gradient = self.transfer.with_gradient(U)
        mean, variance, d_mean, d_variance = self.correction.log_cost_with_gradient(U)
        return value + mean, variance, gradient + d_mean, d_variance

    def leave_one_out(self) -> tuple[Array, Array]:
        mean, variance = self.correction.leave_one_out()
        return self.base + mean, variance


@dataclass(frozen=True)
class CorrectedByGP(Corrected):
    """The same with a GP in the correction; ``theta`` are its hyperparameters."""

    theta: tuple[float, ...] = ()


@dataclass(frozen=True)
class Overruling(CostPosterior):
    """The online model of this study, which overrules the transfer."""

    own: CostPosterior
    name: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", f"{self.own.name} (transfer overruled)")

    def log_cost(self, U: Array) -> tuple[Array, Array]:
        return self.own.log_cost(U)

    def log_cost_with_gradient(self, U: Array) -> tuple[Array, Array, Array, Array]:
        return self.own.log_cost_with_gradient(U)

    def leave_one_out(self) -> tuple[Array, Array]:
        return self.own.leave_one_out()


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
