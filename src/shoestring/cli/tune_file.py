"""A study in a TOML file, for ``shoestring run tune.toml``: the same as on the command line, which wins where both speak.

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

from ..errors import ShoestringError
from ..space.space import Parameter
from .params import read_table

TABLES = ("study", "params", "fidelities")
TEXT, WHOLE, REAL, FLAG = "a text", "a whole number", "a number", "true or false"
KEYS = {
    "name": TEXT, "storage": TEXT, "budget": "a text such as \"10m\", or a number of trials", "workers": WHOLE, "seed": WHOLE,
    "maximize": FLAG, "method": TEXT, "stop": TEXT, "timeout": TEXT, "retries": WHOLE, "confirm": FLAG, "max-trials": WHOLE,
    "max-time": TEXT, "unit": TEXT, "per-hour": REAL, "logs": TEXT, "initial": WHOLE, "extend": FLAG, "pass-as-json": FLAG,
    "command": 'a list of texts such as ["python", "train.py", "--lr", "{lr}"]',
}  # fmt: skip


class FileError(click.UsageError):
    """Names the file, the key, and how to mend it; exit code 2."""

    def __init__(self, path: Path, key: str | None, problem: str) -> None:
        super().__init__(f"{path}{'' if key is None else f', {key}'}: {problem}")


def read_file(path: Path) -> tuple[dict[str, Any], dict[str, Parameter]]:
    """Options by name, as ``run`` has them, and the parameters."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(path, None, f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise FileError(path, None, "is not a text in UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise FileError(path, None, f"is not TOML: {error}") from None
    for key, value in content.items():
        if key == "command":
            continue
        if key not in TABLES:
            place = f"; put it under [study]: {key} = ..." if key in KEYS else nearest(key, [*TABLES, "command"])
            raise FileError(path, key, f"is not known here{place}")
        if not isinstance(value, Mapping):
            raise FileError(path, key, f"should be a table; write [{key}] on a line of its own")
    options = read_options(path, content)
    return options, read_parameters(path, content, "command" in options)


def read_options(path: Path, content: Mapping[str, Any]) -> dict[str, Any]:
    given = dict(content.get("study", {}))
    if "command" in content:
        given["command"] = content["command"]
    for key, value in given.items():
        where = key if key == "command" else f"[study] {key}"
        if key not in KEYS:
            raise FileError(path, where, f"is not known{nearest(key, list(KEYS))}")
        if not fits(value, KEYS[key]):
            raise FileError(path, where, f"must be {KEYS[key]}, not {value!r}")
    return {key.replace("-", "_"): value for key, value in given.items()}


def fits(value: Any, kind: str) -> bool:
    if kind == FLAG:
        return isinstance(value, bool)
    if isinstance(value, bool):
        return False
    if kind.startswith("a list"):
        return isinstance(value, list) and bool(value) and all(isinstance(word, str) for word in value)
    if kind == TEXT:
        return isinstance(value, str)
    if kind == WHOLE:
        return isinstance(value, int)
    return isinstance(value, int | float) or (kind != REAL and isinstance(value, str))


def read_parameters(path: Path, content: Mapping[str, Any], has_command: bool) -> dict[str, Parameter]:
    parameters: dict[str, Parameter] = {}
    for table, fidelity in (("params", False), ("fidelities", True)):
        for name, given in content.get(table, {}).items():
            if name == "command" and not has_command:  # TOML puts it into the table above it
                raise FileError(path, f"[{table}] command", f"move it to the top of the file, above [{next(iter(content))}]")
            try:
                parameters[name] = read_table(name, given, fidelity)
                parameters[name].validate(name)
            except ShoestringError as error:
                raise FileError(path, f"[{table}] {name}", str(error).removeprefix(f"{name}: ")) from None
    return parameters


def nearest(key: str, known: list[str]) -> str:
    close = difflib.get_close_matches(key.replace("_", "-"), known, 1)
    return f"; did you mean {close[0]}?" if close else f"; there are {', '.join(known)}"
