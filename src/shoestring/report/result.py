"""The result of a study: best trial, recommendation, reason to stop; as a summary text, HTML, CSV or dicts."""

from __future__ import annotations

import csv
import html
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from .._format import amount, config_text, duration, plural, rounded, value_text
from ..budget import Budget
from ..data.history import History
from ..data.trial import State, Trial
from ..errors import StudyError
from ..space.space import Config
from ..surrogate.base import Surrogate, training_size
from ..termination.base import Verdict

EXACT_SPENDING_TOLERANCE = 1e-9  # share of the budget; a smaller difference is rounding error, so the budget is spent exactly


@dataclass(frozen=True)
class Recommendation:
    """The config with the best predicted value.

    value    the model's prediction, not an observation
    number   the trial that evaluated this config at the target fidelity; None if there is no such trial
    """

    config: Config
    value: float
    number: int | None

    @property
    def evaluated(self) -> bool:
        return self.number is not None


class StudyOfResult(Protocol):
    """The part of a study that its result uses."""

    @property
    def model(self) -> Surrogate: ...
    @property
    def checked(self) -> Verdict | None: ...
    @property
    def direction(self) -> str: ...
    @property
    def seconds(self) -> float: ...
    def recommend(self, history: History | None = None, *, tried: bool = False) -> Recommendation | None: ...
    @property
    def minimize(self) -> Callable[..., Result]: ...
    @property
    def maximize(self) -> Callable[..., Result]: ...


