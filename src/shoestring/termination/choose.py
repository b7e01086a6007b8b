"""From what the user wrote as ``stop=`` to a rule."""

from __future__ import annotations

from typing import Any

from ..errors import MethodError
from ..search.method import Method
from ..surrogate.cost.base import CostModel
from .auto import AutoStop
from .verdict import Rule


def choose_rule(stop: Any, method: Method, cost_model: CostModel) -> Rule | None:
    """``"auto"`` (which takes the price of a method that has one, and the study's cost model), None, or a rule."""
    if stop is None:
        return None
    if isinstance(stop, str) and stop == "auto":
        return AutoStop(price=getattr(getattr(method, "acquisition", None), "price", None), cost_model=cost_model)
    if isinstance(stop, type):
        raise MethodError(f"stop={stop.__name__} is a class; write {stop.__name__}(...)")
    if not hasattr(stop, "check"):
        raise MethodError(
            f'stop={stop!r} is not a rule; give "auto", None, st.RegretBound(0.01), st.Patience(30), ..., '
            "or an object with check(history, space)"
        )
    return stop  # type: ignore[no-any-return]
