"""Whether a study's suggestions can be computed again from what is stored.

Each trial says what its suggestion was made from (``basis``): which trials it has ``seen`` (the study's clock then), its
``spending`` and its place in a ``batch``. From these, the seed and the code it must come out the same, in whatever process and
however many workers there were.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .search.batch import suggest_many
from .search.fitting import keep_to_budget
from .search.method import Situation
from .space import Config
from .surrogate.belief import Spending
from .trial import Suggestion, Trial

if TYPE_CHECKING:
    from .study import Study


@dataclass(frozen=True)
class Replay:
    """checked           suggestions that were computed again;   passed_over  trials that were not suggested: enqueued or added
    first_difference  the first trial that comes out otherwise, and how; None if there is none
    """

    checked: int
    passed_over: int
    first_difference: tuple[int, str] | None


def replay(study: Study) -> Replay:
    """Compute every suggestion again, in order, until one differs."""
    checked = passed_over = 0
    for trial in study.log:
        if "seen" not in trial.basis:
            passed_over += 1
            continue
        config, again = asked(trial), suggested_again(study, trial)
        checked += 1
        if config != again:
            return Replay(checked, passed_over, (trial.number, described(config, again)))
    return Replay(checked, passed_over, None)


def asked(trial: Trial) -> Config:
    """The config as it was suggested, also of a trial that was stopped before it got there."""
    return {**trial.config, **trial.suggestion.get("asked", {})}


def suggested_again(study: Study, trial: Trial) -> Config:
    found: Suggestion
    situation = then(study, trial)
    if "batch" in trial.basis:
        place, count = trial.basis["batch"]
        found = suggest_many(study.method, situation, count)[place]
    else:
        found = keep_to_budget(study.method.suggest(situation), situation)
    return found.config


def then(study: Study, trial: Trial) -> Situation:
    """All that the method could look at when it suggested the trial."""
    history = study.ledger.known_at(trial.basis["seen"], study.direction == "maximize")
    spending = trial.basis.get("spending")
    return replace(study.situation_of(history), spending=None if spending is None else Spending(*spending))


def described(stored: Config, again: Config) -> str:
    """lr was 0.013 and is 0.012"""
    changed = [name for name in {**stored, **again} if stored.get(name) != again.get(name)]
    return "; ".join(f"{name} was {shown(stored, name)} and is {shown(again, name)}" for name in changed)


def shown(config: Config, name: str) -> Any:
    return repr(config[name]) if name in config else "not there"
