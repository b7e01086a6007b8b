"""What a trial said along the way: which of its reports are data, and where a trial that was stopped early has ended.

A trial that is asked for 50 epochs passes through 10, 20, ... on its way, and what it reports there are values of its config at
those fidelities, for free. They are not worth as much as so many trials: one run's values go up and down together, and a model
that is given all of them sees little else and takes its time. So a few are taken, spread evenly over the second half of the way
on the scale of the fidelity. The first steps of a learning curve are steep and say little of its end: on curves a + b s^-k with a
linear scale, a model that was given them predicted the target worse than one without any reports.

    MOST        reports of one trial; if there are no more than that, all
    ALTOGETHER  reports of all trials of a study; beyond that, fewer of each
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..numerics import Array
from ..space.space import Space
from .trial import State, Trial

MAX_VALUES_PER_TRIAL = 4
MAX_VALUES_PER_STUDY = 400
SAME_FIDELITY = 1e-9
ABSENT = object()  # in place of a parameter that is not active
PRUNED, BUDGET = "hopeless", "budget"  # why a trial was told to stop early

Report = Mapping[str, Any]  # "value"; "fidelity", by name, as far as it was named; "cost" up to there, or None


@dataclass(frozen=True)
class IntermediateValue:
    """A report as an observation: a point of the unit cube, the value there in the user's units, and what it took, if known."""

    u: Array
    value: float
    cost: float | None


def intermediate_values(trial: Trial, space: Space, most: int = MAX_VALUES_PER_TRIAL) -> list[IntermediateValue]:
    """The reports of a trial that count as observations, ``most`` of them at most.

    Where the trial itself has ended, its result counts and not its report. A report that names no fidelity says nothing of where
    it belongs, and of several at the same place the last one counts.
    """
    located = [report for report in trial.reports if report["fidelity"]]
    if not located or most < 1:
        return []
    end = space.encode(trial.config)
    places = np.repeat(end[None, :], len(located), axis=0)
    columns = [space.names.index(name) for name in space.fidelities]
    for column, name in zip(columns, space.fidelities, strict=True):
        amounts = [report["fidelity"].get(name, trial.config[name]) for report in located]
        places[:, column] = space[name].to_unit(np.array(amounts, dtype=float))
    way = places[:, columns].sum(axis=1)  # grows along the run
    finish = float(end[columns].sum()) if trial.state is State.DONE else None
    last = {float(step): row for row, step in enumerate(way) if finish is None or step < finish - SAME_FIDELITY}
    rows = np.array(sorted(last.values()), dtype=int)
    chosen = rows[spread_evenly(way[rows], most, finish)]
    return [IntermediateValue(places[row], float(located[row]["value"]), located[row]["cost"]) for row in chosen]


def spread_evenly(way: Array, most: int, finish: float | None) -> list[int]:
    """Which of rising numbers to take, ``most`` at most, as evenly as they allow: from half-way to the last, or such that the one
    after the last would be ``finish``.
    """
    if len(way) <= most:
        return list(range(len(way)))
    half = (way[0] + (way[-1] if finish is None else finish)) / 2
    marks = np.linspace(half, way[-1], most) if finish is None else np.linspace(half, finish, most + 1)[:-1]
    return sorted({int(np.argmin(np.abs(way - mark))) for mark in marks})


def all_intermediate_values(told: Sequence[Trial], trials: Sequence[Trial], space: Space) -> list[IntermediateValue]:
    """The reports that count as observations, of all trials that have ended, however they ended, and have ``told`` any.

    Those of a trial that was interrupted count until its configuration is asked again and reports again, so that a study that was
    interrupted goes on as if it had not been.
    """
    told = [trial for trial in told if trial.state is not State.ABANDONED or not asked_again(trial, trials, space)]
    most = min(MAX_VALUES_PER_TRIAL, MAX_VALUES_PER_STUDY // len(told)) if told else 0
    return [waypoint for trial in told for waypoint in intermediate_values(trial, space, most)]


def asked_again(trial: Trial, trials: Sequence[Trial], space: Space) -> bool:
    """Whether the configuration was asked later, at whatever fidelity."""

    names = [name for name in space if not space[name].fidelity]

    def bare(config: Mapping[str, Any]) -> list[Any]:
        return [config.get(name, ABSENT) for name in names]

    sought = bare(trial.config)
    return any(bare(other.config) == sought for other in trials if other.number > trial.number)


def reached_fidelity(trial: Trial, reports: Sequence[Report]) -> dict[str, float] | None:
    """The fidelities at the last report, if that is short of what was asked; None where it is not, or nobody knows."""
    at = {name: amount for each in reports for name, amount in each["fidelity"].items()}  # the last that was named
    return {**trial.fidelity, **at} if any(amount < trial.config[name] for name, amount in at.items()) else None


def truncated(trial: Trial, fidelity: Mapping[str, float], stopped: Mapping[str, str]) -> Trial:
    """The trial as one of the fidelity that it has reached; its suggestion keeps what was asked, and why it was stopped."""
    noted = {**trial.suggestion, "asked": dict(trial.fidelity), "stopped": dict(stopped)}
    return replace(trial, config={**trial.config, **fidelity}, fidelity=dict(fidelity), suggestion=noted)


def was_pruned(trial: Trial) -> bool:
    """Whether the trial was stopped because it promised nothing, and not for lack of money."""
    return bool((trial.suggestion.get("stopped") or {}).get("kind") == PRUNED)
