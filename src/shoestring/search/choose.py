"""From what the user wrote as ``method=`` to a search method."""

from __future__ import annotations

from typing import Any

from ..errors import MethodError
from ..surrogate.cost.auto import AutoCost
from ..surrogate.cost.base import CostModel
from .auto import Auto
from .bayes import Bayes
from .method import Method


def choose_method(method: Any) -> Method:
    """``"auto"``, a search method, or an acquisition."""
    if isinstance(method, str):
        if method == "auto":
            return Auto()
        raise MethodError(f'method={method!r} is not known; give "auto" or an object such as st.EI() or st.Random()')
    if isinstance(method, type):
        raise MethodError(f"method={method.__name__} is a class; write {method.__name__}()")
    if hasattr(method, "suggest"):
        return method  # type: ignore[no-any-return]
    if hasattr(method, "on"):
        return Bayes(method)
    raise MethodError(f'method={method!r} is neither a search method nor an acquisition; give "auto", st.EI(), st.Random(), ...')


def choose_cost_model(model: Any) -> CostModel:
    """``"auto"`` or a cost model."""
    if isinstance(model, str) and model == "auto":
        return AutoCost()
    if isinstance(model, type) or not hasattr(model, "fit"):
        raise MethodError(f'cost_model={model!r} is not a cost model; give "auto", st.LinearCost(), st.KnownCost(f), ...')
    return model  # type: ignore[no-any-return]
