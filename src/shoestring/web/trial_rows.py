"""The trial table: filtered, sorted and cut into pages on the server, so that 10,000 trials are as fast as ten.

A filter is one or more conditions with commas between them: ``value<0.3, act=relu``. A name is a parameter, a metric, or one of
number, value, cost, seconds, state, by. Text without ``<``, ``>`` or ``=`` is looked for in settings, errors and reasons.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._format import value_text
from ..data.history import History
from ..data.trial import State, Trial

ROWS_PER_PAGE = 50
MAX_FILTER_CHARACTERS = 300
MAX_PARAMETER_COLUMNS = 12  # of a wider space, the others are on the page of the trial
OWN_COLUMNS = ("number", "state", "value", "cost", "seconds")
COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le, ">=": operator.ge, "!=": operator.ne, "<": operator.lt, ">": operator.gt, "=": operator.eq,
}  # fmt: skip
_CONDITION = re.compile(r"\s*(?P<name>[^<>=!]+?)\s*(?P<sign><=|>=|!=|=|<|>)\s*(?P<value>.*?)\s*")


class BadFilter(ValueError):
    """A filter or an order that cannot be read."""


@dataclass(frozen=True, kw_only=True)
class Query:
    """What the table is to show, as it is in the address of the page."""

    text: str = ""
    state: str = ""
    sort: str = "number"
    down: bool = True
    page: int = 1

    @classmethod
    def read(cls, given: Mapping[str, str]) -> Query:
        """From the parameters of an address. What cannot be read is left out."""
        page = given.get("page", "1")
        return cls(
            text=given.get("q", "")[:MAX_FILTER_CHARACTERS], state=given.get("state", ""), sort=given.get("sort", "number"),
            down=given.get("order", "down") != "up", page=int(page) if page.isdecimal() and len(page) < 8 else 1,
        )  # fmt: skip

    def parameters(self, **changes: Any) -> dict[str, str]:
        """The parameters of the address, with changes."""
        now = {
            "q": self.text,
            "state": self.state,
            "sort": self.sort,
            "order": "down" if self.down else "up",
            "page": str(self.page),
        }
        merged = now | {name: str(value) for name, value in changes.items()}
        standard = {"q": "", "state": "", "sort": "number", "order": "down", "page": "1"}
        return {name: value for name, value in merged.items() if value != standard[name]}


@dataclass(frozen=True, kw_only=True)
class Table:
    """One page of the table.

    columns   the names of the columns;   problem  why the filter cannot be read, or empty: then all trials are shown
    found     how many trials there are in all pages;   pages  how many pages
    """

    columns: Sequence[str]
    trials: Sequence[Trial]
    found: int
    pages: int
    page: int
    problem: str = ""


def make_table(history: History, query: Query) -> Table:
    """The page of the table that a query asks for."""
    parameters = list(history.space)[:MAX_PARAMETER_COLUMNS]
    trials, problem = list(history), ""
    try:
        if query.state:
            trials = [trial for trial in trials if trial.state == query.state]
        for test in conditions(query.text, history):
            trials = [trial for trial in trials if test(trial)]
        trials = in_order(trials, query, history)
    except BadFilter as error:
        trials, problem = list(history)[::-1], str(error)
    pages = max(1, math.ceil(len(trials) / ROWS_PER_PAGE))
    page = min(max(query.page, 1), pages)
    shown = trials[(page - 1) * ROWS_PER_PAGE : page * ROWS_PER_PAGE]
    columns = [*OWN_COLUMNS, *parameters]
    return Table(columns=columns, trials=shown, found=len(trials), pages=pages, page=page, problem=problem)


def in_order(trials: list[Trial], query: Query, history: History) -> list[Trial]:
    """Sorted by a column; trials without a value in it come last in both orders."""
    if query.sort == "number":
        return trials[::-1] if query.down else trials
    if query.sort not in (*OWN_COLUMNS, *history.space):
        raise BadFilter(f"there is no column {query.sort!r}; sort by the head of one of the columns")
    keyed = [(cell(trial, query.sort), trial) for trial in trials]
    known = [pair for pair in keyed if pair[0] is not None]
    known.sort(key=lambda pair: order_key(pair[0]), reverse=query.down)
    return [trial for _, trial in known] + [trial for value, trial in keyed if value is None]


def order_key(value: Any) -> tuple[int, float, str]:
    """Numbers before texts: a choice may have both."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return (0, float(value), "") if is_number else (1, 0.0, str(value))


def cell(trial: Trial, name: str) -> Any:
    """The value of a trial in a column; a parameter before a metric of the same name."""
    if name in trial.config:
        return trial.config[name]
    if name in OWN_COLUMNS:
        return str(trial.state) if name == "state" else getattr(trial, name)
    if name in trial.metrics:
        return trial.metrics[name]
    return trial.suggestion.get("by") if name == "by" else None


def conditions(text: str, history: History) -> list[Callable[[Trial], bool]]:
    """The tests of a filter."""
    return [condition(part, history) for part in text.split(",") if part.strip()]


def condition(text: str, history: History) -> Callable[[Trial], bool]:
    """One test: a comparison, or a text that is looked for."""
    found = _CONDITION.fullmatch(text)
    if found is None:
        wanted = text.strip().casefold()
        return lambda trial: wanted in searched_text(trial)
    name, compare, value = found["name"], COMPARISONS[found["sign"]], found["value"]
    known = {*OWN_COLUMNS, "by", *history.space} | {metric for trial in history for metric in trial.metrics}
    if name not in known:
        raise BadFilter(f"there is no column {name!r}; there are: {', '.join(sorted(known))}")
    try:
        number: float | None = float(value)
    except ValueError:
        number = None
    if number is None and found["sign"] not in ("=", "!="):
        raise BadFilter(f"{text.strip()!r} cannot be read: {value!r} is not a number; write for example {name}<0.5")

    def test(trial: Trial) -> bool:
        has = cell(trial, name)
        if has is None:
            return False
        if number is not None and isinstance(has, int | float) and not isinstance(has, bool):
            return compare(float(has), number) or (compare is operator.eq and value_text(has) == value)
        return compare(str(has), value) if number is None or found["sign"] in ("=", "!=") else False

    return test


def searched_text(trial: Trial) -> str:
    """The text of a trial in which a filter looks for a word."""
    values = (f"{name}={value_text(value)}" for name, value in trial.config.items())
    return " ".join([*values, trial.error or "", str(trial.suggestion.get("why", "")), str(trial.state)]).casefold()


STATES = tuple(str(state) for state in State)
