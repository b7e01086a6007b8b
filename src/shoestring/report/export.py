"""The trials of a study in other formats: as a flat table (CSV, Parquet, a DataFrame of pandas) or as JSON lines.

There is one row for each trial, and one column for each parameter, fidelities included. Columns with a prefix hold what not all
trials have:

    metric_NAME   a metric              fold_0, fold_1, ...   the folds of a cross-validation
    attr_NAME     an attribute          param_NAME            a parameter whose name is that of another column

JSON lines hold all of a trial, one object on a line: reports, suggestion and traceback too.

In CSV, a text that a spreadsheet would take for a formula, such as ``=1+1``, begins with an apostrophe: a file that is opened
must not run what another person has written into a name or an error. Numbers stay as they are.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from ..data.history import History
from ..data.trial import Trial
from ..state.checkpoints import PRIVATE_FILE

FIRST_COLUMNS = ("number", "state", "value", "cost", "seconds")
LAST_COLUMNS = ("predicted", "predicted_cost", "expected_gain", "by", "why", "effort", "added", "error", "asked_at")
FORMULA_BEGINNINGS = ("=", "+", "-", "@", "\t", "\r", "\n")  # of a cell that a spreadsheet may compute
NO_PANDAS = "to_dataframe needs pandas, which is not installed: pip install pandas"
NO_PYARROW = "Parquet needs pyarrow, which is not installed: pip install pyarrow"

Cells = list[Any]


def to_csv(history: History) -> str:
    """The trials as CSV. A value that is not there is an empty cell, and one that is neither a number nor a text is JSON."""
    parameters = list(history.space)
    further = further_columns(history)
    named = [parameter_column(name, parameters, further) for name in parameters]
    lines = [_line([_cell(name) for name in (*FIRST_COLUMNS, *named, "error", *further, "added")])]
    for row, trial in enumerate(history):
        first = [trial.number, str(trial.state), trial.value, trial.cost, trial.seconds]
        values = [_cell(trial.config[name]) if name in trial.config else "" for name in parameters]
        others = ["" if cells[row] is None else _cell(cells[row]) for cells in further.values()]
        lines.append(_line([*first, *values, _cell(trial.error or ""), *others, _cell(trial.added)]))
    return "".join(lines)


def to_jsonl(history: History) -> str:
    """The trials as JSON lines: all fields of a trial, as ``Trial.from_dict`` reads them."""
    return "".join(json.dumps(trial.to_dict()) + "\n" for trial in history)


def to_parquet(history: History) -> bytes:
    """The trials as a Parquet file, with the columns of ``to_dataframe``; an ImportError without pyarrow.

    A column whose values are not all numbers, all texts or all true and false is JSON text.
    """
    try:
        arrow: Any = import_module("pyarrow")
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError:
        raise ImportError(NO_PYARROW) from None
    further = further_columns(history)
    number, text = arrow.float64(), arrow.string()
    columns = {
        "number": arrow.array([trial.number for trial in history], arrow.int64()),
        "state": arrow.array([str(trial.state) for trial in history], text),
        **{name: arrow.array([getattr(trial, name) for trial in history], number) for name in ("value", "cost", "seconds")},
    }
    for name in history.space:
        columns[parameter_column(name, history.space, further)] = _arrow(arrow, [trial.config.get(name) for trial in history])
    columns |= {name: _arrow(arrow, cells) for name, cells in further.items()}
    known = {"predicted": "predicted", "predicted_cost": "cost", "expected_gain": "gain"}
    for column, key in known.items():
        columns[column] = arrow.array([trial.suggestion.get(key) for trial in history], number)
    times = [None if trial.asked_at is None else datetime.fromtimestamp(trial.asked_at, UTC) for trial in history]
    columns |= {
        "by": _arrow(arrow, [trial.suggestion.get("by") for trial in history]),
        "why": _arrow(arrow, [trial.suggestion.get("why") for trial in history]),
        "effort": arrow.array([effort_of(trial) for trial in history], text),
        "added": arrow.array([trial.added for trial in history], arrow.bool_()),
        "error": _arrow(arrow, [trial.error for trial in history]),
        "asked_at": arrow.array(times, arrow.timestamp("us", tz="UTC")),
    }
    sink = arrow.BufferOutputStream()
    parquet.write_table(arrow.table(columns), sink)
    return bytes(sink.getvalue().to_pybytes())


def write_private(path: Path, content: str | bytes) -> None:
    """Write a text or bytes to a file. If it is a new one, only this user may read it: it may hold what others should not see."""
    data = content if isinstance(content, bytes) else utf8(content)
    with open(path, "wb", opener=lambda name, flags: os.open(name, flags, PRIVATE_FILE)) as file:
        file.write(data)


def utf8(text: str) -> bytes:
    """A text as UTF-8. An error or a name may hold half a character, which UTF-8 does not: that is escaped."""
    return text.encode("utf-8", "backslashreplace")


def whole_characters(cell: Any) -> Any:
    """A cell that is a text without half characters, which the columns of pandas and Arrow do not hold."""
    return utf8(cell).decode() if isinstance(cell, str) else cell


def to_dataframe(history: History) -> Any:
    """The trials as a DataFrame; an ImportError without pandas. What is not there is NaN, or NaT for a time."""
    try:
        pandas: Any = import_module("pandas")
    except ImportError:
        raise ImportError(NO_PANDAS) from None

    def numbers(values: Iterable[float | None]) -> Any:
        return pandas.Series(list(values), dtype="float64")

    def known(name: str) -> Cells:
        return [trial.suggestion.get(name) for trial in history]

    further = further_columns(history)
    columns = {
        "number": pandas.Series([trial.number for trial in history], dtype="int64"),
        "state": pandas.Series([str(trial.state) for trial in history], dtype="str"),
        "value": numbers(trial.value for trial in history),
        "cost": numbers(trial.cost for trial in history),
        "seconds": numbers(trial.seconds for trial in history),
    }
    for name in history.space:
        values = [trial.config.get(name) for trial in history]
        absent = all(value is None for value in values)
        columns[parameter_column(name, history.space, further)] = numbers(values) if absent else pandas.Series(values)
    for name, cells in further.items():
        columns[name] = pandas.Series([whole_characters(cell) for cell in cells]) if name.startswith("attr_") else numbers(cells)
    columns |= {
        "predicted": numbers(known("predicted")),
        "predicted_cost": numbers(known("cost")),
        "expected_gain": numbers(known("gain")),
        "by": pandas.Series(known("by")),
        "why": pandas.Series(known("why")),
        "effort": pandas.Series([effort_of(trial) for trial in history]),
        "added": pandas.Series([trial.added for trial in history], dtype="bool"),
        "error": pandas.Series([whole_characters(trial.error) for trial in history]),
        "asked_at": pandas.Series(pandas.to_datetime([trial.asked_at for trial in history], unit="s", utc=True)),
    }
    return pandas.DataFrame(columns)


def further_columns(history: History) -> dict[str, Cells]:
    """The columns of metrics, folds and attributes; None where a trial has none."""
    folds = max((len(trial.folds or ()) for trial in history), default=0)
    return {
        **_by_name(history, "metric_", lambda trial: trial.metrics),
        **{f"fold_{k}": [_nth(trial.folds, k) for trial in history] for k in range(folds)},
        **_by_name(history, "attr_", lambda trial: trial.attrs),
    }


def parameter_column(name: str, parameters: Iterable[str], further: Iterable[str]) -> str:
    """The column of a parameter: its name, unless another column has it."""
    others = {*FIRST_COLUMNS, *LAST_COLUMNS, *further}
    column = name
    while column in others or (column != name and column in parameters):
        column = f"param_{column}"
    return column


def effort_of(trial: Trial) -> str | None:
    """How much time the suggestion of a trial was given: "full", "reduced" or "random"; None if it was not suggested."""
    suggested = not trial.added and trial.suggestion.get("by") not in (None, "you")
    return str(trial.basis.get("effort", "full")) if suggested else None


def _by_name(history: History, prefix: str, mapping_of: Callable[[Trial], Any]) -> dict[str, Cells]:
    names = list(dict.fromkeys(name for trial in history for name in mapping_of(trial)))
    return {f"{prefix}{name}": [mapping_of(trial).get(name) for trial in history] for name in names}


def _nth(values: Sequence[float] | None, place: int) -> float | None:
    return values[place] if values is not None and place < len(values) else None


def _arrow(arrow: Any, cells: Cells) -> Any:
    """A column of Parquet: of numbers, of true and false or of texts where all cells are, else of JSON."""
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds <= {int, float} and kinds:
        whole = kinds == {int} and all(cell is None or abs(cell) < 1 << 63 for cell in cells)
        return arrow.array(cells if whole else [None if cell is None else float(cell) for cell in cells])
    if kinds == {bool}:
        return arrow.array(cells, arrow.bool_())
    texts = [cell if cell is None or kinds == {str} else json.dumps(cell) for cell in cells]
    return arrow.array([whole_characters(cell) for cell in texts], arrow.string())


def _line(cells: Cells) -> str:
    """A line of CSV. A carriage return in a cell is quoted too, which some readers take for the end of a line."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(cells)
    return text.getvalue().removesuffix("\r\n") + "\n"


def _cell(value: Any) -> Any:
    """A value as a CSV cell: a number unchanged, a text that is no formula unchanged too, anything else as JSON."""
    if isinstance(value, str):
        return f"'{value}" if value.startswith(FORMULA_BEGINNINGS) else value
    return value if isinstance(value, int | float) and not isinstance(value, bool) else json.dumps(value)
