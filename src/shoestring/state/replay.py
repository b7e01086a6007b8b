"""Whether a study's suggestions can be computed again from what is stored.

Each trial says what its suggestion was made from (``basis``): which trials it has ``seen`` (the study's clock then), how many
``reports`` there were of those without a result, its ``spending``, its place in a ``batch``, and its ``space`` if the study was
extended. From these, the seed and the code it must come out the same, in whatever process and however many workers there were.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..data.history import History
from ..data.intermediate import asked_again
from ..data.trial import State, Suggestion, Trial
from ..search.base import SearchContext
from ..search.batch import suggest_many
from ..search.budget_filter import filter_by_budget
from ..space.space import Config
from ..storage import Stored
from ..surrogate.belief import Spending

if TYPE_CHECKING:
    from ..study import Study

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
    stored = study.storage.since(study.state.study, 0).trials
    for trial in [each.trial for each in stored]:
        if "seen" not in trial.basis:
            passed_over += 1
            continue
        config, again = asked(trial), suggested_again(study, trial, stored)
        checked += 1
        if config != again:
            return Replay(checked, passed_over, (trial.number, described(config, again)))
    return Replay(checked, passed_over, None)


def asked(trial: Trial) -> Config:
    """The config as it was suggested, also of a trial that was stopped before it got there."""
    return {**trial.config, **trial.suggestion.get("asked", {})}


def suggested_again(study: Study, trial: Trial, stored: Sequence[Stored]) -> Config:
    found: Suggestion
    context = then(study, trial, stored)
    if "batch" in trial.basis:
        place, count = trial.basis["batch"]
        found = suggest_many(study.method, context, count)[place]
    else:
        found = filter_by_budget(study.method.suggest(context), context)
    return found.config


def then(study: Study, trial: Trial, stored: Sequence[Stored]) -> SearchContext:
    """All that the method could look at when it suggested the trial."""
    past = known_at(stored, trial.basis["seen"], trial.basis.get("reports", {}))
    space = study.spaces[min(trial.basis.get("space", 0), len(study.spaces) - 1)]
    history = History(tuple(past), space, study.direction == "maximize")
    spending = trial.basis.get("spending")
    return replace(study.context_of(history), spending=None if spending is None else Spending(*spending))


# -- what was known ----------------------------------------------------------------------------------------------------


def reports_seen(history: History) -> dict[str, int]:
    """How many reports there are of trials without a result, by their numbers.

    They may become more, and nobody keeps when. Those of a trial that was abandoned count in some spaces only, until its config
    is asked again.
    """
    running = [trial for trial in history.having(State.RUNNING) if trial.reports]
    left = [trial for trial in history.having(State.ABANDONED) if trial.reports] if history.space.fidelities else []
    left = [trial for trial in left if not asked_again(trial, history.trials, history.space)]
    return {str(trial.number): len(trial.reports) for trial in [*left, *running]}


def known_at(stored: Sequence[Stored], clock: int, reports: Mapping[str, int]) -> Iterable[Trial]:
    """The trials as they were at a moment of the past; ``reports`` as ``reports_seen`` gave them then."""
    for each in stored:
        trial, (opened, abandoned, closed) = each.trial, each.clocks
        if opened > clock:
            return
        told = reports.get(str(trial.number), 0)
        if closed is not None and closed <= clock:
            yield trial
        elif abandoned is not None and abandoned <= clock:
            yield trial if trial.state is State.ABANDONED else as_asked(trial, State.ABANDONED, told)
        else:
            yield as_asked(trial, State.RUNNING, told)


def as_asked(trial: Trial, state: State, told: int) -> Trial:
    """A trial as it was before its result was known, when it had reported ``told`` times."""
    fidelity = trial.suggestion.get("asked", trial.fidelity)  # of one that was stopped early, what it was asked for
    suggestion = {name: value for name, value in trial.suggestion.items() if name not in ("asked", "stopped")}
    config, reports = {**trial.config, **fidelity}, trial.reports[:told]
    return Trial(trial.number, config, state, fidelity=fidelity, suggestion=suggestion, asked_at=trial.asked_at, reports=reports)


# -- in words ----------------------------------------------------------------------------------------------------------


def described(stored: Config, again: Config) -> str:
    """lr was 0.013 and is 0.012"""
    changed = [name for name in {**stored, **again} if stored.get(name) != again.get(name)]
    return "; ".join(f"{name} was {shown(stored, name)} and is {shown(again, name)}" for name in changed)


def shown(config: Config, name: str) -> Any:
    return repr(config[name]) if name in config else "not there"
