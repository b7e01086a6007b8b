"""The texts of a summary: how many trials there are, why some failed, with how much effort they were suggested, what to do next.

Each text is made from the same counts, so that no two of them contradict each other. Abandoned trials are counted apart: their
configs are asked again, as trials of their own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from .._format import amount, duration, plural
from ..data.history import History
from ..data.trial import State
from ..space.space import Parameter
from ..state.effort import Level, typical_seconds
from ..termination.base import Verdict
from .trial_log import one_line

MAX_KINDS_OF_ERRORS = 3  # that are listed
MAX_ERROR_CHARACTERS = 120  # of each
MIN_TRIALS_FOR_ADVICE = 10
MAX_TARGET_SHARE = 0.25  # of trials at the target: with more of them, a number of trials says how much is paid
EXAMPLE_STORAGE = 'storage="tune.db"'

Ending = Literal["returned", "raised", "terminated"]

_NUMBER = re.compile(r"[-+]?\d[\d.,:]*(e[-+]?\d+)?")
_LOG = re.compile(r" \(log: [^)]*\)")


def summary_text(rows: Sequence[tuple[str, str]]) -> str:
    """Labels and texts in two columns. Further lines of a text stand below its first one."""
    width = max((len(label) for label, _ in rows), default=0) + 2
    indent = "\n" + " " * width
    return "\n".join(f"{label:<{width}}{text.replace(chr(10), indent)}" for label, text in rows)


def trials_text(history: History, *, nothing_new: bool = False) -> str:
    """The number of trials: "30, 10 of them from elsewhere, 2 failed; 1 more was interrupted"."""
    count, added = history.trials_started, history.trials_added
    parts = [f"0 new trials: {count} {'was' if count == 1 else 'were'} there" if nothing_new else str(count)]
    parts += [f"{added} of them from elsewhere"] if added else []
    parts += [f"{number} {state}" for state in (State.FAILED, State.RUNNING) if (number := history.number_of(state))]
    abandoned = history.number_of(State.ABANDONED)
    more = f"; {abandoned} more {'was' if abandoned == 1 else 'were'} interrupted" if abandoned else ""
    return ", ".join(parts) + more


def used_text(used: float, limit: float, unit: str) -> str:
    """What was used of a limit: "3 USD of 4 USD, 1 USD left". A difference that vanishes when it is rounded is not named."""
    text = f"{amount(used, unit)} of {amount(limit, unit)}"
    if not differs(used, limit, unit):
        return text
    return f"{text}, {amount(used - limit, unit)} over" if used > limit else f"{text}, {amount(limit - used, unit)} left"


def differs(one: float, other: float, unit: str) -> bool:
    """Whether two amounts differ as they are shown."""
    return amount(one, unit) != amount(other, unit)


def failures_text(history: History) -> str:
    """The most frequent errors, one kind on a line, with the first trial of each; empty if no trial has failed.

    Errors that differ only in their numbers are of one kind.
    """
    counts: Counter[str] = Counter()
    first: dict[str, tuple[str, int]] = {}
    for trial in history.having(State.FAILED):
        line = error_line(trial.error)
        kind = _NUMBER.sub("#", line)
        counts[kind] += 1
        first.setdefault(kind, (line, trial.number))
    lines = []
    for kind, count in counts.most_common(MAX_KINDS_OF_ERRORS):
        line, number = first[kind]
        place = f"trial {number}" if count == 1 else f"first in trial {number}"
        lines.append(f"{plural(count, 'time')}: {line}, {place}")
    others = sum(counts.values()) - sum(count for _, count in counts.most_common(MAX_KINDS_OF_ERRORS))
    return "\n".join([*lines, f"{plural(others, 'time')}: other errors"] if others else lines)


def error_line(error: str | None) -> str:
    """The first line of an error, without the path of a log file, cut if it is very long."""
    line = _LOG.sub("", (error or "").strip().partition("\n")[0]) or "no reason is known"
    return one_line(line, MAX_ERROR_CHARACTERS)


def effort_text(history: History, seconds: Mapping[Level, float]) -> str:
    """How many trials were suggested with less effort, and why; empty if none was.

    seconds   of a suggestion, by its level of effort, as far as they are known
    """
    levels = Counter(trial.basis.get("effort") for trial in history)
    reduced, random = levels["reduced"], levels["random"]
    if not reduced and not random:
        return ""
    counts = [f"{plural(reduced, 'trial')} suggested with less effort"] if reduced else []
    counts += [f"{random} at random" if reduced else f"{plural(random, 'trial')} suggested at random"] if random else []
    why = "a suggestion of the model takes longer than it saves"
    took, trial_seconds = seconds.get("full", seconds.get("reduced")), typical_seconds(history)
    if took is not None and trial_seconds is not None:
        why += f": {duration(took)}, and a trial takes {duration(trial_seconds)}"
    return f"{', '.join(counts)}; {why}"


def few_at_target_text(history: History) -> str:
    """That a budget in trials went to low fidelities, and which kind of budget suits them; empty if it did not.

    A model that chooses fidelities buys information per unit of cost, and a trial at a low fidelity costs little. A number of
    trials says nothing of how much may be paid. Trials that no model has suggested do not count, and one that was pruned was
    meant for the target.
    """
    chosen = [trial for trial in history if trial.suggestion.get("model") and trial.state is not State.ABANDONED]
    low = sum(not history.at_target(trial) and trial.number not in history.table.pruned for trial in chosen)
    if not history.space.target or len(chosen) < MIN_TRIALS_FOR_ADVICE or low < (1.0 - MAX_TARGET_SHARE) * len(chosen):
        return ""
    return (
        f"{low} of {plural(len(chosen), 'trial')} that the model chose were below the target, since these cost little. "
        "With a budget in cost or in time, more of it goes to the target"
    )


def next_step(
    history: History, stop: Verdict, *, direction: str, stored: str | None, ending: Ending = "returned"
) -> str:
    """How to go on, for a user of Python.

    stored   where the study is kept, in words; None if it is in memory
    ending   how the run has ended: with a result, with a KeyboardInterrupt, or with the end of the process
    """
    owner = "error.study" if ending == "raised" else "result.study"
    call = f"{owner}.{direction}(objective, budget=...)"
    if stop.kind == "exhausted":
        return "every config of the space was evaluated; to go on, widen the space" + (
            " and give extend=True" if stored else f": st.Study(wider, prior=[{owner}])"
        )
    if stored is not None:
        how = {"budget": "the same call with a larger budget", "rule": "the same call with stop=None"}
        what = how.get(stop.kind, "the same call again") if stop.stop else call
        step = f"{what}; {stored}"
    elif ending == "terminated":
        return f"the study was in memory and ends with the process; with {EXAMPLE_STORAGE} the same call goes on"
    elif ending == "raised":
        return f"{call}, where error is this KeyboardInterrupt; with {EXAMPLE_STORAGE} the same call goes on"
    elif not stop.stop:
        step = call
    else:
        step = call + {"budget": " with a larger budget", "rule": f" after {owner}.rule = None"}.get(stop.kind, "")
    if history.best is not None:
        return step
    explained = [trial.number for trial in history.having(State.FAILED) if trial.traceback]
    return f"look at {owner}.history[{explained[-1]}].traceback, then {step}" if explained else step


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
    text += ", resumable" if fields.get("resumable") else ""
    return text + (f", when {condition_text(fields['when'])}" if fields.get("when") else "")


def condition_text(when: Mapping[str, Any]) -> str:
    """The condition of a conditional parameter: "booster = dart or gblinear and depth = 3"."""
    return " and ".join(
        f"{name} = {' or '.join(map(str, value)) if isinstance(value, list) else value}" for name, value in when.items()
    )
