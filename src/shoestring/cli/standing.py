"""How a study stands: in words and as JSON, from its trials alone, without fitting a model."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..trial import State, Trial
from ..wording import amount, config_text, duration, plural, rounded

if TYPE_CHECKING:
    from .. import Study
    from ..space import Parameter


def trial_json(trial: Trial) -> dict[str, Any]:
    """The part of a trial that most programs want; ``show`` and ``export`` give all of it."""
    keys = ("number", "state", "value", "cost", "seconds", "config", "error")
    return {key: value for key, value in trial.to_dict().items() if key in keys}


def study_json(study: Study) -> dict[str, Any]:
    """A study without its trials."""
    log = study.log
    return {
        "study": study.name,
        "direction": study.direction,
        "trials": len(log),
        "states": {str(state): count for state, count in Counter(trial.state for trial in log).items()},
        "spent": log.spent,
        "unit": study.unit,
        "best": None if log.best is None else trial_json(log.best),
    }


def standing_rows(study: Study) -> list[tuple[str, str]]:
    """Trials, spent, best, config."""
    log = study.log
    counts = Counter(trial.state for trial in log)
    others = [f"{counts[state]} {state}" for state in (State.FAILED, State.ABANDONED, State.RUNNING) if counts[state]]
    rows = [("trials", ", ".join([str(len(log)), *others])), ("spent", amount(log.spent, study.unit))]
    return rows + best_rows(study)


def best_rows(study: Study) -> list[tuple[str, str]]:
    best = study.log.best
    if best is not None:
        return [("best", f"{rounded(best.value)} (trial {best.number})"), ("config", config_text(best.config))]
    failed = study.log.having(State.FAILED)
    return [("best", "nothing has succeeded yet" + (f"; the last error: {first_line(failed[-1].error)}" if failed else ""))]


def running_rows(study: Study) -> list[tuple[str, str]]:
    """What is being evaluated at this moment, and for how long."""
    running = study.log.having(State.RUNNING)
    shown = [f"{trial.number}{'' if trial.asked_at is None else f' for {age(trial.asked_at)}'}" for trial in running[:8]]
    more = [f"{len(running) - 8} more"] if len(running) > 8 else []
    return [("running", "trial " + ", ".join([*shown, *more]))] if running else []


def parameter_text(parameter: Parameter) -> str:
    """A parameter in words: "whole number from 2 to 12, log scale"."""
    fields = parameter.to_dict()
    if "options" in fields:
        text = "one of " + ", ".join(map(str, fields["options"]))
    else:
        kind = "fidelity" if parameter.fidelity else "whole number" if fields["kind"] == "int" else "real number"
        text = f"{kind} from {fields['low']:g} to {fields['high']:g}"
    text += ", log scale" if fields.get("log") else ""
    text += f", steps of {fields['step']:g}" if fields.get("step") else ""
    text += f", target {fields['target']:g}" if fields.get("target") is not None else ""
    return text + (f", when {condition_text(fields['when'])}" if fields.get("when") else "")


def condition_text(when: Mapping[str, Any]) -> str:
    return " and ".join(
        f"{name} = {' or '.join(map(str, value)) if isinstance(value, list) else value}" for name, value in when.items()
    )


def first_line(text: str | None, length: int = 200) -> str:
    line = (text or "").strip().partition("\n")[0]
    return line if len(line) <= length else line[:length] + "..."


def age(moment: float) -> str:
    """How long ago a moment (seconds since 1970) was."""
    return duration(max(time.time() - moment, 0.0))


def ago(moment: float) -> str:
    """The same in coarse steps: "3 days ago"."""
    seconds = max(time.time() - moment, 0.0)
    for length, noun in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= length:
            return f"{plural(int(seconds // length), noun)} ago"
    return "just now"
