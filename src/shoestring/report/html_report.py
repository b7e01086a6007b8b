"""A study as one HTML file: summary, explanation, all pictures and the trials. It needs no network, no script and no other file.

Its policy allows its own style sheet, by its hash, and nothing else: a script in a name or in an error could not run. All texts
are escaped as well.
"""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Protocol

from .._format import plural, rounded, value_text
from ..data.history import History
from ..data.trial import Trial
from ..errors import ShoestringError
from .explain import Explanation
from .result import Result
from .svg import CSS, draw
from .views import VIEWS, view
from .views.base import ViewedStudy
from .views.catalogue import is_idle

MAX_TRIALS = 1000  # rows of the table of trials
MAX_NUMBERS = 100  # rows of the table of numbers below each picture
MAX_ERROR_CHARACTERS = 300
NumberTable = tuple[str, list[str], list[Any]]  # title, head, rows
NOT_SHOWN = ("next", "suggestions", "effort")  # rows of the summary that are for the person who runs the study

PAGE_STYLE = """
:root{color-scheme:light dark;--page:#ffffff;--text:#1c2733;--soft:#5c6875;--rule:#d9dfe6}
@media (prefers-color-scheme:dark){:root{--page:#161c23;--text:#e6ebf1;--soft:#a3afbc;--rule:#313b46}}
body{margin:0 auto;padding:1rem;max-width:80rem;background:var(--page);color:var(--text);font:16px/1.5 system-ui,sans-serif}
h1{font-size:1.6rem;margin:.2rem 0}h2{font-size:1.2rem;margin:2rem 0 .5rem}h3{font-size:1rem;margin:0 0 .3rem}
.pictures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,28rem),1fr));gap:2rem 1.5rem}
figure{margin:0;min-width:0}figcaption,.soft{color:var(--soft);font-size:.9rem}
table{border-collapse:collapse;font-size:.9rem}th,td{text-align:left;padding:.15rem .7rem .15rem 0;vertical-align:top}
tbody tr{border-top:1px solid var(--rule)}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
.wide{overflow-x:auto}.trials td,.trials th{white-space:nowrap}.trials td:last-child{white-space:normal;min-width:16rem}
:focus-visible{outline:3px solid var(--soft);outline-offset:2px}
.rows th{font-weight:normal;color:var(--soft);white-space:nowrap}.rows td{white-space:pre-line}
summary{cursor:pointer;color:var(--soft);font-size:.9rem}
@media print{details{display:none}figure{break-inside:avoid}}
"""


class ReportedStudy(ViewedStudy, Protocol):
    """The part of a study that its report uses."""

    @property
    def direction(self) -> str: ...
    @property
    def result(self) -> Result: ...
    def explain(self) -> Explanation: ...


def html_report(study: ReportedStudy, *, fit: bool | None = None, with_model: bool = True) -> str:
    """The report of a study as the text of an HTML file.

    fit         whether models may be fitted for it; None: if the study does not run
    with_model  False where the study's own models are not at hand: then none is fitted, and nothing is explained
    """
    study.refresh()
    fitted = with_model and (is_idle(study, time.time()) if fit is None else fit)
    found = [view(study, name, fit=fitted) for name in VIEWS if name != "live"]
    history = study.log
    body = [
        f"<h1>{escape(study.name)}</h1>",
        f'<p class="soft">A study to {escape(study.direction)}, {plural(history.trials_started, "trial")}, written '
        f"{time.strftime('%Y-%m-%d %H:%M')}.</p>",
        section("Summary", rows_table(summary_rows(study, fitted), "Facts of the study")),
        section("What it does and why", explanation(study)) if fitted else "",
        section("Pictures", f'<div class="pictures">{"".join(picture(each) for each in found if not each["empty"])}</div>'),
        left_out(found),
        section("Trials", trial_table(history, study.unit)),
    ]
    return page(study.name, "\n".join(body))


def page(title: str, body: str) -> str:
    """The HTML file, with a policy that allows its own style sheet only."""
    style = f"{PAGE_STYLE}{CSS}"
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def section(title: str, content: str) -> str:
    return f"<section>\n<h2>{escape(title)}</h2>\n{content}\n</section>"


def summary_rows(study: ReportedStudy, fitted: bool) -> list[tuple[str, str]]:
    """The summary of the study; what the model recommends is a part of it where a model may be fitted."""
    rows = study.result.rows("returned" if fitted else "raised")
    return [(name, text) for name, text in rows if name not in NOT_SHOWN and text != "not stopped"]


def explanation(study: ReportedStudy) -> str:
    """What the study does next and why, as a table; or why that cannot be said."""
    try:
        found = study.explain()
    except ShoestringError as error:
        return f"<p>{escape(str(error))}</p>"
    rows = [("next trial", f"{found.method}, since {found.why}")]
    rows += [("not chosen", "\n".join(f"{name}: {why}" for name, why in found.rejected.items()))] if found.rejected else []
    rows += [("last trial", found.last)] if found.last else []
    rows += [("model", found.model)] + ([("cost model", found.cost_model)] if found.cost_model else [])
    return rows_table([*rows, ("budget", found.budget), ("stop", found.stop)], "Decisions of the study")


