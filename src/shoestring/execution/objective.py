"""Checks of an objective before it is called for the first time, and its name.

What cannot be right for any config is refused here, before a trial is paid for.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from typing import Any

from ..errors import ObjectiveError
from .evaluate import takes_trial

EXAMPLE = 'write it like: def train(config): return loss(config["lr"])'


def check_objective(objective: Any, names: Mapping[str, Any]) -> None:
    """An ObjectiveError unless this can be called with a config; ``names`` are the parameters of the space."""
    if not callable(objective):
        raise ObjectiveError(f"the objective must be a function, not {_short(objective)} ({type(objective).__name__}); {EXAMPLE}")
    if inspect.iscoroutinefunction(objective) or inspect.iscoroutinefunction(type(objective).__call__):
        raise ObjectiveError(
            f"{name_of(objective)} is a coroutine function (async def), which returns no number when it is called; "
            "give a plain function, for example: lambda config: asyncio.run(train(config))"
        )
    try:
        signature = inspect.signature(objective)
    except (TypeError, ValueError):  # some builtins have none
        return
    how = takes_trial(objective)
    arguments: tuple[Any, ...] = ({}, None) if how == "second" else ({},)
    try:
        signature.bind(*arguments, **({"trial": None} if how == "by name" else {}))
    except TypeError as error:
        raise ObjectiveError(
            f"{name_of(objective)}{signature} cannot be called with a config: {error}; "
            f"the objective gets one dict, and the trial as a second argument if it wants it; {EXAMPLE}"
        ) from None
    taken = [each for each in signature.parameters.values() if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    if how == "second" and all(each.name in names for each in taken[:2]):
        raise ObjectiveError(
            f"{name_of(objective)}{signature} takes the parameters one by one, but the objective gets them as one dict; "
            f"give: lambda config: {name_of(objective)}(**config)"
        )


def name_of(objective: Any, default: str = "the objective") -> str:
    """The name of a function, or of the class of a callable object; the default for a lambda."""
    while isinstance(objective, functools.partial):
        objective = objective.func
    name = getattr(objective, "__name__", None) or type(objective).__name__
    return default if "<" in name else str(name)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
