"""The result of a study: best trial, recommendation, reason to stop; as a summary text, HTML, CSV, dicts or a DataFrame."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from .._format import amount, config_text, duration, plural, rounded, uncertain
from .._optuna_names import OF_A_RESULT, hint_attributes
from ..budget import Budget
from ..data.history import History
from ..data.trial import State, Trial
from ..errors import StudyError
from ..space.space import Config
from ..state.effort import Level
from ..state.study_state import StudyState
from ..surrogate.base import Surrogate, training_size
from ..termination.base import Verdict
from ..termination.overfitting import check_folds
from ..termination.regret import standard_error
from .export import to_csv, to_dataframe, to_jsonl, to_parquet, write_private
from .notebook_view import result_html
from .summary import (
    Ending,
    differs,
    effort_text,
    failures_text,
    few_at_target_text,
    next_step,
    summary_text,
    trials_text,
    used_text,
)


@dataclass(frozen=True)
class Recommendation:
    """The config with the best predicted value.

    value    the model's prediction, not an observation
    number   the trial that evaluated this config at the target fidelity; None if there is no such trial

    >>> result = st.minimize(lambda config: (config["x"] - 2) ** 2, st.Space(x=st.Float(-5, 5)), budget=12)
    >>> abs(result.recommended.config["x"] - 2) < 1
    True
    """

    config: Config
    value: float
    number: int | None

    @property
    def evaluated(self) -> bool:
        """Whether a trial has evaluated this config at the target fidelity."""
        return self.number is not None


class StudyOfResult(Protocol):
    """The part of a study that its result uses."""

    @property
    def name(self) -> str: ...
    @property
    def state(self) -> StudyState: ...
    @property
    def model(self) -> Surrogate: ...
    @property
    def checked(self) -> Verdict | None: ...
    @property
    def direction(self) -> str: ...
    def recommend(self, history: History | None = None, *, tried: bool = False) -> Recommendation | None: ...
    @property
    def minimize(self) -> Callable[..., Result]: ...
    @property
    def maximize(self) -> Callable[..., Result]: ...


@hint_attributes(OF_A_RESULT)
@dataclass(frozen=True)
class Result:
    """The result of a run: the best trial, what the model recommends, the cost, the reason to stop, and all trials.

    ``minimize`` and ``maximize`` return it; ``study.result`` is the result at any moment. ``print(result)`` shows a summary, and
    a notebook shows tables.

    study     to go on with;   history  all trials in order;   stop  why the run has ended, a ``Verdict``
    unit      of costs;   budget  of the run;   before  how many trials there were when it began
    seconds   wall-clock time of the study;   suggestions  how many were computed in this process
    optimizer_seconds   that they took in all;   effort_seconds  that one takes, by its level of effort

    >>> result = st.minimize(lambda config: (config["x"] - 2) ** 2, st.Space(x=st.Float(-5, 5)), budget=12)
    >>> result.best.value < 1, result.best.config, result.recommended.config, result.spent
    (True, {'x': ...}, {'x': ...}, ...)
    >>> result.stop.reason
    'the budget of 12 trials is used up'
    >>> len(result.to_dicts()), result.to_csv().partition("\\n")[0]
    (12, 'number,state,value,cost,seconds,x,error,added')
    >>> dict(result.rows())["trials"], result.saved()
    ('12', '')
    """

    study: StudyOfResult
    history: History
    stop: Verdict
    unit: str = "s"
    optimizer_seconds: float = 0.0
    budget: Budget | None = None
    before: int = 0
    seconds: float = 0.0
    suggestions: int = 0
    effort_seconds: Mapping[Level, float] = field(default_factory=dict)

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
        """The trials as CSV, one row per trial; also written to ``path`` if it is given. Only this user may read a new file."""
        text = to_csv(self.history)
        if path is not None:
            write_private(Path(path), text)
        return text

    def to_jsonl(self, path: str | Path | None = None) -> str:
        """The trials as JSON lines, all fields of one trial on each; also written to ``path`` if it is given.

        >>> result = st.minimize(lambda config: config["x"] ** 2, st.Space(x=st.Float(-1, 1)), budget=2)
        >>> len(result.to_jsonl().splitlines())
        2
        """
        text = to_jsonl(self.history)
        if path is not None:
            write_private(Path(path), text)
        return text

    def to_parquet(self, path: str | Path) -> None:
        """Write the trials to a Parquet file with the columns of ``to_dataframe``; an ImportError if pyarrow is not installed.

        >>> result = st.minimize(lambda config: config["x"] ** 2, st.Space(x=st.Float(-1, 1)), budget=2)
        >>> try:
        ...     result.to_parquet("trials.parquet")
        ... except ImportError:  # Parquet needs pyarrow, which is not installed: pip install pyarrow
        ...     pass
        """
        write_private(Path(path), to_parquet(self.history))

    def to_dataframe(self) -> Any:
        """The trials as a DataFrame of pandas, one row per trial; an ImportError if pandas is not installed.

        The columns, in this order. What is not there is NaN.

            number, state, value, cost, seconds
            LR, DEPTH, ...      the parameters by name, fidelities included; param_NAME if another column has that name
            metric_NAME, fold_0, fold_1, ..., attr_NAME
            predicted, predicted_cost, expected_gain     what the model expected
            by, why, effort     the method, the reason in words, and "full", "reduced" or "random" (without a model)
            added               True for a result from elsewhere
            error, asked_at     why it failed; when it was asked, as a time in UTC

        >>> result = st.minimize(lambda config: config["x"] ** 2, st.Space(x=st.Float(-1, 1)), budget=3)
        >>> list(result.to_dataframe().columns[:6])
        ['number', 'state', 'value', 'cost', 'seconds', 'x']
        """
        return to_dataframe(self.history)

    def rows(self, ending: Ending = "returned", *, fit: bool = True) -> list[tuple[str, str]]:
        """The summary as pairs of label and text.

        ``ending``: how the run has ended, if not with this result: it is "raised" or "terminated" after an interruption.
        ``fit``: whether a model may be fitted for what is recommended; without it, that is there if it is known already.
        """
        history, best = self.history, self.history.best
        nothing_new = self.stop.stop and 0 < self.before == len(history)
        rows = [("trials", trials_text(history, nothing_new=nothing_new)), *self._used_rows(), *resumed_rows(history)]
        rows += [("best", "nothing has succeeded yet")] if best is None else self._best_rows(best)
        may_fit = fit or "recommended" in vars(self)
        if best is not None and ending == "returned" and may_fit:  # an interruption should not wait for a model
            rows += self._recommended_rows(best)
        if failures := failures_text(history):
            rows.append(("failed", failures))
        done = history.number_of(State.DONE)
        if (part := training_size(self.study.model, done, len(history.space))) is not None:
            rows.append(("model", f"learns from {part:,} of {done:,} trials"))
        if self.stop.stop:
            rows.append(("stopped", self.stop.reason))
        if (folds := check_folds(history)) is not None and folds.overfits:
            rows.append(("overfitting", folds.text))
        checked = self.study.checked
        if self.stop.kind == "budget" and checked is not None and checked.evidence:
            rows.append(("rule", checked.reason))
        if saved := self.saved():
            rows.append(("saved", saved))
        if only_trials(self.budget) and self.stop.kind == "budget" and (few := few_at_target_text(history)):
            rows.append(("fidelity", few))
        if self.suggestions:
            rows.append(("suggestions", f"{duration(self.optimizer_seconds / self.suggestions)} each"))
        if effort := effort_text(history, self.effort_seconds):
            rows.append(("effort", effort))
        state = self.study.state
        stored = None if state.heartbeat is None else f"study {state.name!r} is in {state.storage.url}"
        step = next_step(history, self.stop, direction=self.study.direction, stored=stored, ending=ending)
        return [*rows, ("next", step)]

    def _used_rows(self) -> list[tuple[str, str]]:
        """What was used of the cost and of the time."""
        cost, seconds = (None, None) if self.budget is None else (self.budget.cost, self.budget.seconds)
        rows = [("spent", amount(self.spent, self.unit) if cost is None else used_text(self.spent, cost, self.unit))]
        return rows if seconds is None else [*rows, ("time", f"{duration(self.seconds)} of {duration(seconds)}")]

    def _best_rows(self, best: Trial) -> list[tuple[str, str]]:
        """The best trial, with the standard error of its folds, and its metrics."""
        value = uncertain(best.value, standard_error(best.folds))
        rows = [("best", f"{value} (trial {best.number})"), ("config", config_text(best.config))]
        if best.metrics:
            rows.append(("metrics", ", ".join(f"{name} = {rounded(value)}" for name, value in best.metrics.items())))
        return rows

    def _recommended_rows(self, best: Trial) -> list[tuple[str, str]]:
        """What the model recommends, if that is something else than the best trial."""
        recommended = self.recommended
        if recommended is None or recommended.number == best.number:
            return []
        known = "" if recommended.evaluated else ", not evaluated yet"
        return [("model's pick", f"{config_text(recommended.config)}; predicted {rounded(recommended.value)}{known}")]

    def saved(self) -> str:
        """The part of the budget that was not spent because a stopping rule ended the study, as text; else empty."""
        if self.stop.kind != "rule" or not self.stop.stop or self.budget is None:
            return ""
        limit, used = self.budget, self.history.trials_used
        if limit.cost is not None:
            return _left_of_the_budget(limit.cost, self.spent, self.unit)
        if limit.trials is None:
            return _left_of_the_budget(limit.seconds or 0.0, self.seconds, "s")
        if limit.trials <= used:
            return ""
        costs = [trial.charge for trial in self.history if trial.charge]
        expected = f", about {amount((limit.trials - used) * sum(costs) / len(costs), self.unit)}" if costs else ""
        return f"{plural(limit.trials - used, 'trial')} of the budget{expected}"

    def __str__(self) -> str:
        return summary_text(self.rows())

    def __repr__(self) -> str:
        best, spent = self.history.best, amount(self.spent, self.unit)
        value = "nothing yet" if best is None else rounded(best.value)
        return f"Result(best={value}, trials={self.history.trials_started}, spent={spent}, stop={self.stop.reason!r})"

    def _repr_html_(self) -> str:
        return result_html(lambda: self.rows(fit=False), self.history, self.unit, lambda: repr(self))


def only_trials(budget: Budget | None) -> bool:
    """Whether a budget limits the number of trials, and neither cost nor time."""
    return budget is not None and budget.cost is None and budget.seconds is None


def _left_of_the_budget(limit: float, used: float, unit: str) -> str:
    """What is left of a limit, in words; empty if that vanishes when it is rounded."""
    return f"{amount(limit - used, unit)} of the budget" if used < limit and differs(used, limit, unit) else ""


def resumed_rows(history: History) -> list[tuple[str, str]]:
    """How many trials went on from earlier ones; nothing where none did."""
    count = sum("resumed_from" in trial.suggestion for trial in history)
    if not count:
        return []
    share = f"{count} of {plural(len(history), 'trial')}"
    return [("resumed", f"{share} went on from an earlier one and paid for the rest alone")]
