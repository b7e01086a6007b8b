"""A study or a result in a notebook, as HTML: the summary, the best value against the cost, and the best trials.

It holds no script and no link, and loads nothing. All that comes from the study is escaped. Texts have the colours of the
notebook, and the picture has its own for light and dark ones. No model is fitted for it, and it never raises.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable
from typing import Protocol

from .._format import amount, rounded, value_text
from ..budget import Budget
from ..data.history import History
from ..data.trial import Trial
from .summary import parameter_text, used_text
from .svg import CSS, draw
from .svg.palette import DARK, DARK_ENDS, LIGHT, LIGHT_ENDS, variables
from .views.base import Source, plain
from .views.progress_curves import best_against_cost

MAX_TRIALS_SHOWN = 5
MAX_PARAMETERS_SHOWN = 20
MAX_TEXT_CHARACTERS = 2000  # of one cell
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

# Notebooks say by a mark on the page whether they are dark, whatever the system is.
DARK_PAGES = ('body[data-jp-theme-light="false"]', "body.vscode-dark", "html[theme=dark]")
LIGHT_PAGES = ('body[data-jp-theme-light="true"]', "body.vscode-light")


def style_sheet() -> str:
    """The rules of the view; each begins with its class, so that nothing else in a notebook is changed."""
    themes = ((DARK_PAGES, variables(DARK, DARK_ENDS)), (LIGHT_PAGES, variables(LIGHT, LIGHT_ENDS)))
    rules = [f"{page} .st-note .st-chart{{{colours}}}" for pages, colours in themes for page in pages]
    return "".join([
        CSS,
        ".st-note{max-width:60rem}.st-note .st-wide{overflow-x:auto}.st-note .st-chart{max-width:34rem}",
        ".st-note table{border-collapse:collapse;background:none}",
        ".st-note th,.st-note td{text-align:left;vertical-align:top;padding:.1rem .8rem .1rem 0;background:none}",
        ".st-note .st-rows th{font-weight:normal;opacity:.75;white-space:nowrap}",
        *rules,
    ])  # fmt: skip


class NotebookStudy(Protocol):
    """The part of a study that its notebook view uses."""

    @property
    def name(self) -> str: ...
    @property
    def direction(self) -> str: ...
    @property
    def unit(self) -> str: ...
    @property
    def budget(self) -> Budget | None: ...
    @property
    def log(self) -> History: ...
    def refresh(self) -> None: ...


def result_html(rows: Callable[[], Iterable[tuple[str, str]]], history: History, unit: str, short: Callable[[], str]) -> str:
    """A result as HTML; ``rows`` makes its summary, and ``short`` a line that is shown if that fails."""
    return guarded(lambda: page(rows_table(rows()), history, unit), short)


def study_html(study: NotebookStudy, rows: Callable[[], Iterable[tuple[str, str]]]) -> str:
    """A study as HTML: what it was made with, and where it stands; ``rows`` makes the summary of its result."""

    def made() -> str:
        study.refresh()
        history, budget = study.log, study.budget
        head = f"<p><b>{shown(study.name)}</b>, a study to {shown(study.direction)}</p>"
        parameters = [(name, parameter_text(parameter)) for name, parameter in history.space.items()]
        more = len(parameters) - MAX_PARAMETERS_SHOWN
        parameters = parameters[:MAX_PARAMETERS_SHOWN] + ([("", f"and {more} more parameters")] if more > 0 else [])
        cost = None if budget is None else budget.cost
        spent = amount(history.spent, study.unit) if cost is None else used_text(history.spent, cost, study.unit)
        summary = [(label, spent if label == "spent" else text.replace("result.study", "study")) for label, text in rows()]
        return page(head + rows_table([*parameters, *summary]), history, study.unit)

    return guarded(made, lambda: repr(study))


def guarded(make: Callable[[], str], short: Callable[[], str]) -> str:
    """What ``make`` returns; the short line if it raises, and why. A cell of a notebook must not fail because of its view."""
    try:
        return make()
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
    try:
        line = short()
    except Exception:  # the storage may not answer
        line = "a study"
    return f"<pre>{shown(line)}\n{shown(f'it cannot be shown in full: {why}')}</pre>"


def page(above: str, history: History, unit: str) -> str:
    """The whole view: the part above, the picture, and the best trials."""
    return f'<div class="st-note"><style>{style_sheet()}</style>{above}{picture(history, unit)}{best_table(history, unit)}</div>'


def picture(history: History, unit: str) -> str:
    """The best value against the cost as SVG; nothing without a result."""
    if history.best is None:
        return ""
    found = plain({"name": "best_against_cost", **best_against_cost(Source(history=history, unit=unit))})
    return draw(found)


def rows_table(rows: Iterable[tuple[str, str]]) -> str:
    """Labels and texts in two columns."""
    cells = "".join(f"<tr><th>{shown(label)}</th><td>{lines(text)}</td></tr>" for label, text in rows)
    return f'<div class="st-wide"><table class="st-rows"><tbody>{cells}</tbody></table></div>'


def best_table(history: History, unit: str) -> str:
    """The best trials with their settings; nothing while there are none."""
    best, names = history.ranked()[:MAX_TRIALS_SHOWN], list(history.space)[:MAX_PARAMETERS_SHOWN]
    if not best:
        return ""
    head = "".join(f"<th>{shown(name)}</th>" for name in ("trial", "value", f"cost ({unit})", *names))
    body = "".join(f"<tr>{''.join(f'<td>{shown(text)}</td>' for text in trial_cells(trial, names))}</tr>" for trial in best)
    return f'<div class="st-wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def trial_cells(trial: Trial, names: Iterable[str]) -> list[str]:
    """One trial as a row."""
    settings = (value_text(trial.config[name]) if name in trial.config else "" for name in names)
    return [str(trial.number), rounded(trial.value), rounded(trial.cost), *settings]


def lines(text: str) -> str:
    """The same for a text of several lines."""
    return shown(text).replace("\n", "<br>")


def shown(text: str) -> str:
    """A text from the study for the inside of an element: escaped, without control characters, cut if it is very long."""
    cut = text if len(text) <= MAX_TEXT_CHARACTERS else text[: MAX_TEXT_CHARACTERS - 3] + "..."
    return html.escape(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", cut).encode("utf-8", "replace").decode())
