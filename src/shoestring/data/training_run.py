"""Training runs: the trials of one config that go on from each other over a resumable fidelity.

A config that was trained to 10 epochs and is asked at 50 pays for 40: the second trial goes on from the checkpoint of the first.
Both are trials of one run. What is stored with a trial, in its suggestion, is

    resumed_from   the trial that it goes on from: its number, its fidelities, and what the run has cost up to there (``paid``)
    run            the number of the run, which is that of its first trial; absent for the first run of a config
    interrupted    an earlier trial of the run ended without a result after the one that it goes on from. What that one has saved
                   is used too, so the cost of the run from its start is a lower bound
    saved          it has saved files in its checkpoint folder

A run has one folder, and at most one trial of it is running: two workers never write into one folder. A trial goes on from the
run of its config that has come furthest below the fidelity that is asked. Where there is none (all are running, or as far
already, or their files are gone) it begins a new run, from the start and in a folder of its own.

Where a fidelity says ``resumable=True``, every run is taken to be one that can go on. Where it says nothing, only runs that have
saved files are (``Space.resumable_if_saved``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..numerics import Array
from ..space.space import Config, Space
from .history import History
from .intermediate import SAME_FIDELITY
from .trial import State, Trial
from .trial_table import CODES, SAME_POINT, TrialTable, to_grid

RUN_KEYS = ("resumed_from", "run", "interrupted", "saved", "restarted_from")  # of a suggestion: they are of one trial alone


@dataclass(frozen=True)
class TrainingRun:
    """The trials of one run, by their rows in the table.

    rows       in order of number
    running    whether one of them is running
    furthest   the row of the one that has a result at the highest fidelity; None if none has a result
    complete   whether that one is at the target of the resumable fidelities: the run cannot go on
    """

    rows: tuple[int, ...]
    running: bool
    furthest: int | None
    complete: bool = False


@cache
def fidelity_columns(space: Space) -> NDArray[np.intp]:
    """The columns of the resumable fidelities."""
    return np.array([space.names.index(name) for name in space.resumable], dtype=np.intp)


@cache
def other_columns(space: Space) -> NDArray[np.intp]:
    """The columns of all else: two trials of one run are equal there."""
    return np.setdiff1d(np.arange(len(space)), fidelity_columns(space))


def training_runs(history: History) -> list[TrainingRun]:
    """All runs of a history that can go on, or could; results from elsewhere are not among them."""
    table, space = history.table, history.space
    if not space.resumable or (space.resumable_if_saved and not table.saved):
        return []
    keys, grouped = to_grid(table.U[: table.count, other_columns(space)]), dict[tuple[bytes, int | None], list[int]]()
    for row in np.flatnonzero(~table.added[: table.count]).tolist():
        grouped.setdefault((keys[row].tobytes(), table.runs.get(row)), []).append(row)
    several = (rows for rows in grouped.values() if not space.resumable_if_saved or table.saved.intersection(rows))
    facts = _facts(table)
    return [_run(rows, *facts) for rows in several]


def _facts(table: TrialTable) -> tuple[list[int], list[float], list[bool]]:
    """By row: the state's code, how far the trial has come (a sum of unit coordinates), and whether it is at the target."""
    columns, target = fidelity_columns(table.space), table.space.target_units
    U = table.U[: table.count, columns]
    goal = np.array([target[column] for column in columns.tolist()])
    complete = (U - goal > -SAME_FIDELITY).all(axis=1)
    return table.state[: table.count].tolist(), U.sum(axis=1).tolist(), complete.tolist()


def _run(rows: Sequence[int], states: Sequence[int], progress: Sequence[float], complete: Sequence[bool]) -> TrainingRun:
    done = [row for row in rows if states[row] == CODES[State.DONE]]
    furthest = max(done, key=lambda row: (progress[row], row), default=None)
    running = any(states[row] == CODES[State.RUNNING] for row in rows)
    return TrainingRun(tuple(rows), running, furthest, furthest is not None and complete[furthest])


def started_rows(history: History) -> list[int]:
    """The furthest trials of the runs that may go on. Some of these runs may be running: see ``idle_starts``."""
    runs, lost = training_runs(history), history.table.lost
    return [run.furthest for run in runs if run.furthest is not None and not run.complete and run.furthest not in lost]


def idle_starts(started: Array | None, pending: Array, space: Space) -> Array:
    """Of the ends of runs, those of configs that are not running: a run that is running cannot be gone on with."""
    if started is None or not len(started):
        return np.empty((0, len(space)))
    if not len(pending):
        return started
    others = other_columns(space)
    taken = {row.tobytes() for row in to_grid(pending[:, others])}
    return started[[row.tobytes() not in taken for row in to_grid(started[:, others])]]


def begin_trial(
    config: Config, number: int, trials: Sequence[Trial], table: TrialTable, holds: Callable[[Trial], bool]
) -> tuple[Config, dict[str, Any]]:
    """Whether the next trial goes on from an earlier one: its config, and what is to be stored in its suggestion.

    The config is as given, but for rounding: it gets exactly the values of the run that it goes on with. ``holds`` says whether
    the files of a trial are still there.
    """
    space = table.space
    others, columns = other_columns(space), fidelity_columns(space)
    u = space.encode(config)
    same = (np.abs(table.U[: table.count, others] - u[others]) < SAME_POINT).all(axis=1) & ~table.added[: table.count]
    rows = np.flatnonzero(same).tolist()
    if not rows or (space.resumable_if_saved and not table.saved.intersection(rows)):
        return config, {}
    grouped: dict[int | None, list[int]] = {}
    for row in rows:
        grouped.setdefault(table.runs.get(row), []).append(row)
    found: list[tuple[float, int | None, TrainingRun]] = []
    states, progress, complete = _facts(table)
    for label, members in grouped.items():
        run = _run(members, states, progress, complete)
        if run.running:
            continue
        if run.furthest is None:  # nothing was reached for sure, but its folder may hold something
            found.append((-1.0, label, run))
            continue
        ahead = u[columns] - table.U[run.furthest, columns]
        if run.furthest in table.lost or (ahead < -SAME_FIDELITY).any() or ahead.sum() < SAME_FIDELITY:
            continue
        if not holds(trials[run.furthest]):
            table.lost.add(run.furthest)
            continue
        found.append((progress[run.furthest], label, run))
    if not found:
        return config, {"run": number}
    _, label, run = max(found, key=lambda each: each[0])
    facts: dict[str, Any] = {} if label is None else {"run": label}
    last = run.rows[0] if run.furthest is None else run.furthest
    if run.furthest is not None:
        facts["resumed_from"] = facts_of(trials[run.furthest], space)
    unfinished = [row for row in run.rows if row > last or run.furthest is None]
    if unfinished or "interrupted" in trials[last].suggestion:
        facts["interrupted"] = True
    values = trials[last].config
    return {name: value if name in space.resumable else values[name] for name, value in config.items()}, facts


def facts_of(trial: Trial, space: Space) -> dict[str, Any]:
    """What is stored of the trial that another one goes on from."""
    before = trial.resumed_from
    earlier = 0.0 if before is None else before.paid
    paid = None if trial.cost is None or earlier is None else trial.cost + earlier
    return {"number": trial.number, "fidelity": {name: trial.config[name] for name in space.resumable}, "paid": paid}


def restarted(trial: Trial, reports: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a trial that was to go on has begun from the start instead: it reports fidelities that had been reached before."""
    before = trial.resumed_from
    if before is None:
        return False
    return any(amount < before.fidelity.get(name, -math.inf) for each in reports[:1] for name, amount in each["fidelity"].items())
