"""The result of a study, for people and for programs."""

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
from ..surrogate.base import Surrogate
from ..surrogate.subset import training_size
from ..termination.base import Verdict


@dataclass(frozen=True)
class Recommendation:
    """The config with the best expected value: ``value`` is predicted, not observed; ``number`` is the trial that evaluated
    it (at the target fidelity), None if none did.
    """

    config: Config
    value: float
    number: int | None

    @property
    def evaluated(self) -> bool:
        return self.number is not None


class StudyOfResult(Protocol):
    """What a result asks of its study."""

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
    """``best`` observed, ``recommended`` by the model, ``spent``, why it stopped (``stop.reason``), and the ``history``."""

    study: StudyOfResult
    history: History
    stop: Verdict
    unit: str = "s"
    optimizer_seconds: float = 0.0
    budget: Budget | None = None

    @property
    def best(self) -> Trial:
        """The best trial seen; a StudyError while nothing has succeeded (``history.best`` is None then)."""
        found = self.history.best
        if found is None:
            raise StudyError(f"there is no best trial: {self._nothing()}")
        return found

    def _nothing(self) -> str:
        failed = self.history.having(State.FAILED)
        return "nothing has succeeded yet" + (f"; the last error: {failed[-1].error}" if failed else "")

    @cached_property
    def recommended(self) -> Recommendation | None:
        """Where the model's mean is best over the whole space, at the target fidelity; None while nothing has succeeded."""
        return self.study.recommend(self.history)

    @property
    def spent(self) -> float:
        """The sum of all trials' costs, in ``unit``."""
        return self.history.spent

    def to_dicts(self) -> list[dict[str, Any]]:
        """One JSON-ready dict a trial."""
        return [trial.to_dict() for trial in self.history]

    def to_csv(self, path: str | Path | None = None) -> str:
        """One row a trial; written to ``path`` if given, and returned."""
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
        """The summary as (label, text)."""
        counts = {state: len(self.history.having(state)) for state in State}
        trials = str(len(self.history)) + "".join(
            f", {counts[state]} {state}" for state in (State.FAILED, State.ABANDONED, State.RUNNING) if counts[state]
        )
        rows = [("trials", trials), ("spent", self._spent())]
        best = self.history.best
        if best is None:
            rows.append(("best", self._nothing()))
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
        """What a rule that stopped the study left unspent of the budget, in words; empty when it was something else."""
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
        """What was spent, and of a budget in cost what is left or was spent too much."""
        limit = self.budget.cost if self.budget is not None else None
        if limit is None:
            return amount(self.spent, self.unit)
        over = self.spent - limit
        rest = f"{amount(over, self.unit)} over" if over > 0 else f"{amount(-over, self.unit)} left"
        return f"{amount(self.spent, self.unit)} of {amount(limit, self.unit)}, {rest}"

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
    """A value as a CSV cell: empty where inactive, numbers and texts as they are, anything else as JSON."""
    value = config.get(name, "")
    return value if isinstance(value, str | int | float) and not isinstance(value, bool) else json.dumps(value)
