"""From what the user wrote as ``method=`` to a search method."""

from __future__ import annotations

from typing import Any

from ..acquisition.improvement import LogEI
from ..errors import MethodError
from .bayes import Bayes
from .method import Method


def choose_method(method: Any) -> Method:
    """``"auto"``, a search method, or an acquisition."""
    if isinstance(method, str):
        if method == "auto":
            return Bayes(LogEI())
        raise MethodError(f'method={method!r} is not known; give "auto" or an object such as st.EI() or st.Random()')
    if isinstance(method, type):
        raise MethodError(f"method={method.__name__} is a class; write {method.__name__}()")
    if hasattr(method, "suggest"):
        return method  # type: ignore[no-any-return]
    if hasattr(method, "on"):
        return Bayes(method)
    raise MethodError(f'method={method!r} is neither a search method nor an acquisition; give "auto", st.EI(), st.Random(), ...')
