"""``minimize`` and ``maximize``: one call from an objective and a space to a result."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Literal

from ._format import plural
from ._optuna_names import hint_arguments
from .budget import Budget, read_budget
from .cost.base import CostModel
from .cost.meter import Meter
from .errors import BudgetError
from .execution.evaluate import Objective
from .execution.interruption import OnInterrupt
from .execution.objective import check_objective, name_of
from .report.result import Result
from .space.space import Space
from .state.persistence import LEASE_SECONDS
from .storage import Storage
from .storage.trial_lifecycle import MAX_RETRIES
from .study import INITIAL_TRIALS, Callback, Study
from .surrogate.base import Surrogate
from .surrogate.subset import Subset
from .termination.base import Rule

RUN_OPTIONS = (
    "workers", "executor", "timeout", "retries", "max_retries", "threads", "callbacks", "raise_errors", "fail_fast",
    "max_failures", "on_interrupt", "progress", "confirm",
)  # fmt: skip


@hint_arguments
def minimize(
    objective: Objective,
    space: Space,
    budget: str | int | Budget,
    *,
    method: Any = "auto",
    stop: Rule | Literal["auto"] | None = "auto",
    seed: int | None = 0,
    workers: int | None = None,
    executor: Any = None,
    timeout: float | str | None = None,
    retries: int = 0,
    max_retries: int = MAX_RETRIES,
    threads: bool = False,
    callbacks: Callback | Iterable[Callback] = (),
    raise_errors: bool = False,
    fail_fast: bool = True,
    max_failures: int | None = None,
    on_interrupt: OnInterrupt | None = None,
    progress: bool | None = None,
    confirm: bool = False,
    storage: str | os.PathLike[str] | Storage | None = None,
    name: str | None = None,
    extend: bool = False,
    lease: float = LEASE_SECONDS,
    cost: str | Meter | None = None,
    unit: str | None = None,
    per_hour: float | None = None,
    model: Surrogate | None = None,
    subset: Subset | Literal["auto"] | None = "auto",
    cost_model: CostModel | Literal["auto"] = "auto",
    initial: int = INITIAL_TRIALS,
    checkpoints: str | os.PathLike[str] | None = None,
    prior: Iterable[Any] = (),
    prune: bool | None = None,
) -> Result:
    """Find the config with the lowest value: ``st.minimize(train, space, budget="10m", seed=0)``.

    The whole search in one call. Use a ``Study`` for ask and tell, or to run in several parts.

    objective  takes a config (a dict), and the running trial as a second argument if it has one; returns a number or an
               ``st.Outcome``
    space      an ``st.Space``
    budget     "10m" (time), "20 USD" (cost), 40 (trials), or ``st.Budget(...)``
    cost       what is counted where the objective reports no cost: "seconds", "cpu", "gpu", "energy", st.Money(per_hour=2.5)
    name       of the study, by default the objective's: with ``storage=`` the same call goes on with it

    The other options are those of ``Study`` and of ``Study.minimize``.

    >>> space = st.Space(lr=st.Float(1e-5, 1e-1, log=True), depth=st.Int(2, 12))
    >>> result = st.minimize(lambda config: (config["depth"] - 6) ** 2, space, budget=8, method=st.Sobol())
    >>> result.best.config["depth"], result.best.value
    (6, 0.0)
    """
    return _optimize("minimize", **locals())


@hint_arguments
def maximize(
    objective: Objective,
    space: Space,
    budget: str | int | Budget,
    *,
    method: Any = "auto",
    stop: Rule | Literal["auto"] | None = "auto",
    seed: int | None = 0,
    workers: int | None = None,
    executor: Any = None,
    timeout: float | str | None = None,
    retries: int = 0,
    max_retries: int = MAX_RETRIES,
    threads: bool = False,
    callbacks: Callback | Iterable[Callback] = (),
    raise_errors: bool = False,
    fail_fast: bool = True,
    max_failures: int | None = None,
    on_interrupt: OnInterrupt | None = None,
    progress: bool | None = None,
    confirm: bool = False,
    storage: str | os.PathLike[str] | Storage | None = None,
    name: str | None = None,
    extend: bool = False,
    lease: float = LEASE_SECONDS,
    cost: str | Meter | None = None,
    unit: str | None = None,
    per_hour: float | None = None,
    model: Surrogate | None = None,
    subset: Subset | Literal["auto"] | None = "auto",
    cost_model: CostModel | Literal["auto"] = "auto",
    initial: int = INITIAL_TRIALS,
    checkpoints: str | os.PathLike[str] | None = None,
    prior: Iterable[Any] = (),
    prune: bool | None = None,
) -> Result:
    """Find the config with the highest value: as ``minimize`` in all else.

    Use it for scores such as accuracy. Values are shown as you return them.

    >>> result = st.maximize(lambda config: -abs(config["n"] - 3), st.Space(n=st.Int(1, 5)), budget=5, method=st.Sobol())
    >>> result.best.config, result.best.value
    ({'n': 3}, 0.0)
    """
    return _optimize("maximize", **locals())


def _optimize(
    direction: Literal["minimize", "maximize"], objective: Objective, space: Space, budget: Any, **options: Any
) -> Result:
    run = {name: options.pop(name) for name in RUN_OPTIONS}
    limit = read_budget(budget)  # before a study is made
    if isinstance(space, Space):
        check_objective(objective, space)
    if options["unit"] is not None and limit.unit not in (None, options["unit"]):
        raise BudgetError(f"unit={options['unit']!r} and a budget in {limit.unit}: costs have one unit; give one of the two")
    options["unit"] = limit.unit if options["unit"] is None else options["unit"]
    if options["name"] is None:
        options["name"] = name_of(objective, default="study")
    study = Study(space, direction=direction, **options)
    try:
        return study.minimize(objective, limit, **run) if direction == "minimize" else study.maximize(objective, limit, **run)
    except (Exception, KeyboardInterrupt) as error:
        error.study = study  # type: ignore[union-attr]
        if kept := study.state.history.trials_started:  # as the summary counts them
            where = "in this exception's .study" if study.state.heartbeat is None else f"in {study.storage.url}"
            error.add_note(f"nothing is lost: {plural(kept, 'trial')} of the study, {where}")
        raise
