"""Costs: the EI-cost front of the latest suggestion, predicted against actual costs, and where the budget went by fidelity."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._format import amount, plural, rounded
from ...data.history import History
from ...data.trial import State
from ...errors import StudyError
from ...numerics import Array
from .base import Source, View, axis, axis_label, empty_view, make_view, series, thinned, trial_text, trial_texts

FRONT_TITLE, COST_TITLE, LADDER_TITLE = "Expected improvement against cost", "Cost: predicted against actual", "Cost by fidelity"
WIDE_COSTS = 10.0  # costs whose largest is more than this factor above the smallest are drawn on a log scale
MAX_RUNGS = 12  # bars of the fidelity ladder: more values are put together


def front(source: Source, trial: int | None = None) -> View:
    """The EI-cost front that the latest suggestion was chosen from, or that of the suggestion of one ``trial``."""
    history = source.history
    if trial is not None and not 0 <= trial < len(history):
        raise StudyError(f"there is no trial {trial}: this study has {plural(len(history), 'trial')}, numbered from 0")
    known = [history[trial]] if trial is not None else reversed(history.trials)
    found = next((each for each in known if each.suggestion.get("front")), None)
    if found is None:
        why = "No suggestion has weighed expected improvement against cost yet."
        return empty_view("chart", FRONT_TITLE, why, history) | {"applies": False}
    kept = found.suggestion["front"]
    share, cost = np.array(sorted(kept["front"], key=lambda point: point[1]), dtype=float).T
    chosen = [float(each) for each in kept["chosen"]]
    everything = np.append(cost, chosen[1])
    lines = [
        series("front", "front", "stepdots", cost, share),
        series(f"chosen: trial {found.number}", "star", "star", [chosen[1]], [chosen[0]], number=[found.number],
               text=[trial_text(found)]),
    ]  # fmt: skip
    caption = (
        f"Trial {found.number} was expected to cost {amount(chosen[1], source.unit)} and to bring {chosen[0]:.0%} of the highest "
        "expected improvement; a point further left is cheaper, a point further up brings more."
    )
    log = bool(everything.min() > 0 and everything.max() > WIDE_COSTS * everything.min())
    return make_view(
        "chart", FRONT_TITLE, caption, history, series=lines, shown=len(cost), trial=found.number, alpha=kept.get("alpha"),
        x=axis(axis_label("expected cost", source.unit), everything.tolist(), unit=source.unit, log=log),
        y=axis("share of the highest EI", [0.0, 1.0], ends=(-0.04, 1.06)),
    )  # fmt: skip


def predicted_costs(history: History) -> tuple[Array, Array, Array]:
    """Expected cost, actual cost and number, of the trials whose cost was predicted when they were suggested."""
    pairs = [
        (float(trial.suggestion["cost"]), trial.cost, trial.number)
        for trial in history
        if trial.cost and trial.suggestion.get("cost") and trial.state in (State.DONE, State.FAILED)
    ]
    expected, actual, numbers = np.array(pairs).T if pairs else np.empty((3, 0))
    return expected, actual, numbers.astype(np.intp)


def typical_factor(expected: Array, actual: Array) -> float:
    """The factor by which costs are typically off: exp of the root mean square of the logarithms of the ratios."""
    return float(np.exp(np.sqrt(np.mean(np.log(actual / expected) ** 2))))


def cost_prediction(source: Source) -> View:
    """The actual against the expected cost of each trial whose cost was predicted."""
    history = source.history
    expected, actual, numbers = predicted_costs(history)
    if not len(expected):
        return empty_view("chart", COST_TITLE, "No cost was predicted yet.", history) | {"applies": False}
    rows = thinned(np.log(expected), np.log(actual), np.arange(len(expected)))
    ends = [float(min(expected.min(), actual.min())), float(max(expected.max(), actual.max()))]
    text = trial_texts(history, np.asarray(numbers[rows], dtype=np.intp))
    lines = [
        series("as expected", "guide", "dashes", ends, ends),
        series("trial", "trial", "dots", expected[rows], actual[rows], number=numbers[rows], text=text),
    ]
    factor = typical_factor(expected, actual)
    caption = f"Over {plural(len(expected), 'trial')}, the predicted cost is typically off by a factor of {factor:.2f}."
    both = [*expected.tolist(), *actual.tolist()]
    return make_view(
        "chart", COST_TITLE, caption, history, series=lines, shown=len(rows), factor=factor,
        x=axis(axis_label("expected cost", source.unit), both, unit=source.unit, log=True),
        y=axis(axis_label("actual cost", source.unit), both, unit=source.unit, log=True),
    )  # fmt: skip


def fidelity_ladder(source: Source, parameter: str | None = None) -> View:
    """How much was spent at each fidelity, and on how many trials. ``parameter``: the first fidelity unless given."""
    history, names = source.history, source.history.space.fidelities
    if parameter is not None and parameter not in names:
        known = f"choose from {', '.join(names)}" if names else "it has none"
        raise StudyError(f"{parameter!r} is no fidelity of this study; {known}")
    if not names:
        why = "This study has no fidelity: every trial is a full evaluation."
        return empty_view("bars", LADDER_TITLE, why, history) | {"applies": False}
    name = parameter or names[0]
    paid = np.array([(float(trial.config[name]), trial.charge) for trial in history if not trial.added]).reshape(-1, 2)
    if not len(paid):
        return empty_view("bars", LADDER_TITLE, "There are no trials yet.", history)
    rungs = rungs_of(paid[:, 0], bool(getattr(history.space[name], "log", False)))
    bars: list[dict[str, Any]] = []
    for low, high, label in rungs:
        inside = (paid[:, 0] >= low) & (paid[:, 0] <= high)
        cost, count = float(paid[inside, 1].sum()), int(inside.sum())
        text = f"{amount(cost, source.unit)}, {plural(count, 'trial')}"
        bars.append({"label": label, "value": cost, "text": text, "count": count})
    total = sum(bar["value"] for bar in bars)
    at_target = sum(trial.charge for trial in history if not trial.added and history.at_target(trial))
    caption = f"No cost is known yet; bars would show it by {name}."
    if total:
        goal = rounded(history.space.target[name])
        caption = f"Of the cost, {at_target / total:.0%} was paid for trials at the target, {name} = {goal}."
    return make_view(
        "bars", LADDER_TITLE, caption, history, bars=bars, series=[], shown=len(bars), role="best", parameter=name,
        x=axis(axis_label("cost", source.unit), [0.0, *(bar["value"] for bar in bars)], unit=source.unit, zero=True),
        y=axis(name, [], options=[bar["label"] for bar in bars]),
    )  # fmt: skip


def rungs_of(values: Array, log: bool) -> list[tuple[float, float, str]]:
    """The values of a fidelity as bars: each one by itself, or ranges if there are many."""
    found = np.unique(values)
    if len(found) <= MAX_RUNGS:
        return [(float(value), float(value), rounded(float(value))) for value in found]
    edges = (np.geomspace if log and found[0] > 0 else np.linspace)(found[0], found[-1], MAX_RUNGS + 1)
    places = np.clip(np.searchsorted(edges, found, side="right") - 1, 0, MAX_RUNGS - 1)
    parts = [found[places == place] for place in range(MAX_RUNGS)]
    ends = [(float(part[0]), float(part[-1])) for part in parts if len(part)]
    return [(low, high, f"{rounded(low, 3)} to {rounded(high, 3)}" if high > low else rounded(low)) for low, high in ends]