def rows_table(rows: Iterable[tuple[str, str]], name: str) -> str:
    """Labels and texts in two columns."""
    cells = "".join(f'<tr><th scope="row">{escape(name)}</th><td>{escape(text)}</td></tr>' for name, text in rows)
    return scrolled(f'<table class="rows"><tbody>{cells}</tbody></table>', name)


def scrolled(content: str, name: str) -> str:
    """A table that may be wider than the page: it can be scrolled by the keyboard too. The name is for screen readers."""
    return f'<div class="wide" role="region" aria-label="{escape(name)}" tabindex="0">{content}</div>'


# -- pictures and their numbers --------------------------------------------------------------------------------------


def picture(found: Mapping[str, Any]) -> str:
    """One picture with its caption, and its numbers below it."""
    tables = enumerate(number_tables(found), start=1)
    numbers = "".join(table(name, head, rows, f"{found['title']}, table {place}") for place, (name, head, rows) in tables)
    shown = f"<details><summary>Numbers</summary>{numbers}</details>" if numbers else ""
    heading, caption = escape(found["title"]), escape(found["caption"])
    return f"<figure>\n<h3>{heading}</h3>\n{draw(found)}\n<figcaption>{caption}</figcaption>\n{shown}\n</figure>"


def left_out(found: Sequence[Mapping[str, Any]]) -> str:
    """Why some pictures are not there."""
    if not any(each["trials"] for each in found):
        return '<p class="soft">There are no trials yet.</p>'
    why = "".join(f"<li>{escape(each['title'])}: {escape(each['empty'])}</li>" for each in found if each["empty"])
    return f'<p class="soft">Not shown:</p><ul class="soft">{why}</ul>' if why else ""


def number_tables(found: Mapping[str, Any]) -> list[NumberTable]:
    """The numbers of a picture, by its series or bars."""
    tables = [series_table(each, found["x"]["label"], found["y"]["label"]) for each in found["series"]]
    for panel in found.get("panels", ()):
        tables += [series_table(each, panel["x"]["label"], panel["y"]["label"]) for each in panel["series"]]
    if bars := found.get("bars"):
        names = [name for name in ("label", "lane", "start", "end", "state", "number", "value", "text") if name in bars[0]]
        tables.append(("", names, [[bar[name] for name in names] for bar in bars]))
    if lines := found.get("lines"):
        rows = [[line["number"], line["state"], line["text"]] for line in reversed(lines)]
        tables.append(("", ["trial", "state", "config"], rows))
    return tables


def series_table(each: Mapping[str, Any], x: str, y: str) -> NumberTable:
    """One series as a table."""
    columns = {"trial": each.get("number"), x or "x": each["x"], y or "y": each["y"]}
    columns |= {"low": each.get("low"), "high": each.get("high")}
    known = {name: values for name, values in columns.items() if values}
    return each["name"], list(known), list(zip(*known.values(), strict=True))


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[Any]], name: str) -> str:
    """A table with the first rows, and how many more there are; ``name`` is that of its region."""
    more = f'<p class="soft">{len(rows) - MAX_NUMBERS:,} more rows</p>' if len(rows) > MAX_NUMBERS else ""
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    heads = heads_of(head, rows)
    body = "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows[:MAX_NUMBERS])
    return scrolled(f"<table>{caption}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>", name) + more


def heads_of(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """The heads of columns; those of numbers are aligned right, as the numbers are."""
    numeric = [any(is_numeric(row[place]) for row in rows[:MAX_NUMBERS]) for place in range(len(names))]
    opened = ['<th scope="col" class="n">' if right else '<th scope="col">' for right in numeric]
    return "".join(f"{tag}{escape(name)}</th>" for tag, name in zip(opened, names, strict=True))


def is_numeric(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def cell(value: Any) -> str:
    """A cell: numbers are rounded and aligned right."""
    if is_numeric(value):
        return f'<td class="n">{rounded(value, 6) if isinstance(value, float) else value}</td>'
    return f"<td>{'' if value is None else escape(value_text(value))}</td>"


# -- trials ----------------------------------------------------------------------------------------------------------


def trial_table(history: History, unit: str) -> str:
    """The first trials as a table, with their parameters."""
    names = list(history.space)
    rows = [trial_cells(trial, names) for trial in history[:MAX_TRIALS]]
    head = heads_of(["trial", "state", "value", f"cost ({unit})", *names, "error"], rows)
    body = "".join(f"<tr>{''.join(map(cell, row))}</tr>\n" for row in rows)
    left = len(history) - MAX_TRIALS
    more = f'<p class="soft">The first {MAX_TRIALS:,} of {len(history):,} trials.</p>' if left > 0 else ""
    shown = f'<table class="trials"><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table>'
    return more + scrolled(shown, "Table of trials") if len(history) else "<p>There are no trials yet.</p>"


def trial_cells(trial: Trial, names: Sequence[str]) -> list[Any]:
    """One trial as a row."""
    error = (trial.error or "")[:MAX_ERROR_CHARACTERS]
    return [trial.number, str(trial.state), trial.value, trial.cost, *(trial.config.get(name) for name in names), error]
