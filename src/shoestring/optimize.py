"""``minimize`` and ``maximize``: one call from an objective and a space to a result."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Literal

from ._format import plural
from .budget import Budget, read_budget
from .cost.base import CostModel
from .execution.evaluate import Objective
from .report.result import Result
from .space.space import Space
from .state.persistence import LEASE_SECONDS
from .storage import Storage
from .study import INITIAL_TRIALS, Callback, Study
from .surrogate.base import Surrogate
from .surrogate.subset import Subset
from .termination.base import Rule

RUN_OPTIONS = ("workers", "executor", "timeout", "retries", "threads", "callbacks", "raise_errors", "progress", "confirm")


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
    threads: bool = False,
    callbacks: Callback | Iterable[Callback] = (),
    raise_errors: bool = False,
    progress: bool | None = None,
    confirm: bool = False,
    storage: str | os.PathLike[str] | Storage | None = None,
    name: str = "study",
    extend: bool = False,
    lease: float = LEASE_SECONDS,
    unit: str = "s",
    per_hour: float | None = None,
    model: Surrogate | None = None,
    subset: Subset | Literal["auto"] | None = "auto",
    cost_model: CostModel | Literal["auto"] = "auto",
    initial: int = INITIAL_TRIALS,
    checkpoints: str | os.PathLike[str] | None = None,
) -> Result:
    """Find the config with the lowest value: ``st.minimize(train, space, budget="10m", seed=0)``.

    The objective takes a config (a dict) and returns a number or an ``st.Outcome``. The options are those of ``Study`` and of
    ``Study.minimize``.
    """
    return _optimize("minimize", **locals())


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
    threads: bool = False,
    callbacks: Callback | Iterable[Callback] = (),
    raise_errors: bool = False,
    progress: bool | None = None,
    confirm: bool = False,
    storage: str | os.PathLike[str] | Storage | None = None,
    name: str = "study",
    extend: bool = False,
    lease: float = LEASE_SECONDS,
    unit: str = "s",
    per_hour: float | None = None,
    model: Surrogate | None = None,
    subset: Subset | Literal["auto"] | None = "auto",
    cost_model: CostModel | Literal["auto"] = "auto",
    initial: int = INITIAL_TRIALS,
    checkpoints: str | os.PathLike[str] | None = None,
) -> Result:
    """As ``minimize``, for the highest value."""
    return _optimize("maximize", **locals())


def _optimize(
    direction: Literal["minimize", "maximize"], objective: Objective, space: Space, budget: Any, **options: Any
) -> Result:
    run = {name: options.pop(name) for name in RUN_OPTIONS}
    read_budget(budget)  # before a study is made
    study = Study(space, direction=direction, **options)
    try:
        return study.minimize(objective, budget, **run) if direction == "minimize" else study.maximize(objective, budget, **run)
    except Exception as error:
        error.study = study  # type: ignore[attr-defined]
        error.add_note(f"{plural(len(study.state), 'trial')} of the study are kept: they are in this exception's .study")
        raise
