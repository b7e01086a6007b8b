"""A TOML file for ``shoestring run tune.toml``: the same settings as on the command line, whose options take precedence.

    command = ["python", "train.py", "--lr", "{lr}", "--epochs", "{epochs}"]

    [study]
    name = "xgb"
    budget = "10m"
    workers = 4

    [params]
    lr = "log:1e-5:1e-1"
    depth = {low = 2, high = 12, int = true}
    act = ["relu", "tanh"]

    [fidelities]
    epochs = "1:50"
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from .._validation import is_number
from ..errors import ShoestringError
from ..space.space import Parameter
from .options import read_toml_parameter

TABLES = ("study", "params", "fidelities")
TEXT, WHOLE, REAL, FLAG = "a text", "a whole number", "a number", "true or false"
TEXT_OR_NUMBER = 'a text such as "10m", or a number of trials'
TEXTS = 'a list of texts such as ["python", "train.py", "--lr", "{lr}"]'
KEY_TYPES = {
    "name": TEXT, "storage": TEXT, "budget": TEXT_OR_NUMBER, "workers": WHOLE, "seed": WHOLE, "maximize": FLAG, "method": TEXT,
    "stop": TEXT, "timeout": TEXT, "retries": WHOLE, "max-retries": WHOLE, "max-failures": WHOLE, "no-fail-fast": FLAG,
    "confirm": FLAG, "max-trials": WHOLE, "max-time": TEXT, "cost": TEXT, "unit": TEXT, "per-hour": REAL, "logs": TEXT,
    "initial": WHOLE, "extend": FLAG, "pass-as-json": FLAG, "command": TEXTS,
}  # fmt: skip


class TuneFileError(click.UsageError):
    """A mistake in the file (exit code 2): the message names the file, the key, and how to fix it."""

    def __init__(self, path: Path, key: str | None, problem: str) -> None:
        super().__init__(f"{path}{'' if key is None else f', {key}'}: {problem}")


def read_tune_file(path: Path) -> tuple[dict[str, Any], dict[str, Parameter]]:
    """The options by name, as ``run`` has them, and the parameters."""
    content = parse_toml(path)
    for key, value in content.items():
        if key == "command":
            continue
        if key not in TABLES:
            place = f"; put it under [study]: {key} = ..." if key in KEY_TYPES else closest_key(key, [*TABLES, "command"])
            raise TuneFileError(path, key, f"is not known here{place}")
        if not isinstance(value, Mapping):
            raise TuneFileError(path, key, f"should be a table; write [{key}] on a line of its own")
    options = read_options(path, content)
    return options, read_parameters(path, content, "command" in options)


def parse_toml(path: Path) -> dict[str, Any]:
    """The content of the file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise TuneFileError(path, None, f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise TuneFileError(path, None, "is not a text in UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise TuneFileError(path, None, f"is not TOML: {error}") from None


def read_options(path: Path, content: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of [study] and ``command``, with their types checked."""
    given = dict(content.get("study", {}))
    if "command" in content:
        given["command"] = content["command"]
    for key, value in given.items():
        place = key if key == "command" else f"[study] {key}"
        if key not in KEY_TYPES:
            raise TuneFileError(path, place, f"is not known{closest_key(key, list(KEY_TYPES))}")
        if not has_type(value, KEY_TYPES[key]):
            raise TuneFileError(path, place, f"must be {KEY_TYPES[key]}, not {value!r}")
    return {key.replace("-", "_"): value for key, value in given.items()}


def has_type(value: Any, kind: str) -> bool:
    """Whether a TOML value is of one of the kinds above."""
    if kind == FLAG:
        return isinstance(value, bool)
    if kind == TEXTS:
        return isinstance(value, list) and bool(value) and all(isinstance(word, str) for word in value)
    if kind == WHOLE:
        return is_number(value) and isinstance(value, int)
    if kind == REAL:
        return is_number(value)
    return isinstance(value, str) or (kind == TEXT_OR_NUMBER and is_number(value))


def read_parameters(path: Path, content: Mapping[str, Any], has_command: bool) -> dict[str, Parameter]:
    """The parameters of [params] and [fidelities], validated."""
    parameters: dict[str, Parameter] = {}
    for table, fidelity in (("params", False), ("fidelities", True)):
        for name, given in content.get(table, {}).items():
            if name == "command" and not has_command:  # TOML adds a key to the table above it
                problem = f"move it to the top of the file, above [{next(iter(content))}]"
                raise TuneFileError(path, f"[{table}] command", problem)
            try:
                parameters[name] = read_toml_parameter(name, given, fidelity)
                parameters[name].validate(name)
            except ShoestringError as error:
                raise TuneFileError(path, f"[{table}] {name}", str(error).removeprefix(f"{name}: ")) from None
    return parameters


def closest_key(key: str, known: list[str]) -> str:
    """The end of an error message about an unknown key: the most similar one, or all."""
    close = difflib.get_close_matches(key.replace("_", "-"), known, 1)
    return f"; did you mean {close[0]}?" if close else f"; there are {', '.join(known)}"
