"""A study as text, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from .budget import Budget
from .errors import ShoestringError, StudyError
from .space import Space
from .trial import Trial

if TYPE_CHECKING:
    from .study import Study

VERSION = 1
SETTINGS = ("name", "direction", "seed", "initial", "unit", "per_hour")


def to_json(study: Study) -> str:
    """The whole state but for method, model and rule, which are code."""
    state: dict[str, Any] = {"shoestring": VERSION} | {name: getattr(study, name) for name in SETTINGS}
    state["seconds"] = study.seconds
    state["budget"] = None if study.budget is None else asdict(study.budget)
    state["space"] = json.loads(study.space.to_json())
    state["trials"] = [trial.to_dict() | {"basis": {}} for trial in study.ledger.trials]  # by a clock that stays here
    state["queue"] = [[dict(each.config), dict(each.suggestion)] for each in study.ledger.queue]
    return json.dumps(state, allow_nan=False)


def from_json(kind: type[Study], text: str, **code: Any) -> Study:
    """A study as ``to_json`` left it; ``code`` is its method, model and rule."""
    try:
        state = json.loads(text)
        if not isinstance(state, Mapping) or "shoestring" not in state:
            raise StudyError("this is not a study; expected the text that Study.to_json() wrote")
        if state["shoestring"] != VERSION:
            raise StudyError(f"this study was written in format {state['shoestring']!r}; this version reads {VERSION}")
        budget = Budget(**state["budget"]) if state.get("budget") else None
        settings = {name: state[name] for name in SETTINGS if name != "per_hour"} | {"per_hour": state.get("per_hour")}
        study = kind(Space.from_json(state["space"]), **settings, budget=budget, **code)
        study.unit = state["unit"]
        study.seconds = float(state["seconds"])
        for record in state["trials"]:
            study.ledger.write(Trial.from_dict(record))
        for config, suggestion in state["queue"]:
            study.ledger.enqueue(config, suggestion)
    except json.JSONDecodeError as error:
        raise StudyError(f"this study cannot be read: {error}") from None
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, ShoestringError):
            raise
        raise StudyError(f"this study cannot be read: {type(error).__name__}: {error}") from error
    return study
