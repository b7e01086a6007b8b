"""The shortest way in: one call from an objective and a space to a result."""

from __future__ import annotations

from typing import Any, Literal

from .budget import Budget, read_budget
from .errors import MethodError
from .evaluate import Objective
from .result import Result
from .space import Space
from .study import Study
from .wording import plural

RUNNING = ("callbacks", "raise_errors", "progress", "confirm", "workers", "executor", "timeout", "retries", "threads")


def minimize(objective: Objective, space: Space, budget: str | int | Budget, **options: Any) -> Result:
    """Find the config with the lowest value: ``st.minimize(train, space, budget="10m", seed=0)``.

    The objective takes a config (a dict) and returns a number or an ``st.Outcome``. ``options`` are those of ``Study``
    and of ``Study.minimize``.
    """
    return _optimize("minimize", objective, space, budget, options)


def maximize(objective: Objective, space: Space, budget: str | int | Budget, **options: Any) -> Result:
    """As ``minimize``, the other way up."""
    return _optimize("maximize", objective, space, budget, options)


def _optimize(
    direction: Literal["minimize", "maximize"], objective: Objective, space: Space, budget: Any, options: dict[str, Any]
) -> Result:
    running = {name: options.pop(name) for name in RUNNING if name in options}
    if "direction" in options:
        raise MethodError(f"st.{direction} has its direction in its name; leave direction= out")
    read_budget(budget)
    study = Study(space, direction=direction, **options)
    try:
        return getattr(study, direction)(objective, budget, **running)  # type: ignore[no-any-return]
    except Exception as error:
        error.study = study  # type: ignore[attr-defined]
        error.add_note(f"{plural(len(study.ledger), 'trial')} of the study are kept: they are in this exception's .study")
        raise