@dataclass(frozen=True)
class Result:
    """The ``best`` trial, the config ``recommended`` by the model, the cost ``spent``, the reason to stop and the ``history``."""

    study: StudyOfResult
    history: History
    stop: Verdict
    unit: str = "s"
    optimizer_seconds: float = 0.0
    budget: Budget | None = None

    @property
    def best(self) -> Trial:
        """The best trial; a StudyError if no trial has succeeded (``history.best`` is None then)."""
        found = self.history.best
        if found is None:
            raise StudyError(f"there is no best trial: {self._no_success()}")
        return found

    def _no_success(self) -> str:
        """Why there is no best trial."""
        failed = self.history.having(State.FAILED)
        return "nothing has succeeded yet" + (f"; the last error: {failed[-1].error}" if failed else "")

    @cached_property
    def recommended(self) -> Recommendation | None:
        """The config with the best model mean over the whole space, at the target fidelity; None if no trial has succeeded."""
        return self.study.recommend(self.history)

    @property
    def spent(self) -> float:
        """The sum of all trials' costs, in ``unit``."""
        return self.history.spent

    def to_dicts(self) -> list[dict[str, Any]]:
        """One dict per trial, ready for JSON."""
        return [trial.to_dict() for trial in self.history]

    def to_csv(self, path: str | Path | None = None) -> str:
        """The trials as CSV, one row per trial; also written to ``path`` if it is given."""
        parameters = list(self.history.space)
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["number", "state", "value", "cost", "seconds", *parameters, "error"])
        for trial in self.history:
            row = [trial.number, str(trial.state), trial.value, trial.cost, trial.seconds]
            writer.writerow([*row, *(_cell(trial.config, name) for name in parameters), trial.error])
        if path is not None:
            Path(path).write_text(text.getvalue(), encoding="utf-8")
        return text.getvalue()

    def rows(self) -> list[tuple[str, str]]:
        """The summary as pairs of label and text."""
        counts = {state: len(self.history.having(state)) for state in State}
        trials = str(len(self.history)) + "".join(
            f", {counts[state]} {state}" for state in (State.FAILED, State.ABANDONED, State.RUNNING) if counts[state]
        )
        rows = [("trials", trials), ("spent", self._spent())]
        best = self.history.best
        if best is None:
            rows.append(("best", self._no_success()))
        else:
            rows.append(("best", f"{rounded(best.value)} (trial {best.number})"))
            rows.append(("config", config_text(best.config)))
            recommended = self.recommended
            if recommended is not None and recommended.number != best.number:
                known = "" if recommended.evaluated else ", not evaluated yet"
                rows.append(("model's pick", f"{config_text(recommended.config)}; predicted {rounded(recommended.value)}{known}"))
        done = len(self.history.having(State.DONE))
        if (part := training_size(self.study.model, done, len(self.history.space))) is not None:
            rows.append(("model", f"learns from {part:,} of {done:,} trials"))
        rows.append(("stopped", self.stop.reason))
        checked = self.study.checked
        if self.stop.kind == "budget" and checked is not None and checked.evidence:
            rows.append(("rule", checked.reason))
        if saved := self.saved():
            rows.append(("saved", saved))
        if self.optimizer_seconds > 0 and len(self.history):
            rows.append(("own time", f"{duration(self.optimizer_seconds / len(self.history))} a suggestion"))
        how = {"interrupted": " again", "rule": " after result.study.rule = None"}.get(self.stop.kind, " with a larger budget")
        rows.append(("go on", f"result.study.{self.study.direction}(objective, budget=...){how}"))
        return rows

    def saved(self) -> str:
        """The part of the budget that was not spent because a stopping rule ended the study, as text; else empty."""
        if self.stop.kind != "rule" or not self.stop.stop or self.budget is None:
            return ""
        if self.budget.cost is not None and self.budget.cost > self.spent:
            return f"{amount(self.budget.cost - self.spent, self.unit)} of the budget"
        if self.budget.trials is not None and self.budget.trials > self.history.trials_used:
            left = self.budget.trials - self.history.trials_used
            costs = [trial.cost for trial in self.history if trial.cost]
            expected = f", about {amount(left * sum(costs) / len(costs), self.unit)}" if costs else ""
            return f"{plural(left, 'trial')} of the budget{expected}"
        if self.budget.seconds is not None and self.budget.seconds > self.study.seconds:
            return f"{duration(self.budget.seconds - self.study.seconds)} of the budget"
        return ""

    def _spent(self) -> str:
        """The cost spent; with a budget in cost, also how much of it is left or how much more was spent."""
        limit = self.budget.cost if self.budget is not None else None
        if limit is None:
            return amount(self.spent, self.unit)
        text = f"{amount(self.spent, self.unit)} of {amount(limit, self.unit)}"
        over = self.spent - limit
        if abs(over) < EXACT_SPENDING_TOLERANCE * limit:
            return text
        return f"{text}, {amount(over, self.unit)} over" if over > 0 else f"{text}, {amount(-over, self.unit)} left"

    def __str__(self) -> str:
        rows = self.rows()
        width = max(len(label) for label, _ in rows)
        return "\n".join(f"{label:<{width}}  {text}" for label, text in rows)

    def __repr__(self) -> str:
        best, spent = self.history.best, amount(self.spent, self.unit)
        value = "nothing yet" if best is None else rounded(best.value)
        return f"Result(best={value}, trials={len(self.history)}, spent={spent}, stop={self.stop.reason!r})"

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><th style='text-align:left'>{html.escape(label)}</th><td style='text-align:left'>{html.escape(text)}</td></tr>"
            for label, text in self.rows()
        )
        top = self.history.ranked()[:5]
        names = list(self.history.space)
        head = "".join(f"<th>{html.escape(name)}</th>" for name in ("trial", "value", "cost", *names))
        body = "".join(
            "<tr>" + "".join(
                f"<td>{html.escape(text)}</td>"
                for text in (
                    str(trial.number), rounded(trial.value), rounded(trial.cost),
                    *(value_text(trial.config[name]) if name in trial.config else "" for name in names),
                )
            ) + "</tr>"
            for trial in top
        )
        return f"<table>{cells}</table><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(config: Config, name: str) -> Any:
    """A parameter's value as a CSV cell: empty if it is inactive, a number or text unchanged, anything else as JSON."""
    value = config.get(name, "")
    return value if isinstance(value, str | int | float) and not isinstance(value, bool) else json.dumps(value)
