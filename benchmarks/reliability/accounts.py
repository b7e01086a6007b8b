"""Whether a journal and a storage agree: nothing that was acknowledged is lost, nothing is there twice, the budget is exact.

An evaluation whose worker was killed is a failed trial, one whose coordinator was killed is abandoned and its config asked again:
both are accounted for. Lost is only what ``tell`` had acknowledged.
"""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shoestring.data.trial import State
from shoestring.storage.base import StoredTrial

Line = dict[str, Any]


def read(journal: Path) -> list[Line]:
    """All whole lines; a process may have been killed in the middle of one."""
    lines = []
    for text in journal.read_text().splitlines() if journal.exists() else ():
        try:
            lines.append(json.loads(text))
        except json.JSONDecodeError:
            lines.append({"torn": text})
    return lines


def judge(stored: Sequence[StoredTrial], waiting: int, lines: Sequence[Line], goal: int) -> dict[str, Any]:
    """Counts; all under ``wrong`` must be 0.

    lost         acknowledged, and not in the storage with that state, value and config
    duplicated   a number twice in the storage or acknowledged twice, evaluated twice, or a config done by two trials of which
                 none was abandoned
    made_up      done with a value that no evaluation of that trial has had
    left_open    running or waiting at the end
    budget       finished trials too few or too many; a late result of a trial that was asked again may be one too many
    """
    trials = {each.trial.number: each.trial for each in stored}
    told = [line for line in lines if "acknowledged" in line]
    evaluated = [line for line in lines if "evaluated" in line]
    values = {(line["evaluated"], line["value"], _text(line["config"])) for line in evaluated}
    finished = [each for each in stored if each.trial.state in (State.DONE, State.FAILED)]
    late = sum(each.abandoned is not None for each in finished)
    # A config belongs to one trial, unless the trial was abandoned: then it was asked again under another number.
    never_abandoned = Counter(_text(each.trial.config) for each in stored if each.abandoned is None)
    twice = {
        "numbers": len(stored) - len(trials),
        "acknowledged": _again(line["acknowledged"] for line in told),
        "evaluated": _again(line["evaluated"] for line in evaluated),
        "configs": sum(count - 1 for count in never_abandoned.values()),
    }
    too_many = len(finished) - goal
    wrong = {
        "lost": sum(not _kept(trials.get(line["acknowledged"]), line) for line in told),
        "duplicated": sum(twice.values()),
        "made_up": sum(
            (each.trial.number, each.trial.value, _text(each.trial.config)) not in values
            for each in finished if each.trial.state is State.DONE
        ),
        "left_open": sum(not trial.finished for trial in trials.values()) + waiting,
        "budget": -too_many if too_many < 0 else max(0, too_many - late),
    }  # fmt: skip
    states = Counter(str(trial.state) for trial in trials.values())
    counts = {"trials": len(stored), **states, "late": late, "evaluated": len(evaluated), "acknowledged": len(told)}
    return {"goal": goal, **counts, "torn": sum("torn" in line for line in lines), "twice": twice, "wrong": wrong}


def _kept(trial: Any, line: Line) -> bool:
    if trial is None:
        return False
    return (str(trial.state), trial.value, _text(trial.config)) == (line["state"], line["value"], _text(line["config"]))


def _text(config: Any) -> str:
    return json.dumps(dict(config), sort_keys=True)


def _again(numbers: Any) -> int:
    return sum(count - 1 for count in Counter(numbers).values())
